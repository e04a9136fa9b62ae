"""Verdicts on whether the rate of a run was steady."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The verdict."""

    STEADY = "steady"
    DRIFTING = "drifting"
    STEPPED = "stepped"
    NOISY = "noisy"
    TOO_SHORT = "too-short"
