"""What held a run where it was, and what made it change: a view of a run in, Explanations out.

Each explanation says what speaks for it and what against it. When nothing explains what was seen,
that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from volbench.analyse.bottleneck.bottleneck import explain_level
from volbench.analyse.bottleneck.cause import Cause, Explanation
from volbench.analyse.bottleneck.rate_changes import explain_events
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.run_rates import Rates, rates_of

__all__ = ["Cause", "Explanation", "explain"]

_BINDING = frozenset({Cause.CREDITS, Cause.CACHE_FULL, Cause.WRITE_CLIFF})
"""Events whose outcome is the level that a run ends at."""
_BY_EVENTS = frozenset({Cause.UNKNOWN, Cause.LATENCY, Cause.IOPS_LIMIT})
"""Levels that such an event explains better."""
_BY_CREDITS = _BY_EVENTS | {Cause.BANDWIDTH_LIMIT}
"""The same where credits ran out: their baseline is a limit, of I/Os or of bytes."""


def explain(
    view: RunView, direction: str, *, others: Sequence[RunView] = ()
) -> tuple[Explanation, ...]:
    """Explain one direction of a run: its bottleneck first, then what happened on the way.

    Args:
        view: the run.
        direction: ``read``, ``write`` or ``trim``.
        others: more runs of the campaign; another depth or block size on the same volume shows
            whether a level is a limit.

    Returns:
        At least one explanation, unless the run has no series; its cause is UNKNOWN when nothing
        explains the level.
    """
    rates = rates_of(view, direction)
    if rates is None:
        return ()
    events = explain_events(view, rates)
    level = explain_level(view, rates, others=_comparable(view, direction, others))
    binding = [event for event in events if event.cause in _BINDING]
    further = [event for event in events if event.cause not in _BINDING]
    ran_out = any(event.cause is Cause.CREDITS for event in binding)
    if binding and level.cause in (_BY_CREDITS if ran_out else _BY_EVENTS):
        return (*binding, *further)
    if further and level.cause is Cause.UNKNOWN and not binding:
        return (*further, level)
    return (level, *binding, *further)


def _comparable(
    view: RunView, direction: str, others: Sequence[RunView]
) -> list[tuple[RunView, Rates]]:
    """Return finished runs of the same direction on the same volume, with their rates."""
    found = []
    for other in others:
        same = other.run.volume.target == view.run.volume.target and other.run.host == view.run.host
        if other.run.id == view.run.id or not same or not other.is_finished:
            continue
        rates = rates_of(other, direction)
        if rates is not None:
            found.append((other, rates))
    return found
