"""Findings: data-quality warnings about a run, with severity and evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding.

    A note is context for the reader. A warning casts doubt on a number. An invalid result does
    not measure what it claims to.
    """

    NOTE = "note"
    WARNING = "warning"
    INVALID = "invalid"


@dataclass(frozen=True)
class Finding:
    """A data-quality warning about a run.

    Attributes:
        rule: ID of the rule, such as ``cold-blocks``.
        severity: note, warning or invalid.
        run: ID of the run.
        message: the observation, one sentence with its numbers.
        why: significance, one or two sentences.
        advice: recommended next step.
        evidence: name with its unit to number or text, such as ``{"ratio": 12.3}``.
        direction: ``read``, ``write`` or ``trim``; None for the whole run.
        from_s: start of the affected interval; None for the whole run.
        to_s: end of the affected interval; None for the whole run.
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
