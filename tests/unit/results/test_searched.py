# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a bisection names the commit that it came to."""

from __future__ import annotations

from pathlib import Path

from kdelta.model import Annotations, Culprit, Search, plans
from kdelta.report import view
from kdelta.results import answer, searched
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment

PLAN = plans.Bisect(tree="/linux", good="a" * 40, bad="d" * 40, metric="instructions")


def test_a_bisection_begins_with_the_commit_that_it_came_to(tmp_path: Path) -> None:
    """It began with how many commits were regressed; the largest was one behind the culprit."""
    commits = ("a" * 12, "d" * 12, "b" * 12, "c" * 12)
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        told = Annotations(search=Search(confirmation="proof"))
        store.create(experiment("search", commits, plan=PLAN, blocks=1, annotations=told))
        for slot, cost in enumerate((1000, 1200, 1000, 1190)):
            store.save_boot("search", boot(0, slot, cost=cost))
        assert searched.culprit(store.experiment("search"), store) is None, "the comparison did not come with it"
        store.create(experiment("proof", ("b" * 12, "c" * 12)))
        found = answer.result(store, "search")[0]
        assert found.culprit == Culprit(commit="c" * 12, before="b" * 12, comparison="proof")
        headline = view.build(found).headline.text
        assert headline.startswith("The search came to cccccccccccc: experiment proof compares it with bbbbbbbbbbbb. ")
        assert "pidfd_open has no verdict on dddddddddddd" in headline, "one block"
        assert answer.result(store, "proof")[0].culprit is None
