# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's tables at the newest revision, as SQLAlchemy Core; ``migrations`` is how an older store gets here.

Three weights of row: what every report reads (``run``: one small row per boot and case), what a drill-down reads
(``run_detail``: samples, histograms, profiles), and what is only shown on request (``boot_log``: console and stream).
Names are searched by a digest (``codec.key_of``), because a B-tree of PostgreSQL cannot index a name of 10 KB.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData()
REVISION_TABLE = "kdelta_revision"


def _owner(column: str, target: str, *, primary: bool = True) -> Column[int]:
    return Column(column, Integer, ForeignKey(target, ondelete="CASCADE"), primary_key=primary, nullable=False)


experiment = Table(
    "experiment",
    metadata,
    Column("no", Integer, primary_key=True),
    Column("id", String(80), nullable=False, unique=True),
    Column("created_at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("kernel_count", Integer, nullable=False),
    Column("boots_planned", Integer, nullable=False),
    Column("document", LargeBinary, nullable=False),  # zlib(JSON of model.Experiment)
    Column("note", Text, nullable=False, server_default=""),
    Column("imported", Boolean, nullable=False, server_default=false()),
    Index("experiment_created", "created_at"),
)

kernel = Table(
    "kernel",
    metadata,
    _owner("experiment_no", "experiment.no"),
    Column("idx", Integer, primary_key=True),
    Column("label", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("image_sha256", Text, nullable=False),
)

case = Table(
    "bench_case",  # CASE is a word of SQL
    metadata,
    _owner("experiment_no", "experiment.no"),
    Column("idx", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", String(32), nullable=False),
    Column("workload_key", String(32), nullable=False),
    Index("case_name", "name_key"),
    Index("case_workload", "workload_key"),
)

boot = Table(
    "boot",
    metadata,
    Column("no", Integer, primary_key=True),
    _owner("experiment_no", "experiment.no", primary=False),
    Column("block", Integer, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("kernel", Integer, nullable=False),
    Column("mitigations", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),  # msgpack of the BootResult without console, stream and runs
    Column("identity", String(64)),  # of an exact boot measured here: see machine.guests.identity
    UniqueConstraint("experiment_no", "block", "slot", name="boot_once"),
    Index("boot_identity", "identity"),
)

boot_log = Table(
    "boot_log",
    metadata,
    _owner("boot_no", "boot.no"),
    Column("console", LargeBinary, nullable=False),  # zlib
    Column("stream", LargeBinary, nullable=False),  # zlib
)

run = Table(
    "run",
    metadata,
    _owner("boot_no", "boot.no"),
    Column("case_idx", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("figures", LargeBinary, nullable=False),  # msgpack list of codec.Figure, one per metric
    sqlite_with_rowid=False,
)

run_detail = Table(
    "run_detail",
    metadata,
    _owner("boot_no", "boot.no"),
    Column("seq", Integer, primary_key=True),  # position in BootResult.runs
    Column("case_idx", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("why", LargeBinary, nullable=False),  # as the guest said it, also with a NUL
    Column("series", LargeBinary, nullable=False),  # zlib(msgpack)
    Column("histograms", LargeBinary, nullable=False),  # zlib(msgpack)
    Column("facts", LargeBinary, nullable=False),  # msgpack
    Column("profile", LargeBinary),  # zlib(msgpack); null: none was taken
)

tag = Table(
    "tag",
    metadata,
    _owner("experiment_no", "experiment.no"),
    Column("name", String(64), primary_key=True),
)

look = Table(
    "look",
    metadata,
    _owner("experiment_no", "experiment.no"),
    Column("blocks", Integer, primary_key=True),
    Column("final", Boolean, nullable=False),
    Column("document", LargeBinary, nullable=False),  # msgpack of rows.Look
)

watched = Table(
    "watched",
    metadata,
    Column("no", Integer, primary_key=True),
    Column("source_key", String(32), nullable=False),
    Column("item_key", String(32), nullable=False),
    Column("document", LargeBinary, nullable=False),  # msgpack of rows.Watched
    UniqueConstraint("source_key", "item_key", name="watched_once"),
)

step = Table(
    "step",
    metadata,
    Column("no", Integer, primary_key=True),
    Column("step_key", String(32), nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),  # msgpack of rows.Step
)

floor = Table(
    "floor",
    metadata,
    Column("no", Integer, primary_key=True),
    Column("scope_key", String(32), nullable=False),  # host and machine kind
    Column("created_at", Text, nullable=False),
    Column("floor_percent", Float, nullable=False),
    Column("document", LargeBinary, nullable=False),  # msgpack of rows.Floor
    Index("floor_scope", "scope_key", "created_at"),
)
