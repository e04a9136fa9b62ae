"""What a host's clock was ahead in, its times by the controller's clock out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import TypeVar

_T = TypeVar("_T")


def clock_offset_s(status: Mapping[str, object]) -> float:
    """Return the seconds that the clock of a run's host was ahead of the controller's.

    Args:
        status: of the run; 0 when it tells none, as of a run that started alone.
    """
    start = status.get("start")
    recorded = start.get("clock_offset_s") if isinstance(start, Mapping) else None
    offset_s = float(recorded) if isinstance(recorded, Real) else 0.0
    return offset_s if math.isfinite(offset_s) else 0.0


def start_columns(status: Mapping[str, object]) -> dict[str, float | None]:
    """Return how a run's start among others went, for the summary; nothing where it was alone."""
    start = status.get("start")
    if not isinstance(start, Mapping):
        return {}
    start_s, late_s = start.get("start_s"), start.get("late_s")
    is_known = isinstance(start_s, Real) and isinstance(late_s, Real)
    recorded = {
        "step_start_s": start_s + late_s if is_known else None,
        "start_late_s": start.get("late_s"),
        "clock_offset_s": start.get("clock_offset_s"),
        "clock_bound_s": start.get("clock_bound_s"),
    }
    return {name: float(value) for name, value in recorded.items() if isinstance(value, Real)}


def shifted_utc(utc: _T, *, by_s: float) -> _T | str:
    """Return an instant later by some seconds; what is no text, and by 0 s, as it was.

    Args:
        utc: ISO 8601 with Z; None if it is unknown.
        by_s: seconds; negative for earlier.
    """
    if not isinstance(utc, str) or not by_s:
        return utc
    later = datetime.fromisoformat(utc) + timedelta(seconds=by_s)
    return later.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
