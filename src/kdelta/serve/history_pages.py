# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages over all experiments: the list, a case's history, any two kernels side by side."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kdelta.model import Experiment
from kdelta.report import steps
from kdelta.report.scrub import clean
from kdelta.results import labels, outcomes
from kdelta.serve import checks, compared, lists, page, trend
from kdelta.store.store import Store

EXPERIMENTS_PER_PAGE = 40
HISTORY_SHOWN = 1000
PATIENCE_S = 2.0  # a reader's, with a filter that needs what each experiment came to: 20 ms of CPU time each
FILTERS = ("kind", "tag", "text", "kernel", "case", "verdict")


class HistoryPages:
    """Handlers."""

    def __init__(self, store: Store) -> None:
        self._store, self._outcomes = store, outcomes.Outcomes(store)

    def experiments(self, request: Request) -> Response:
        """All experiments, the newest first."""
        chosen = {name: request.query_params.get(name, "") for name in FILTERS}
        rows, cases = self._store.experiments(), self._store.case_names()
        kernels = sorted({label for row in rows for label in row.kernels})
        for name, known in (("kernel", kernels), ("case", cases)):
            chosen[name] = lists.picked(known, chosen[name]) or chosen[name]
        found = lists.matching(rows, chosen["kind"], chosen["tag"], chosen["text"], chosen["kernel"])
        unread = 0
        if chosen["case"] or chosen["verdict"]:
            outcome = self._outcomes.known(found, None if request.scope.get(page.STATIC) else PATIENCE_S)
            unread = len(found) - len(outcome)
            found = [row for row in found if row.id in outcome and _fits(outcome[row.id], chosen)]
        shown = lists.page(found, page.number(request, "page", 1), EXPERIMENTS_PER_PAGE)
        told = {row.id: self._outcomes.of(row) for row in shown.rows}
        return page.draw(
            "experiments.html",
            request,
            found=shown,
            outcomes=told,
            kinds=sorted({row.kind for row in rows}),
            tags=sorted({name for row in rows for name in row.tags}),
            kernels=kernels,
            cases=cases,
            verdicts=[
                word
                for word in outcomes.WORDS
                if word not in outcomes.SELDOM
                or word == chosen["verdict"]
                or any(one.has(word) for one in told.values())
            ],
            chosen=chosen,
            empty=not rows,
            unread=unread,
        )

    def history(self, request: Request) -> Response:
        """One case and metric over all experiments, as a chart and as a table."""
        cases = self._store.case_names()
        case = lists.picked(cases, request.query_params.get("case", "")) or (cases[0] if cases else "")
        # a workload's name finds all of its cases, and each has a history of its own
        rows = [row for row in self._store.history(case) if row.case == case] if case else []
        tags = sorted({name for row in rows for name in row.tags})
        tag = request.query_params.get("tag", "")
        rows = [row for row in rows if not tag or tag in row.tags]
        metrics = list(dict.fromkeys(row.metric for row in rows))
        metric = lists.picked(metrics, request.query_params.get("metric", "")) or (metrics[0] if metrics else "")
        rows = [row for row in rows if row.metric == metric]
        rows = labels.apart(rows)
        axis = trend.axis(rows, request.query_params.get("by", ""))
        return page.draw(
            "history.html",
            request,
            cases=cases,
            metrics=metrics,
            tags=tags,
            chosen={"case": case, "metric": metric, "tag": tag, "by": axis},
            figure=trend.of_case(rows, axis, self._steps(case, metric)) if rows else None,
            rows=rows[: -HISTORY_SHOWN - 1 : -1],
            left_out=max(0, len(rows) - HISTORY_SHOWN),
            better=rows[-1].better if rows else "lower",
            instead={
                word: (name, shown)
                for word, shown in (("case", case), ("metric", metric))
                if shown and (name := request.query_params.get(word, "")) and not lists.picked([shown], name)
            },
        )

    def _steps(self, case: str, metric: str) -> dict[str, str]:
        """Announced steps of a case, by the first kernel behind each."""
        return {
            step.first: f"step at {step.first}: {steps.figure(step)}, {step.state} {step.note}"
            for step in self._store.steps()
            if (step.case, step.metric) == (case, metric)
        }

    def compare(self, request: Request) -> Response:
        """Any two kernels, whatever experiments they are from: figures and no verdict."""
        homes = compared.homes(row for row in self._store.experiments() if row.kind not in checks.KINDS)
        sides = [self._side(request, name, homes) for name in ("a", "b")]
        found = [self._figures(*side) for side in sides if side is not None]
        return page.draw(
            "compare.html",
            request,
            homes=homes,
            sides=sides,
            gone=[text for name in ("a", "b") for text in _gone(request, name, homes)],
            kernels=[experiment.kernels[index] for experiment, index, _ in found],
            lines=compared.lines(found[0][2], found[1][2]) if len(found) == 2 else (),
            unlike=compared.unlike(found[0][0], found[1][0]) if len(found) == 2 else (),
            together=len(found) == 2 and found[0][0].id == found[1][0].id and found[0][1] != found[1][1],
        )

    def _side(self, request: Request, name: str, homes: dict[str, tuple[str, ...]]) -> tuple[str, str] | None:
        """(label, experiment) as chosen; the newest experiment where none was."""
        label = lists.picked(list(homes), request.query_params.get(name, ""))
        if label is None:
            return None
        return label, lists.picked(homes[label], request.query_params.get(f"{name}x", "")) or homes[label][0]

    def _figures(self, label: str, experiment_id: str) -> tuple[Experiment, int, dict[compared.Name, compared.Figure]]:
        experiment = self._store.experiment(experiment_id)
        index = next(i for i, kernel in enumerate(experiment.kernels) if _same(kernel.label, label))
        return experiment, index, compared.figures(experiment, self._store.numbers(experiment.id), index)


def _gone(request: Request, name: str, homes: dict[str, tuple[str, ...]]) -> list[str]:
    """What a link or a bookmark asks for of one side, and the store has no more."""
    asked, experiment = request.query_params.get(name, ""), request.query_params.get(f"{name}x", "")
    label = lists.picked(list(homes), asked)
    if asked and label is None:
        return [f"No experiment has measured {clean(asked, 64)}, or it was deleted: choose another kernel."]
    if label is not None and experiment and lists.picked(homes[label], experiment) is None:
        return [
            f"Experiment {clean(experiment, 64)} has no figures of {clean(label, 64)}, or it was deleted: its newest "
            "experiment stands here instead."
        ]
    return []


def _same(label: str, column: str) -> bool:
    """Whether a label is the one that a database's column holds: a NUL does not fit there."""
    return label == column or label.replace("\0", "\ufffd") == column


def _fits(outcome: outcomes.Outcome, chosen: dict[str, str]) -> bool:
    case, verdict = chosen["case"], chosen["verdict"]
    return (not case or case in outcome.cases) and (not verdict or outcome.has(verdict))
