# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans and annotations instead of a kind and a bag of texts. Frozen: changes are new revisions."""

import json
import zlib

import sqlalchemy as sa
from alembic import op

from kdelta.store.old_documents import upgraded

revision = "0004"
down_revision = "0003"

_experiment = sa.table("experiment", sa.column("no", sa.Integer), sa.column("document", sa.LargeBinary))


def upgrade() -> None:
    """Rewrite every experiment's document, one at a time; all else stays."""
    connection = op.get_bind()
    for no in connection.execute(sa.select(_experiment.c.no)).scalars().all():
        here = _experiment.c.no == no
        document = connection.execute(sa.select(_experiment.c.document).where(here)).scalar_one()
        try:
            text = json.dumps(upgraded(json.loads(zlib.decompress(document))), ensure_ascii=False)
        except (zlib.error, ValueError, KeyError, TypeError):
            continue  # damaged: it stays as it is, and says so when it is asked for
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"), 6)
        connection.execute(sa.update(_experiment).where(here).values(document=packed))
