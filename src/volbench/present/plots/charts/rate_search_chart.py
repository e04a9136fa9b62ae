"""Latency over the rate of each search for the highest rate within a latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.compare.rate_search import FoundRate, Level, searches_in
from volbench.analyse.frames.design import Design, design_of
from volbench.analyse.frames.job_frames import measured, plain_rows
from volbench.model.frames.expectation import Expectation, parse_expectation
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.labels import marker
from volbench.present.plots.marks import Dash
from volbench.present.plots.metrics import IOPS, log_limits
from volbench.present.plots.selection import not_shown
from volbench.present.rate_words import rate_sentences, search_names
from volbench.units import format_latency

_DASHES: tuple[Dash, ...] = ("solid", "dotted", "dashdot", "dashed")  # One for each search
_PANEL_IN = 3.2
_FAR = 10.0  # Ratio of latencies from which their axis is logarithmic


@dataclass(frozen=True)
class Searches:
    """Searches with the design that names them."""

    design: Design
    found: Sequence[FoundRate]

    @property
    def within(self) -> list[str]:
        """The bounds of all searches."""
        return [*dict.fromkeys(text for search in self.found for text in search.within)]


def read_searches(frames: Frames, _options: Options) -> Searches | str:
    """Return the searches among results, or why there is none."""
    rows = measured(frames["summary"])
    design = design_of(plain_rows(rows[rows["direction"] != "sync"]))
    found = searches_in(design.rows)
    return Searches(design, found) if found else "no job has within: a bound on a latency"


def build_searches(searches: Searches) -> Plot:
    """Draw a panel for each bound, with the trials of each search."""
    names = search_names(searches.design, searches.found)
    shown = searches.found[: len(_DASHES)]
    rows = pd.DataFrame(
        [row for number, found in enumerate(shown) for row in _rows(found, number, names[number])]
    )
    series = [
        Series(f"s{number}", printable(name) or "kept", f"palette-{number}", marker(number))
        for number, name in enumerate(names[: len(shown)])
    ]
    lines = [
        Series(f"mean{number}", "", f"palette-{number}", dash=dash)
        for number, dash in enumerate(_DASHES[: len(shown)])
    ]
    panels = [_bound_panel(parse_expectation(text), text, rows, shown) for text in searches.within]
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=2),
        answer=" ".join(rate_sentences(searches.design)),
        series=(*series, *lines, Series("bound", "bound", "ink", dash="dashed")),
        caption=(
            "Filled points kept the bounds at the rate that was asked for, hollow ones did not",
            "Upright line: the highest rate that kept them" if any(map(_answer, shown)) else "",
            not_shown(len(shown), len(names), "searches"),
        ),
        rows=rows,
    )


def _rows(found: FoundRate, number: int, name: str) -> list[dict[str, object]]:
    return [
        {
            "search": name,
            "asked_iops": trial.asked or None,
            "iops": trial.rate,
            "bound": text,
            "latency_s": trial.values[place],
            "kept": trial.is_kept,
            "_series": f"s{number}",
        }
        for place, text in enumerate(found.within)
        for trial in found.search.trials
    ]


def _answer(found: FoundRate) -> Level | None:
    return None if found.search.is_contradictory else found.search.kept


def _bound_panel(
    bound: Expectation, text: str, rows: pd.DataFrame, searches: Sequence[FoundRate]
) -> Panel:
    own = rows[rows["bound"] == text]
    values = [*own["latency_s"], bound.bound]
    low, high = min(values), max(values)
    y = Axis(f"{bound.metric} latency", "latency", limits=(0.0, 1.1 * high))
    if high > _FAR * low > 0:
        limits = log_limits(values, room=(0.75, 1.35))
        y = Axis(f"{bound.metric} latency (logarithmic)", "latency", "log", limits)
    lines = [
        marks.ReferenceLine(level.rate, "x", IOPS.text(level.rate), series=f"s{number}")
        for number, found in enumerate(searches)
        if text in found.within and (level := _answer(found))
    ]
    return Panel(
        x=IOPS.axis(1.12 * float(own["iops"].max()), label="IOPS that were done"),
        y=y,
        marks=(
            marks.Lines(_means(text, searches), by="_series", group="_series", width=0.8),
            marks.ReferenceLine(
                bound.bound, "y", f"{bound.metric} {bound.written_bound}", series="bound"
            ),
            *lines,
            marks.Points(own[own["kept"]], x="iops", y="latency_s", by="_series"),
            marks.Points(own[~own["kept"]], x="iops", y="latency_s", by="_series", is_hollow=True),
        ),
    )


def _means(text: str, searches: Sequence[FoundRate]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "_x": level.rate,
                "_y": level.value(found.within.index(text)),
                "_series": f"mean{number}",
            }
            for number, found in enumerate(searches)
            if text in found.within
            for level in sorted(found.search.levels, key=lambda level: level.rate)
        ]
    )


def describe_searches(searches: Searches) -> str:
    """Return the answers in words."""
    worst = max(max(trial.values) for found in searches.found for trial in found.search.trials)
    top = max(trial.rate for found in searches.found for trial in found.search.trials)
    ends = f"up to {IOPS.text(top)} IOPS and {format_latency(worst)}"
    count = sum(len(found.search.trials) for found in searches.found)
    return f"{count} trials, {ends}. {' '.join(rate_sentences(searches.design))}"


WITHIN_CHART = Kind(
    name="within",
    title="Highest rate within a latency",
    help="Latency over the rate of each search for the highest rate within a latency, with the "
    "bound and the answer.",
    needs="a job with within",
    read=read_searches,
    build=build_searches,
    describe=describe_searches,
    concludes=True,
)
