"""Judge of ``until: steady``: decides from the IOPS of a running process whether it may end.

fio writes its logs only at its end, so the status lines are judged: two per second with three
digits, far more precise than the 10 % of the criterion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from volbench.analyse.time.steady_state import Steadiness, judge_steady
from volbench.model.campaign.event import Progress
from volbench.model.profile.profile_settings import Until
from volbench.model.results.steadiness import State

_PAUSE_S = 1.0  # Seconds between two judgements
# Share of the window that must be covered: fio prints no status line in its first second or two.
# Noticed by: test_until_runs.py::test_window_has_to_be_full
_GAP = 0.9


@dataclass
class SteadyWatch:
    """Judges the IOPS of a running process."""

    until: Until
    _times: list[float] = field(default_factory=list)
    _rates: list[float] = field(default_factory=list)
    _judged_s: float = 0.0
    _verdict: Steadiness | None = None

    @property
    def verdict(self) -> Steadiness | None:
        """The latest judgement; None before the first whole window."""
        return self._verdict

    @property
    def is_steady(self) -> bool:
        """Whether the process may end."""
        return self._verdict is not None and self._verdict.state is State.STEADY

    @property
    def words(self) -> str:
        """The latest judgement, for the terminal."""
        if self._verdict is None:
            return "until steady: watching"
        if self._verdict.state is State.DRIFTING:
            return f"until steady: now drifting {100 * self._verdict.drift:+.0f} %"
        return f"until steady: now {self._verdict.state.value}"

    @property
    def record(self) -> dict[str, object]:
        """The latest judgement for status.json."""
        if self._verdict is None:
            return {"verdict": State.TOO_SHORT.value}
        return {
            "verdict": self._verdict.state.value,
            "iops": round(self._verdict.median, 1),
            "drift_percent": round(100 * self._verdict.drift, 2),
            "drift_bound_percent": round(100 * self._verdict.drift_bound, 2),
            "from_s": round(self._verdict.from_s, 1),
            "to_s": round(self._verdict.to_s, 1),
        }

    def feed(self, progress: Progress) -> None:
        """Add new progress and judge the last window once per second."""
        rates = (progress.read_iops, progress.write_iops, progress.trim_iops)
        known = [rate for rate in rates if rate is not None]
        if progress.state != "run" or not known:
            return
        self._times.append(progress.elapsed_s)
        self._rates.append(sum(known))
        if progress.elapsed_s - self._judged_s >= _PAUSE_S:
            self._judged_s = progress.elapsed_s
            self._judge(progress.elapsed_s)

    def _judge(self, now_s: float) -> None:
        while self._times and self._times[0] < now_s - self.until.window_s:
            del self._times[0], self._rates[0]
        covered_s = now_s - self._times[0]
        if covered_s < _GAP * self.until.window_s:
            return
        count = len(self._times)
        even = now_s - covered_s + covered_s * np.arange(1.0, count + 1) / count
        self._verdict = judge_steady(
            even, np.array(self._rates, dtype=float), block_s=self.until.block_s
        )
