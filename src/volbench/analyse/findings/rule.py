"""Rule of a finding: its texts, the observations of its check, and wording that rules share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Cause, Explanation, Finding, Severity
from volbench.units import format_count, format_rate

Evidence = dict[str, float | str]
DECLARED: dict[str, Rule] = {}  # Rules of all modules by name, for those that ask others


@dataclass(frozen=True)
class Observation:
    """Observation of a check in a run."""

    message: str  # one sentence with its numbers
    # name with its unit to value; NaN is left out of the finding, as are digits of rounding errors
    evidence: Mapping[str, float | str]
    direction: str | None = None  # None for the whole run
    # begin and end of the time it is about, in seconds since the I/O began; None for the whole run
    window: tuple[float, float] | None = None
    severity: Severity | None = None  # that of the rule when None
    run: str = ""  # id of the run it is about; empty for the judged one
    advice: str = ""  # that of the rule when empty


Check = Callable[[RunView, Context], Iterable[Observation]]


@dataclass(frozen=True)
class Rule:
    """One kind of data-quality warning."""

    id: str  # lower-case words joined by dashes; part of the contract with scripts
    title: str  # its meaning in a few words
    severity: Severity  # usual severity; an observation may have another one
    looks_at: str  # the comparison it makes, and the thresholds with their source
    why: str  # reason why it matters
    advice: str  # next step
    phases: tuple[Phase, ...]  # phases of the runs it judges
    check: Check  # yields the observations of one finished run

    def findings(self, view: RunView, context: Context) -> Iterator[Finding]:
        """Yield the findings about a run in the words of this rule."""
        for seen in self.check(view, context):
            from_s, to_s = seen.window or (None, None)
            yield Finding(
                rule=self.id,
                severity=seen.severity or self.severity,
                run=seen.run or view.run.id,
                message=seen.message,
                why=self.why,
                advice=seen.advice or self.advice,
                evidence={
                    name: value if isinstance(value, str) else float(f"{value:.12g}")
                    for name, value in seen.evidence.items()
                    if isinstance(value, str) or math.isfinite(value)
                },
                direction=seen.direction,
                from_s=from_s,
                to_s=to_s,
            )


def rule(
    title: str,
    *,
    severity: Severity = Severity.WARNING,
    looks_at: str,
    why: str,
    advice: str,
    phases: tuple[Phase, ...] = (Phase.MEASURED,),
) -> Callable[[Check], Rule]:
    """Make a rule of a check: its id is the name of the function, with dashes."""

    def made(check: Check) -> Rule:
        name = check.__name__.replace("_", "-")
        DECLARED[name] = Rule(name, title, severity, looks_at, why, advice, phases, check)
        return DECLARED[name]

    return made


def explained(view: RunView, context: Context, cause: Cause) -> list[Explanation]:
    """Return the explanations of a run by one cause."""
    return [explanation for explanation in context.explanations(view) if explanation.cause is cause]


def observed(
    explanation: Explanation,
    message: str,
    evidence: Mapping[str, float | str] | None = None,
    *,
    severity: Severity | None = None,
) -> Observation:
    """Return an observation from an explanation.

    Args:
        message: without a full stop: the evidence follows in brackets.
        evidence: that of the explanation when None.
        severity: that of the rule when None.
    """
    return Observation(
        f"{message}{reasons(explanation)}",
        explanation.evidence if evidence is None else evidence,
        explanation.direction,
        (max(explanation.from_s, 0.0), explanation.to_s),
        severity,
    )


def reasons(explanation: Explanation) -> str:
    """Return the evidence for and against an explanation, as the end of a sentence."""
    speaks_for = "; ".join(explanation.speaks_for)
    against = "; ".join(explanation.speaks_against)
    return (f" ({speaks_for})." if speaks_for else ".") + (
        f" Counter-evidence: {against}." if against else ""
    )


def level_text(column: str, value: float) -> str:
    """Return a rate of the column ``iops`` or ``bw_bytes_per_s`` with its unit."""
    return f"{format_count(value)} IOPS" if column == "iops" else format_rate(value)


def several(names: list[str], most: int = 99) -> str:
    """Return words as a list in a sentence: ``a, b and c``, or ``a, b and 3 more``."""
    names = [*names[:most], f"{len(names) - most} more"] if names[most:] else names
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
