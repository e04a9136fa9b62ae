"""Rows of the verdicts frame: steadiness and bottleneck of each run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.sustained_level import Level
from volbench.analyse.frames.disturbed import disturbed
from volbench.analyse.frames.run_view import RunView, directions, rate_per_s
from volbench.analyse.time.round_convergence import Snia, snia_rounds
from volbench.analyse.time.steady_state import Steadiness
from volbench.model.frames.columns import run_identity
from volbench.model.results.finding import Explanation

Row = dict[str, object]


def verdict_rows(context: Context, views: Sequence[RunView] | None = None) -> list[Row]:
    """Return a row for each finished run and direction that has a series.

    Args:
        views: those to judge; None for all.
    """
    return [
        row
        for view in (context.views if views is None else views)
        if view.is_finished
        for direction in directions(view)
        for row in _rows(view, direction, context)
    ]


def _rows(view: RunView, direction: str, context: Context) -> Sequence[Row]:
    t_s, iops = rate_per_s(view, "iops", direction=direction)
    if not len(t_s):
        return ()
    return (
        {
            **run_identity(view.campaign, view.run, view.run.job),
            "direction": direction,
            "disturbed_percent": 100 * float(disturbed(view).at(t_s).mean()),
            **_steadiness(context.steadiness(view, direction)),
            **_steady_end(context.steady_end(view, direction)),
            **_level(context.level(view, direction)),
            **_snia(snia_rounds(t_s, iops)),
            **_explained(
                [
                    explanation
                    for explanation in context.explanations(view)
                    if explanation.direction == direction
                ]
            ),
        },
    )


def _steadiness(judged: Steadiness) -> Row:
    return {
        "verdict": judged.state.value,
        "from_s": judged.from_s,
        "to_s": judged.to_s,
        "block_s": judged.block_s,
        "blocks": judged.blocks,
        "iops": judged.median,
        "spread_percent": _percent(judged.spread),
        "drift_percent": _percent(judged.drift),
        "drift_bound_percent": _percent(judged.drift_bound),
        "changes": len(judged.changes),
    }


def _steady_end(stretch: Steadiness | None) -> Row:
    if stretch is None:
        return {"steady_from_s": None, "steady_iops": None}
    return {"steady_from_s": stretch.from_s, "steady_iops": stretch.median}


def _level(found: Level | None) -> Row:
    if found is None:
        return {"level_iops": None, "level_low_iops": None, "level_high_iops": None}
    return {
        "level_iops": found.iops,
        "level_low_iops": found.low_iops,
        "level_high_iops": found.high_iops,
    }


def _snia(judged: Snia) -> Row:
    is_known = math.isfinite(judged.range_ratio)
    return {
        "snia_steady": judged.steady if is_known else None,
        "snia_round": judged.at_round,
        "snia_range_percent": _percent(judged.range_ratio),
        "snia_slope_percent": _percent(judged.slope_ratio),
    }


def _explained(explanations: Sequence[Explanation]) -> Row:
    if not explanations:
        return {"bottleneck": None, "bottleneck_level": None, "causes": None, "explanation": None}
    return {
        "causes": ", ".join(dict.fromkeys(each.cause.value for each in explanations)),
        "bottleneck": explanations[0].cause.value,
        "bottleneck_level": explanations[0].level,
        "explanation": " | ".join(explanation.text for explanation in explanations),
    }


def _percent(share: float) -> float | None:
    return 100 * share if math.isfinite(share) else None
