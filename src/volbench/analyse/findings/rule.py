"""What every rule is made of: Rule, and the Context a rule may look at beside its Run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from volbench.analyse.asked import asked_of
from volbench.analyse.explain import Explanation, explain
from volbench.analyse.seen import directions, rate_per_s
from volbench.analyse.steady import Steadiness, judge_steady
from volbench.analyse.view import RunView
from volbench.model.finding import Finding, Severity
from volbench.model.profile import Phase


@dataclass(frozen=True)
class Context:
    """What a rule may look at beside its Run.

    Attributes:
        views: every Run of the campaign that has ended, in the order of the plan.
    """

    views: tuple[RunView, ...]
    _steady: dict[tuple[str, str], Steadiness] = field(default_factory=dict, repr=False)
    _explained: dict[str, tuple[Explanation, ...]] = field(default_factory=dict, repr=False)

    def steadiness(self, view: RunView, direction: str) -> Steadiness:
        """Return whether the IOPS of one direction of a Run are steady, judged once."""
        key = view.run.id, direction
        if key not in self._steady:
            t_s, iops = rate_per_s(view, "iops", direction=direction)
            self._steady[key] = judge_steady(t_s, iops)
        return self._steady[key]

    def before(self, view: RunView) -> list[RunView]:
        """Return the Runs on the same volume that came before a Run, finished ones only."""
        place = next(n for n, other in enumerate(self.views) if other.run.id == view.run.id)
        return [
            other
            for other in self.views[:place]
            if other.run.host == view.run.host
            and other.run.volume == view.run.volume
            and other.is_finished
        ]

    def explanations(self, view: RunView) -> tuple[Explanation, ...]:
        """Return what explains the rates of a Run, all its directions, judged once."""
        if view.run.id not in self._explained:
            others = self._comparable(view)
            self._explained[view.run.id] = tuple(
                one
                for direction in directions(view)
                for one in explain(view, direction, others=others)
            )
        return self._explained[view.run.id]

    def _comparable(self, view: RunView) -> list[RunView]:
        """Return the other jobs on the same volume that are nearest in depth and block size.

        Each costs a search for change points, so that all of a sweep would be too many.
        """
        mine = _shape(view)
        shapes = [(other, _shape(other)) for other in self.views if _is_alike(view, other)]
        deeper = [(one[0], other) for other, one in shapes if one[1] == mine[1] and one > mine]
        flatter = [(-one[0], other) for other, one in shapes if one[1] == mine[1] and one < mine]
        sized = [(abs(one[0] - mine[0]), other) for other, one in shapes if one[1] != mine[1]]
        return [
            min(group, key=lambda pair: pair[0])[1] for group in (deeper, flatter, sized) if group
        ]


def _shape(view: RunView) -> tuple[int, int]:
    """Return depth and block size of what a Run asked for."""
    asked = asked_of(view.run)
    return sum(one.depth * one.clones for one in asked), max(one.block_bytes for one in asked)


def _is_alike(view: RunView, other: RunView) -> bool:
    """Tell whether two Runs are of different jobs on the same volume."""
    return (
        other.run.volume == view.run.volume
        and other.run.host == view.run.host
        and other.run.phase is Phase.MEASURED
        and other.run.job != view.run.job
        and other.run.repeat == view.run.repeat
    )


@dataclass(frozen=True)
class Window:
    """The part of a Run that a Finding is about: seconds since its I/O began."""

    from_s: float
    to_s: float


def reasons(explanation: Explanation) -> str:
    """Return what speaks for and against an explanation, as sentences that follow a message."""
    speaks_for = "; ".join(explanation.speaks_for)
    against = "; ".join(explanation.speaks_against)
    return (f" For it: {speaks_for}." if speaks_for else "") + (
        f" Against it: {against}." if against else ""
    )


Check = Callable[[RunView, Context], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One kind of doubt.

    Attributes:
        id: lower-case words joined by dashes; part of the contract with scripts.
        title: what it means when it fires, a few words.
        severity: how much it weighs as a rule; a check may say otherwise for one Finding.
        looks_at: what is compared with what, and the thresholds with their source.
        why: why it matters.
        advice: what to do next.
        check: yields the Findings of one finished Run.
        phases: of which Runs it judges; warm-ups and preparations are not measured.
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
        """Return a Finding about a Run in the words of this rule.

        Args:
            view: the Run.
            message: what was seen, one sentence with its numbers.
            evidence: name with its unit to value; NaN is left out.
            direction: None for the whole Run.
            window: None for the whole Run.
            severity: the rule's own when None.
        """
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            run=view.run.id,
            message=message,
            why=self.why,
            advice=self.advice,
            evidence={name: value for name, value in evidence.items() if _is_told(value)},
            direction=direction,
            from_s=None if window is None else window.from_s,
            to_s=None if window is None else window.to_s,
        )


def _is_told(value: float | str) -> bool:
    return isinstance(value, str) or math.isfinite(value)
