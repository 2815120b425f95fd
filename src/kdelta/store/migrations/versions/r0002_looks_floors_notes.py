# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequential looks, noise floors, tags and notes. Frozen: a later change is a new revision."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _owner() -> sa.Column[int]:
    return sa.Column(
        "experiment_no",
        sa.Integer,
        sa.ForeignKey("experiment.no", ondelete="CASCADE"),
        primary_key=True,
        nullable=False,
    )


def upgrade() -> None:
    """Add what the second revision keeps; rows of the first stay as they are."""
    op.add_column("experiment", sa.Column("note", sa.Text, nullable=False, server_default=""))
    op.create_table("tag", _owner(), sa.Column("name", sa.String(64), primary_key=True))
    op.create_table(
        "look",
        _owner(),
        sa.Column("blocks", sa.Integer, primary_key=True),
        sa.Column("final", sa.Boolean, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "floor",
        sa.Column("no", sa.Integer, primary_key=True),
        sa.Column("scope_key", sa.String(32), nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("floor_percent", sa.Float, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_index("floor_scope", "floor", ["scope_key", "created_at"])
