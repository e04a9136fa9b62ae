"""Rule of a finding, the window of time it is about, and wording that rules share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from volbench.analyse.bottleneck.cause import Explanation
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Finding, Severity


@dataclass(frozen=True)
class Window:
    """The part of a run that a finding is about: seconds since its I/O began."""

    from_s: float
    to_s: float


def reasons(explanation: Explanation) -> str:
    """Return what speaks for and against an explanation, as sentences that follow a message."""
    speaks_for = "; ".join(explanation.speaks_for)
    against = "; ".join(explanation.speaks_against)
    return (f" Evidence: {speaks_for}." if speaks_for else "") + (
        f" Counter-evidence: {against}." if against else ""
    )


Check = Callable[[RunView, Context], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One kind of data-quality warning.

    Attributes:
        id: lower-case words joined by dashes; part of the contract with scripts.
        title: what it means when it fires, a few words.
        severity: how much it weighs as a rule; a check may say otherwise for one finding.
        looks_at: what is compared with what, and the thresholds with their source.
        why: why it matters.
        advice: what to do next.
        check: yields the findings of one finished run.
        phases: of which runs it judges; warm-ups and preparations are not measured.
    """

    id: str
    title: str
    severity: Severity
    looks_at: str
    why: str
    advice: str
    check: Check
    phases: tuple[Phase, ...] = field(default=(Phase.MEASURED,))

    def finding(
        self,
        view: RunView,
        message: str,
        evidence: Mapping[str, float | str],
        *,
        direction: str | None = None,
        window: Window | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding about a run in the words of this rule.

        Args:
            view: the run.
            message: what was seen, one sentence with its numbers.
            evidence: name with its unit to value; NaN is left out.
            direction: None for the whole run.
            window: None for the whole run.
            severity: the rule's own when None.
        """
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            run=view.run.id,
            message=message,
            why=self.why,
            advice=self.advice,
            evidence={name: value for name, value in evidence.items() if _is_known(value)},
            direction=direction,
            from_s=None if window is None else window.from_s,
            to_s=None if window is None else window.to_s,
        )


def _is_known(value: float | str) -> bool:
    return isinstance(value, str) or math.isfinite(value)
