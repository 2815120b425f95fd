# SPDX-License-Identifier: GPL-2.0-or-later
"""Older stores come up to date with everything that they hold."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, insert, select, text

from kdelta.errors import HostError
from kdelta.store import codec, connect, tables
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(connect.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def test_the_newest_revision_is_the_one_that_the_code_expects() -> None:
    assert scripts().get_heads() == [connect.HEAD]


def test_migrations_end_at_the_tables_that_the_code_uses(url: str) -> None:
    with Store(url) as store, store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": tables.REVISION_TABLE})
        assert compare_metadata(context, tables.metadata) == []


def fill_first_revision(url: str) -> None:
    """What kdelta wrote at revision 1, through the tables as they were then."""
    engine = connect.open_engine(url)
    with engine.execution_options(kdelta_writes=True).begin() as connection:
        connect.migrate(connection, "0001")
        old = MetaData()
        old.reflect(connection)
        wanted, saved = experiment(), boot()
        connection.execute(
            insert(old.tables["experiment"]).values(
                id="first", created_at=wanted.created_at, kind="compare", mode="timed", command=wanted.command,
                kernel_count=2, boots_planned=4, document=codec.experiment_document(wanted),
            )
        )  # fmt: skip
        for index, kernel in enumerate(wanted.kernels):
            row = {
                "experiment_no": 1,
                "idx": index,
                "label": kernel.label,
                "release": kernel.release,
                "image_sha256": "ab",
            }
            connection.execute(insert(old.tables["kernel"]).values(**row))
        for index, case in enumerate(wanted.cases):
            keys = {"name_key": codec.key_of(case.name), "workload_key": codec.key_of(case.workload)}
            values = {"experiment_no": 1, "idx": index, "name": case.name, **keys}
            connection.execute(insert(old.tables["bench_case"]).values(**values))
        connection.execute(
            insert(old.tables["boot"]).values(
                experiment_no=1, block=0, slot=0, kernel=0, mitigations="default", state="ok",
                document=codec.boot_document(saved),
            )
        )  # fmt: skip
        logs = {"console": zlib.compress(saved.console), "stream": zlib.compress(saved.stream)}
        connection.execute(insert(old.tables["boot_log"]).values(boot_no=1, **logs))
        for run in saved.runs:
            figures = codec.pack(codec.figures_of(run, "timed"))
            light = {"boot_no": 1, "case_idx": run.case, "state": "ok", "why": "", "figures": figures}
            connection.execute(insert(old.tables["run"]).values(**light))
            connection.execute(
                insert(old.tables["run_detail"]).values(
                    boot_no=1, seq=run.case, case_idx=run.case, state="ok", why=codec.pack(""),
                    series=codec.squeeze(run.series), histograms=codec.squeeze(run.histograms),
                    facts=codec.pack(run.facts), profile=codec.squeeze(run.profile),
                )
            )  # fmt: skip
    engine.dispose()


def test_a_store_of_the_first_revision_keeps_its_data(url: str) -> None:
    fill_first_revision(url)
    with Store(url) as store:
        assert store.experiment("last") == experiment()
        assert store.boot("first", 0, 0) == boot()
        assert [n.value for n in store.numbers("first")] == [502.0, 1002.0]
        assert store.experiments()[0].note == ""
        store.tag("first", "old")
        store.note("first", "from revision 1")
        store.save_boot("first", boot(0, 1))
        assert store.history("pidfd_open")[0].tags == ("old",)


def test_a_migration_that_fails_changes_nothing(url: str) -> None:
    fill_first_revision(url)
    engine = connect.open_engine(url)
    writer = engine.execution_options(kdelta_writes=True)
    with writer.begin() as connection:
        connection.execute(text("CREATE TABLE floor (no INTEGER)"))  # in the way of the last step of revision 2
    with pytest.raises(HostError, match="already exists"):
        Store(url)
    with writer.begin() as connection:
        assert connect.revision(connection) == "0001"
        names = connection.execute(select(text("*")).select_from(text("experiment"))).keys()
        assert "note" not in set(names)
        connection.execute(text("DROP TABLE floor"))
    engine.dispose()
    with Store(url) as store:
        assert store.boot("first", 0, 0) == boot()
