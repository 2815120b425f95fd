# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of exact boots, by which a sweep finds what was measured before. Frozen: changes are new revisions."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; boots of before have no identity and are never taken over."""
    op.add_column("boot", sa.Column("identity", sa.String(64)))
    op.create_index("boot_identity", "boot", ["identity"])
