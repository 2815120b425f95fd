# SPDX-License-Identifier: GPL-2.0-or-later
"""Run by alembic inside the connection and transaction that ``connect.migrate`` opened; there is no alembic.ini."""

from alembic import context

from kdelta.store.tables import REVISION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=REVISION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
