# SPDX-License-Identifier: GPL-2.0-or-later
"""What was watched and reviewed, and the steps that were announced. Frozen: a later change is a new revision."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add two tables; nothing that is stored changes."""
    op.create_table(
        "watched",
        sa.Column("no", sa.Integer, primary_key=True),
        sa.Column("source_key", sa.String(32), nullable=False),
        sa.Column("item_key", sa.String(32), nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("source_key", "item_key", name="watched_once"),
    )
    op.create_table(
        "step",
        sa.Column("no", sa.Integer, primary_key=True),
        sa.Column("step_key", sa.String(32), nullable=False, unique=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
