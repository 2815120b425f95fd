# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments, their boots and runs. Frozen: a later change is a new revision."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _owner(column: str, target: str, *, primary: bool = True) -> sa.Column[int]:
    return sa.Column(column, sa.Integer, sa.ForeignKey(target, ondelete="CASCADE"), primary_key=primary, nullable=False)


def _experiments() -> None:
    op.create_table(
        "experiment",
        sa.Column("no", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(80), nullable=False, unique=True),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("kernel_count", sa.Integer, nullable=False),
        sa.Column("boots_planned", sa.Integer, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_index("experiment_created", "experiment", ["created_at"])
    op.create_table(
        "kernel",
        _owner("experiment_no", "experiment.no"),
        sa.Column("idx", sa.Integer, primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("image_sha256", sa.Text, nullable=False),
    )
    op.create_table(
        "bench_case",
        _owner("experiment_no", "experiment.no"),
        sa.Column("idx", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.String(32), nullable=False),
        sa.Column("workload_key", sa.String(32), nullable=False),
    )
    op.create_index("case_name", "bench_case", ["name_key"])
    op.create_index("case_workload", "bench_case", ["workload_key"])


def _boots() -> None:
    op.create_table(
        "boot",
        sa.Column("no", sa.Integer, primary_key=True),
        _owner("experiment_no", "experiment.no", primary=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("kernel", sa.Integer, nullable=False),
        sa.Column("mitigations", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("experiment_no", "block", "slot", name="boot_once"),
    )
    op.create_table(
        "boot_log",
        _owner("boot_no", "boot.no"),
        sa.Column("console", sa.LargeBinary, nullable=False),
        sa.Column("stream", sa.LargeBinary, nullable=False),
    )


def _runs() -> None:
    op.create_table(
        "run",
        _owner("boot_no", "boot.no"),
        sa.Column("case_idx", sa.Integer, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("figures", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_detail",
        _owner("boot_no", "boot.no"),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("case_idx", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("why", sa.LargeBinary, nullable=False),
        sa.Column("series", sa.LargeBinary, nullable=False),
        sa.Column("histograms", sa.LargeBinary, nullable=False),
        sa.Column("facts", sa.LargeBinary, nullable=False),
        sa.Column("profile", sa.LargeBinary),
    )


def upgrade() -> None:
    """Create the first tables."""
    _experiments()
    _boots()
    _runs()
