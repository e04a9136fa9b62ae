import math
from collections.abc import Iterator

import numpy as np
import pytest

from volbench.engine.run.stop_when_steady import SteadyWatch
from volbench.model.campaign.event import Progress
from volbench.model.profile.profile_settings import Until


def glances(rates: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[Progress]:
    """Yield two glances a second with these write IOPS."""
    for number, rate in enumerate(rates, start=1):
        yield Progress(elapsed_s=number / 2, write_iops=float(rate))


def steady_at(watch: SteadyWatch, all_glances: Iterator[Progress]) -> float:
    """Return when a process would have been ended; infinite for never."""
    for glance in all_glances:
        watch.feed(glance)
        if watch.is_steady:
            return glance.elapsed_s
    return math.inf


def test_climb_is_watched_until_the_plateau_fills_the_window() -> None:
    """A rise of a minute is steady one window later, not earlier and not much later."""
    random = np.random.default_rng(1)
    rates = np.minimum(np.arange(1.0, 601) * 500 / 120, 500)
    rates *= 1 + 0.02 * random.standard_normal(600)
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert 90 <= steady_at(watch, glances(rates)) <= 140


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_decline_is_never_steady(seed: int) -> None:
    """A volume that loses a quarter in each window is watched to its deadline."""
    random = np.random.default_rng(seed)
    rates = 1000 * 0.75 ** (np.arange(600.0) / 120)
    rates *= 1 + 0.02 * random.standard_normal(600)
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert steady_at(watch, glances(rates)) == math.inf
    assert "drifting" in watch.words or "stepped" in watch.words
    assert watch.record["verdict"] in {"drifting", "stepped", "noisy"}


def test_window_has_to_be_full() -> None:
    """Half a window of even rates says nothing yet, and silence of fio counts for nothing."""
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert steady_at(watch, glances(np.full(60, 500.0))) == math.inf
    assert watch.verdict is None
    assert watch.words == "until steady: watching"
    watch.feed(Progress(elapsed_s=31.0))
    watch.feed(Progress(elapsed_s=31.5, state="layout", write_iops=9.0))
    assert watch.record == {"verdict": "too-short"}
    assert steady_at(watch, glances(np.full(60, 500.0))) == math.inf


def test_reads_and_writes_are_judged_together() -> None:
    """A mix whose parts trade places is steady in sum."""
    watch = SteadyWatch(Until(window_s=20, block_s=2))
    for number in range(1, 61):
        share = number / 60
        watch.feed(
            Progress(elapsed_s=number / 2, read_iops=500 * share, write_iops=500 * (1 - share))
        )
    assert watch.is_steady
    assert watch.record["iops"] == pytest.approx(500)
