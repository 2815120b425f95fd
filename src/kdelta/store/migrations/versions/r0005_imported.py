# SPDX-License-Identifier: GPL-2.0-or-later
"""Which experiments were imported: nothing that they name is run or read. Frozen: changes are new revisions.

From here on msgpack that is not compressed carries a checksum (store/codec.py); rows of before are read as they are.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; what an older kdelta imported cannot be told from what was measured here."""
    op.add_column("experiment", sa.Column("imported", sa.Boolean, nullable=False, server_default=sa.false()))
