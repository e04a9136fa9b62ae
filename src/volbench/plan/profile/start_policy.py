"""``start``, ``stagger`` and ``clients`` of a profile: values enter, what is wrong leaves."""

from __future__ import annotations

from volbench.errors import InputError
from volbench.model.profile.profile_model import Start
from volbench.units import parse_duration

MOST_CLIENTS = 1000
"""Processes side by side; more on one host would measure its memory."""
LEAST_STAGGER_S = 0.1
"""fio itself starts to within some 50 ms of what it was told (measured with 3.33)."""


def read_stagger(text: str) -> float:
    """Return the seconds between the starts of two clients.

    Raises:
        InputError: no duration, or one too short to tell starts apart.
    """
    stagger_s = parse_duration(text)
    if stagger_s < LEAST_STAGGER_S:
        raise InputError(
            f"{text!r} is too short to tell starts apart",
            hint="write at least 100ms, or start: together",
        )
    return stagger_s


def start_problem(start: Start, stagger_s: float) -> tuple[str, str, str] | None:
    """Return key, message and hint where start and stagger don't fit; None where they do."""
    if start is Start.STAGGERED and not stagger_s:
        return "start", "staggered starts need the time between two of them", "add stagger: 20s"
    if stagger_s and start is not Start.STAGGERED:
        return (
            "stagger",
            f"a stagger has no meaning with start: {start.value}",
            "add start: staggered, or take stagger away",
        )
    return None
