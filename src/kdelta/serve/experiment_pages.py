# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of one experiment: the overview, and its report in every format."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kdelta.model import Experiment
from kdelta.report import html, registry
from kdelta.report.charts import intervals
from kdelta.report.heatmap import ALL, SIGNS, heat_maps, largest
from kdelta.serve import checks, drill, page
from kdelta.serve.results import Depth, Results
from kdelta.store.store import Store

_MEDIA = {"html": "text/html", "json": "application/json"}  # everything else is shown as text


class ExperimentPages:
    """Handlers; ``id`` in their path is an experiment's id, the beginning of one, or ``last``."""

    def __init__(self, store: Store, results: Results) -> None:
        self._store, self._results = store, results

    def _experiment(self, request: Request) -> Experiment:
        with page.looked_up():
            return self._store.experiment(request.path_params["id"])

    def overview(self, request: Request) -> Response:
        """What an experiment found, with ways to the functions, boots and reports behind it."""
        experiment = self._experiment(request)
        told = checks.told(self._store, experiment)
        result, detail, view = self._results.view_of(experiment, Depth.STEPS)
        maps = heat_maps(view.sweeps)
        return page.draw(
            "experiment.html",
            request,
            view=view,
            told=told,
            beside=checks.beside(self._store, experiment),
            maps=maps,
            largest=largest(view.sweeps),
            signs=(*SIGNS, ALL),
            row=next(row for row in self._store.experiments() if row.id == result.experiment.id),
            drawn=intervals(view),
            charts=html.steps(view),
            drill=drill.of_cells(result, view),
            stacks=drill.with_stacks(result, view, detail),
            steps=drill.of_steps(result.experiment, detail),
            cases=[case.name for case in result.experiment.cases],
            faulty=[boot for boot in self._store.boots(result.experiment.id) if boot.state != "ok"],
            labels=[kernel.label for kernel in result.experiment.kernels],
            formats=["json"] if told else [name for name in registry.formats() if name != "html"],
        )

    def report(self, request: Request) -> Response:
        """The report in one of its formats, as ``kdelta report`` writes it."""
        with page.looked_up():
            chosen = registry.find(request.path_params.get("format", "html"))
        experiment = self._experiment(request)
        if told := checks.told(self._store, experiment):
            return self._told(told, experiment, chosen.name)
        depth = Depth.ALL if chosen.hidden else Depth.ROWS
        text = chosen.render(self._results.view_of(experiment, depth)[2])
        content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        headers = {"content-security-policy": page.REPORT_POLICY} if chosen.name == "html" else None
        return Response(content, media_type=_MEDIA.get(chosen.name, "text/plain"), headers=headers)

    @staticmethod
    def _told(told: checks.Told, experiment: Experiment, name: str) -> Response:
        """A trace or a leak check, which is JSON or text and nothing else, whatever way leads here."""
        if name not in ("html", "terminal", "json"):
            what = "a trace" if experiment.kind == "trace" else "a check for leaks"
            raise page.Missing(f"Experiment {experiment.id} is {what}, which is text or JSON.")
        as_json = name == "json"
        text = told.json if as_json else told.text
        return Response(text.encode("utf-8", "replace"), media_type=_MEDIA["json"] if as_json else "text/plain")

    def json(self, request: Request) -> Response:
        """The result as JSON, schema kdelta/1."""
        request.path_params["format"] = "json"
        return self.report(request)
