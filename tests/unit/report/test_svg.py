# SPDX-License-Identifier: GPL-2.0-or-later
"""Series of a chart: told apart by more than their colour, in the chart as in its legend."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from kdelta.report import svg


def shape(element: ET.Element) -> str:
    return element.tag + re.sub(r"^M[-\d.]+ [-\d.]+", "", element.get("d") or "")


def test_no_two_series_look_alike_and_their_legend_looks_as_they_do() -> None:
    looks = []
    for series in range(24):
        area = svg.canvas("x", "x", "x", 100)
        svg.polyline(area, [(1.0, 2.0), (3.0, 4.0)], series)
        line, dot, _ = area.root[2:]
        looks.append((line.get("class"), shape(dot)))
        there, marker = ET.fromstring(svg.swatch(series))
        assert (there.get("class"), shape(marker)) == looks[-1] and marker.get("class") == dot.get("class")
    assert len(set(looks)) == 24
    assert len({classes for classes, _ in looks}) == 24, "lines without a dot near, too"


def test_each_look_has_its_rule() -> None:
    style = Path(svg.__file__).with_name("templates").joinpath("report.css").read_text(encoding="utf-8")
    for colour, dash in ((f".s{n} {{", f".line.d{n} {{") for n in range(svg.SERIES)):
        assert colour in style
        assert dash in style or dash == ".line.d0 {" or int(dash[7]) >= svg.DASHES
