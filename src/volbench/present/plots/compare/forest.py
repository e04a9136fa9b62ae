"""Forest plot of a comparison: the ratio of each cell to its base, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, Verdict
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.labels import rows_height_in, wrap_name
from volbench.present.plots.metrics import rows_axis
from volbench.present.tables.compare_table import measure_name, notes

_VERDICTS = (
    Series(Verdict.FASTER, "faster", "palette-0"),
    Series(Verdict.SLOWER, "slower", "palette-1"),
    Series(Verdict.SAME, "same within the tolerance", "palette-2", "square"),
    Series(Verdict.NOT_SHOWN, Verdict.NOT_SHOWN.value, "muted", "circle"),
    Series(Verdict.TOO_FEW, "no interval: too few repeats", "muted", "diamond"),
)
# Markers of faster and slower point towards the estimate, so that greyscale prints show it
_SIDES = (Series("above", "", "ink", "right"), Series("below", "", "ink", "left"))
_MOST_ABREAST = 3
_ROW_IN = 0.46  # Minimum height of a row: its ratio stands above its point
# Minimum span of a panel, so that noise does not look like a difference
_NARROWEST = math.log(1.05)
_WIDE = math.log(3)  # Span above which even steps would crowd at one end of a logarithmic axis


def forest_plot(comparison: Comparison, *, title: str = "") -> Plot:
    """Return the ratio of each comparison with its interval; 1 is the base.

    Args:
        comparison: at least one row.

    Returns:
        A panel for each metric, side by side up to three; a row for each cell and candidate.
    """
    rows = comparison.rows
    metrics = list(dict.fromkeys(measure_name(row.measure) for row in rows))
    names = list(dict.fromkeys(_name(row, rows) for row in rows))
    data = _data(rows, names)
    wrapped = [wrap_name(printable(name)) for name in names]
    panels = []
    for metric in metrics:
        first = next(row for row in rows if measure_name(row.measure) == metric)
        own = data[data["_metric"] == metric]
        panels.append(replace(_panel(own, first), y=rows_axis(wrapped), title=metric))
    height_in = max(rows_height_in(wrapped), _ROW_IN * len(wrapped))
    remarks = (*notes(comparison)[1:3], *comparison.remarks[:3])
    return replace(
        grid(panels, height_in=height_in + 0.2, abreast=_MOST_ABREAST),
        series=(*(s for s in _VERDICTS if s.key in set(data["_verdict"])), *_SIDES),
        caption=tuple(text.rstrip(".") for text in remarks),
        shared_y=True,
        name="compare",
        title=title or _title(rows),
    )


def _data(rows: Sequence[Compared], names: Sequence[str]) -> pd.DataFrame:
    """Return a row per comparison: estimate and ends of the ratio, or why there is none."""
    intervals = [row.interval for row in rows]
    return pd.DataFrame(
        {
            "label": [row.label for row in rows],
            "direction": [row.direction for row in rows],
            "candidate": [row.candidate for row in rows],
            "ratio": [row.ratio for row in rows],
            "ratio_low": [own.low if own else math.nan for own in intervals],
            "ratio_high": [own.high if own else math.nan for own in intervals],
            "verdict": [row.verdict.value for row in rows],
            "_metric": [measure_name(row.measure) for row in rows],
            "_verdict": ["" if math.isnan(row.ratio) else row.verdict for row in rows],
            "_shape": [_shape(row) for row in rows],
            "_row": [names.index(_name(row, rows)) for row in rows],
            "_x": [1.0 if math.isnan(row.ratio) else row.ratio for row in rows],
            "_text": [_text(row) for row in rows],
        }
    )


def _shape(row: Compared) -> str:
    if row.verdict not in {Verdict.FASTER, Verdict.SLOWER}:
        return str(row.verdict)
    return "above" if row.ratio > 1 else "below"


def _text(row: Compared) -> str:
    """Return the ratio, or why there is none; nothing for a difference that may be chance."""
    if math.isnan(row.ratio):
        return row.shortage
    return "" if row.verdict is Verdict.NOT_SHOWN else f"{row.ratio:.3g}x"


def _panel(data: pd.DataFrame, first: Compared) -> Panel:
    """Draw the rows of one metric, of which `first` has direction and tolerance."""
    tolerance = first.tolerance
    known, unknown = data[data["ratio"].notna()], data[data["ratio"].isna()]
    judged = data[data["ratio_low"].notna()]
    better = "right" if first.measure.more_is_better else "left"
    ends = _limits(known, tolerance or 0)
    tolerated = (
        () if tolerance is None else (marks.Span(1 - tolerance, 1 + tolerance, series="pale"),)
    )
    return Panel(
        x=Axis(
            f"times the base; better is to the {better}",
            scale="log",
            limits=(math.exp(ends[0]), math.exp(ends[1])),
            ticks=tuple(_ticks(*ends)),
        ),
        y=Axis(),
        marks=(
            *tolerated,
            marks.ReferenceLine(1.0, "x", dash="solid", width=0.9),
            marks.Whiskers(
                judged,
                by="_verdict",
                low="ratio_low",
                high="ratio_high",
                width=2.2,
                has_caps=False,
            ),
            marks.Points(known, by="_verdict", marker_of="_shape", x="ratio", y="_row", size=7),
            marks.Texts(
                known, by="_verdict", y="_row", offset_pt=(0, 6), align="center", valign="bottom"
            ),
            marks.Texts(
                unknown, series="muted", y="_row", align="center", is_italic=True, is_boxed=True
            ),
        ),
    )


def _limits(known: pd.DataFrame, tolerance: float) -> tuple[float, float]:
    """Return the logarithms of the ends of an axis that shows every interval and 1."""
    names = ("ratio", "ratio_low", "ratio_high")
    ends = [math.log(end) for name in names for end in known[name].dropna()]
    low = min([*ends, -_NARROWEST, math.log(1 - tolerance)])
    high = max([*ends, _NARROWEST, math.log(1 + tolerance)])
    margin = 0.08 * (high - low)
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Return up to seven round ratios between two logarithms, 1 among them."""
    for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if high - low < _WIDE else ():
        ticks = [1 + step * place for place in range(-199, 2000)]
        shown = [tick for tick in ticks if tick > 0 and low <= math.log(tick) <= high]
        if len(shown) <= 6:
            return shown
    powers = [m * 10.0**exponent for exponent in range(-6, 7) for m in (1, 2, 5)]
    shown = [tick for tick in powers if low <= math.log(tick) <= high]
    return shown if len(shown) <= 7 else [tick for tick in shown if f"{tick:e}"[0] == "1"]


def _name(row: Compared, rows: Sequence[Compared]) -> str:
    parts = [row.label, row.direction, *row.by.values()]
    if len({other.candidate for other in rows}) > 1:
        parts.append(f"({row.candidate})")
    return " ".join(parts)


def _title(rows: Sequence[Compared]) -> str:
    candidates = list(dict.fromkeys(row.candidate for row in rows))
    names = candidates[0] if len(candidates) == 1 else f"{len(candidates)} candidates"
    return f"{names} against {rows[0].base}"
