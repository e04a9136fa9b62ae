"""A doubt about a run's numbers, with its evidence: finding, Severity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs.

    A note is context that a reader should know. A warning puts the number in doubt. What is
    invalid does not measure what it claims to.
    """

    NOTE = "note"
    WARNING = "warning"
    INVALID = "invalid"


@dataclass(frozen=True)
class Finding:
    """A doubt about a run.

    Attributes:
        rule: id of the rule, such as ``cold-blocks``.
        severity: note, warning or invalid.
        run: id of the run.
        message: what was seen, one sentence with its numbers.
        why: why it matters, one or two sentences.
        advice: what to do next.
        evidence: name with its unit to number or text, such as ``{"ratio": 12.3}``.
        direction: ``read``, ``write`` or ``trim``; None for the whole run.
        from_s: start of the time it is about; None for the whole run.
        to_s: end of the time it is about; None for the whole run.
    """

    rule: str
    severity: Severity
    run: str
    message: str
    why: str
    advice: str
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    direction: str | None = None
    from_s: float | None = None
    to_s: float | None = None
