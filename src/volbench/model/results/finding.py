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
    """A data-quality warning about a run."""

    rule: str  # ID of the rule, such as ``cold-blocks``
    severity: Severity  # note, warning or invalid
    run: str  # ID of the run
    message: str  # the observation, one sentence with its numbers
    why: str  # significance, one or two sentences
    advice: str  # recommended next step
    # name with its unit to number or text, such as ``{"ratio": 12.3}``
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    direction: str | None = None  # ``read``, ``write`` or ``trim``; None for the whole run
    from_s: float | None = None  # start of the affected interval; None for the whole run
    to_s: float | None = None  # end of the affected interval; None for the whole run
