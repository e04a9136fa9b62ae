"""rounds-not-steady: rounds ended, and what was tracked had not come to rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pandas as pd

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import percent, several
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.round_convergence import Determination, Variable, determination
from volbench.analyse.time.snia import MOST_RANGE, MOST_SLOPE, ROUNDS
from volbench.model.results.finding import Finding, Severity


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield one finding for a profile's rounds, at the last run of what is tracked."""
    rounds = view.campaign.rounds.get(view.run.profile)
    if rounds is None:
        return
    tracked = context.tracked.get(view.run.profile)
    if not tracked or tracked[-1].run.id != view.run.id:
        return
    summary = pd.concat([tracked_view.summary for tracked_view in tracked], ignore_index=True)
    found = determination(summary, rounds, profile=view.run.profile)
    if not found.is_steady:
        yield _finding(view, found)


def _finding(view: RunView, found: Determination) -> Finding:
    restless = [variable for variable in found.variables if not variable.judged.steady]
    if found.window is None:
        why = f"it takes {ROUNDS} rounds to tell"
    else:
        why = (
            f"over the last {ROUNDS} rounds {several([_words(variable) for variable in restless])}"
        )
    return RULE.finding(
        view,
        f"Profile {view.run.profile}: {found.words}: {why}.",
        {
            "rounds": float(found.rounds),
            "most_rounds": float(found.most),
            "not_steady": ", ".join(variable.track.name for variable in restless),
            "range_percent": _most(variable.judged.range_ratio for variable in restless),
            "slope_percent": _most(variable.judged.slope_ratio for variable in restless),
        },
    )


def _words(variable: Variable) -> str:
    """Return how far a variable is from passing; it lacks a round where nothing is known."""
    judged = variable.judged
    name = variable.track.name
    if math.isnan(judged.range_ratio):
        return f"{name} lacks a value"
    spread, change = percent(judged.range_ratio), percent(judged.slope_ratio)
    return f"{name} ranged over {spread} of its mean and changed by {change}"


def _most(ratios: Iterable[float]) -> float:
    """Return the largest as a percentage; NaN when none is known."""
    return max((100 * ratio for ratio in ratios if not math.isnan(ratio)), default=math.nan)


RULE = Rule(
    id="rounds-not-steady",
    title="rounds ended before they were steady",
    severity=Severity.WARNING,
    looks_at=(
        "The tracking variables of a profile with `rounds`, by the criterion of SNIA's Performance"
        " Test Specification 2.0.2 (2.1.24), as `volbench show --rounds` tells it: over five rounds"
        f" the range is at most {percent(MOST_RANGE)} of the mean, and the fitted line changes by"
        f" at most {percent(MOST_SLOPE)}. One finding for a profile, at the last run of a tracked"
        " job, when no five rounds pass for all variables at once: after all planned rounds, and"
        " after fewer when the campaign was stopped."
    ),
    why=(
        "What SNIA's tests report is the mean over the steady window. Without one, the mean of the"
        " last five rounds is a point on a curve that still moves, or the volume is noisier than"
        " the criterion allows."
    ),
    advice=(
        "Look at the chart of rounds. A curve that still falls needs more preconditioning or more"
        " rounds (rounds.max); volbench resume goes on where a campaign was stopped. Where values"
        " only jump about, quote their range beside the mean."
    ),
    check=check,
)
