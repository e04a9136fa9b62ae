"""Findings and explanations: data-quality warnings about a run, and causes of its rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from volbench.units import format_capacity, format_duration


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


class Cause(StrEnum):
    """Cause of a level of the rate, or of a change."""

    IOPS_LIMIT = "iops-limit"
    BANDWIDTH_LIMIT = "bandwidth-limit"
    CREDITS = "credits"
    SLOWER = "slower"
    RAMP_UP = "ramp-up"
    NEIGHBOUR = "neighbour"
    HOST_NOISE = "host-noise"
    WARMING = "warming"
    STALL = "stall"
    REDUCTION = "data-reduction"
    CPU = "cpu"
    LATENCY = "latency"
    UNKNOWN = "unknown"


WORDS: Mapping[Cause, str] = {
    Cause.IOPS_LIMIT: "throttled in IOPS",
    Cause.BANDWIDTH_LIMIT: "throttled in bandwidth",
    Cause.CREDITS: "burst credits ran out",
    Cause.SLOWER: "slower than at the start",
    Cause.RAMP_UP: "ramp-up of the first seconds",
    Cause.NEIGHBOUR: "load of other clients",
    Cause.HOST_NOISE: "other load on the host",
    Cause.WARMING: "cold blocks warming up",
    Cause.STALL: "no I/O completed for a while",
    Cause.REDUCTION: "compression or deduplication of the data written",
    Cause.CPU: "limited by the CPU",
    Cause.LATENCY: "limited by latency, not saturated",
    Cause.UNKNOWN: "cause unknown",
}


@dataclass(frozen=True)
class Explanation:
    """A cause with the evidence for it and against it."""

    cause: Cause  # the cause; UNKNOWN if none is likely enough
    direction: str  # ``read``, ``write`` or ``trim``
    from_s: float  # begin of the explained time, in seconds since I/O began
    to_s: float  # end of the explained time
    level: float  # rate that it explains: bytes/s for a bandwidth limit, else IOPS
    speaks_for: tuple[str, ...] = ()  # evidence for it, with numbers
    speaks_against: tuple[str, ...] = ()  # evidence against it; also what is not known
    evidence: Mapping[str, float] = field(default_factory=dict)  # numbers by name and unit
    is_certain: bool = True  # whether no other cause has evidence in its favour
    # the best hypotheses, where the cause is unknown; of a fall with what would decide
    candidates: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The cause, with as much confidence as there is."""
        if self.candidates and self.cause is not Cause.SLOWER:
            return f"most likely: {' or '.join(self.candidates)}"
        moved_bytes = self.evidence.get("moved_bytes")
        if self.cause is Cause.SLOWER and moved_bytes is not None:
            after = f"{format_capacity(moved_bytes)}, {format_duration(self.from_s)}"
            return f"slower after {after}"
        is_sure = self.is_certain or self.cause is Cause.UNKNOWN
        return WORDS[self.cause] if is_sure else f"consistent with: {WORDS[self.cause]}"

    @property
    def text(self) -> str:
        """The explanation in one line."""
        parts = [f"{self.direction}s: {self.words}"]
        if self.speaks_for:
            parts[0] += f" ({'; '.join(self.speaks_for)})"
        if self.speaks_against:
            parts.append("counter-evidence: " + "; ".join(self.speaks_against))
        return "; ".join(parts)
