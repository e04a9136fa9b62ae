"""Curves whose truth is known in closed form, and frames as a campaign makes them."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.present.frames_for_plots import Row, result
from volbench.analyse.frames.resample import Floats
from volbench.analyse.time.warmup_curve import (
    cold_level,
    curves,
    fills,
    plateau_of,
    time_to_level,
    time_to_steady,
)


def climb(
    *, cold: float, warm: float, blocks: float, seconds: float, sample_s: float, noise: float = 0.0
) -> tuple[Floats, Floats]:
    """Return ends and IOPS of random I/O over fresh blocks: each is slow at its first touch only.

    An I/O hits a fresh block with probability exp(-done / blocks), so its mean time falls with the
    I/Os done. The climb is integrated in small steps and averaged over each sample.
    """
    step_s = sample_s / 200
    done, rates = 0.0, []
    for _ in range(round(seconds / step_s)):
        rate = 1 / (1 / warm + (1 / cold - 1 / warm) * math.exp(-done / blocks))
        done += rate * step_s
        rates.append(rate)
    iops = np.array(rates).reshape(-1, 200).mean(axis=1)
    random = np.random.default_rng(7)
    iops *= 1 + noise * random.standard_normal(len(iops))
    return np.arange(1.0, len(iops) + 1) * sample_s, iops


def reached(*, cold: float, warm: float, blocks: float, level: float) -> float:
    """Return when the climb of `climb` passes a level: the integral of time over I/Os done."""
    share = (1 / level - 1 / warm) / (1 / cold - 1 / warm)
    done = -blocks * math.log(share)
    return done / warm + (1 / cold - 1 / warm) * blocks * (1 - math.exp(-done / blocks))


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
@pytest.mark.parametrize(
    ("cold", "warm", "blocks"),
    [(200, 5000, 4000), (10, 480, 3000), (450, 900, 5000), (2000, 20_000, 40_000)],
)
def test_a_simulated_climb_is_recovered(
    cold: float, warm: float, blocks: float, noise: float
) -> None:
    """Cold level, penalty and the time to 90 % come out of a climb, whatever its shape."""
    truth_s = reached(cold=cold, warm=warm, blocks=blocks, level=0.9 * warm)
    sample_s = truth_s / 40
    seconds = math.ceil(2.5 * truth_s / sample_s) * sample_s
    t_s, iops = climb(
        cold=cold, warm=warm, blocks=blocks, seconds=seconds, sample_s=sample_s, noise=noise
    )
    plateau = plateau_of(iops)
    found = cold_level(t_s, iops, plateau=plateau)
    assert plateau == pytest.approx(warm, rel=0.02)
    assert 1 - found / plateau == pytest.approx(1 - cold / warm, abs=0.05)
    assert time_to_level(t_s, iops, level=0.9 * plateau) == pytest.approx(
        truth_s, rel=0.05 + noise, abs=sample_s
    )


def test_a_limit_hides_the_end_of_the_climb() -> None:
    """A climb that is cut off by a cap has its plateau at the cap and its cold level unharmed."""
    t_s, iops = climb(cold=100, warm=5000, blocks=2000, seconds=30, sample_s=0.5)
    capped = np.minimum(iops, 1100)
    truth_s = reached(cold=100, warm=5000, blocks=2000, level=990)
    assert plateau_of(capped) == 1100
    assert cold_level(t_s, capped, plateau=1100) == pytest.approx(100, rel=0.1)
    assert time_to_level(t_s, capped, level=990) == pytest.approx(truth_s, abs=0.5)


def test_neither_a_lucky_interval_nor_a_dip_decides_when_a_level_is_reached() -> None:
    """The fit that never falls pools 5 with 3, and 9 with 7: it is 1, 4, 4, 8, 8."""
    t_s, iops = np.arange(1.0, 6.0), np.array([1.0, 5.0, 3.0, 9.0, 7.0])
    assert time_to_level(t_s, iops, level=4) == pytest.approx(1.5)
    assert time_to_level(t_s, iops, level=6) == pytest.approx(3.0)
    assert time_to_level(t_s, iops, level=8) == pytest.approx(3.5)
    assert time_to_level(t_s, iops, level=8.5) is None


def test_a_warm_volume_has_no_penalty() -> None:
    """A flat series was warm from the start; others from where they stay near the plateau."""
    random = np.random.default_rng(3)
    t_s = np.arange(1.0, 61.0)
    iops = 1000 * (1 + 0.05 * random.standard_normal(60))
    assert cold_level(t_s, iops, plateau=1000) == pytest.approx(1000, rel=0.1)
    assert time_to_level(t_s, iops, level=900) == 0
    assert time_to_steady(t_s, iops, plateau=1000) == 0
    t_s = np.arange(1.0, 101.0)
    iops = np.where(t_s <= 30, 10 + 15 * t_s, 480.0)
    assert time_to_steady(t_s, iops, plateau=480) == pytest.approx(29, abs=2)
    assert time_to_level(t_s, iops, level=500) is None
    late = np.where(t_s <= 96, 100.0, 480.0)
    assert time_to_steady(t_s, late, plateau=480) is None


def rows_of(run: str, phase: str, **more: object) -> Row:
    """Return a row of the summary frame."""
    row = result(run, run=run, phase=phase, volume="/dev/v", iodepth=8, bw_bytes_per_s=5e5)
    sizes: Row = {"size_bytes": None, "volume_bytes": 64 << 20, "io_bytes": 1 << 20}
    return row | sizes | {"limit_iops": math.nan, "runtime_s": 2.0} | more


def series_of(run: str, t_s: Floats, iops: Floats) -> pd.DataFrame:
    """Return rows of the series frame, of a section with one job."""
    return pd.DataFrame(
        {
            "run": run,
            "group": run,
            "direction": "write",
            "t_s": t_s,
            "iops": iops,
            "lat_mean_s": 8 / iops,
            "jobs_running": 1,
        }
    )


def test_second_pass_gives_the_warm_level() -> None:
    """The next run with equal settings is the warm pass; others between them are not."""
    t_s, iops = climb(cold=100, warm=1000, blocks=1500, seconds=60, sample_s=0.5)
    summary = pd.DataFrame(
        [
            rows_of("first", "measured", limit_iops=1010.0),
            rows_of("reads", "measured", direction="read", rw="randread"),
            rows_of("other", "measured", iodepth=1),
            rows_of("second", "measured"),
        ]
    )
    series = pd.concat(
        [series_of(run, t_s, iops) for run in ("first",)]
        + [
            series_of("other", t_s, np.full(120, 50.0)),
            series_of("second", t_s, np.full(120, 990.0)),
        ]
    )
    (curve,) = curves(summary, series)
    assert (curve.first.run, curve.second and curve.second.run) == ("first", "second")
    assert curve.warm_iops == 990
    assert curve.penalty == pytest.approx(0.9, abs=0.03)
    assert curve.at_limit
    assert curve.to_steady_s is not None


def test_intervals_without_all_jobs_are_left_out() -> None:
    """A job that starts later or ends earlier is no climb and no fall, and the count is kept."""
    t_s = np.arange(1.0, 61.0)
    summary = pd.DataFrame([rows_of(run, "measured", numjobs=2) for run in ("first", "second")])
    uneven = series_of("first", t_s, np.where((t_s > 3) & (t_s < 50), 500.0, 250.0))
    uneven["jobs_running"] = np.where(uneven["iops"] > 250, 2, 1)
    late = series_of("second", t_s, np.full(60, 250.0)).assign(group="a")
    even = pd.concat([late, late[late["t_s"] > 2].assign(group="b")])
    (curve,) = curves(summary, pd.concat([uneven, even]))
    assert (curve.cold_iops, curve.plateau_iops, curve.warm_iops) == pytest.approx([500.0] * 3)
    assert curve.second is not None
    assert (curve.first.left_out, curve.second.left_out) == (14, 2)


def test_a_filled_volume_has_no_warm_up_curve() -> None:
    """After a warm-up there is no first touch; without intervals, or a climb, nothing to read."""
    t_s, iops = climb(cold=100, warm=1000, blocks=1500, seconds=60, sample_s=0.5)
    summary = pd.DataFrame([rows_of("fill", "warmup"), rows_of("first", "measured")])
    series = pd.concat([series_of(run, t_s, iops) for run in ("fill", "first")])
    assert curves(summary, series) == ()
    assert len(curves(summary[1:], series)) == 1
    summary = pd.DataFrame([rows_of("first", "measured")])
    empty = series_of("first", np.arange(1.0), np.ones(1)).iloc[:0]
    assert curves(summary, empty) == ()
    flat = series_of("first", np.arange(1.0, 61.0), np.full(60, 500.0))
    assert curves(summary, flat) == ()


def test_a_fill_is_the_sum_of_its_extents() -> None:
    """A pass over a volume is the sum of its runs, with its slowest and fastest extent."""
    summary = pd.DataFrame(
        [
            rows_of("w1", "warmup", job="warm"),
            rows_of("w2", "warmup", job="warm", runtime_s=4.0, bw_bytes_per_s=2.5e5),
            rows_of("w3", "warmup", job="warm", status="failed"),
        ]
    )
    (fill,) = fills(summary)
    assert fill.runs == ("w1", "w2")
    assert fill.bytes_per_s == pytest.approx(2 * (1 << 20) / 6)
    assert (fill.slowest_bytes_per_s, fill.fastest_bytes_per_s) == (2.5e5, 5e5)


@pytest.mark.parametrize(
    ("causes", "folder", "count"),
    [("ramp-up", None, 0), ("latency, warming", None, 1), ("latency", "in", 0)],
)
def test_a_penalty_needs_the_verdict_that_blocks_got_warm(
    causes: str, folder: str | None, count: int
) -> None:
    """The ramp of the first seconds of a drive is no penalty for fresh blocks."""
    t_s, iops = climb(cold=100, warm=1000, blocks=1500, seconds=60, sample_s=0.5)
    summary = pd.DataFrame([rows_of("first", "measured", import_folder=folder)])
    verdicts = pd.DataFrame([{"run": "first", "direction": "write", "causes": causes}])
    assert len(curves(summary, series_of("first", t_s, iops), verdicts)) == count


@pytest.mark.parametrize(("again", "depth", "count"), [(1000, 8, 1), (1000, 1, 0), (105, 8, 0)])
def test_an_imported_run_that_climbed_is_drawn_beside_a_later_one(
    again: int, depth: int, count: int
) -> None:
    """Equal options, earlier and later, are before and after; whether it was fresh is not known."""
    t_s, iops = climb(cold=100, warm=1000, blocks=1500, seconds=60, sample_s=0.5)
    rows = [rows_of("other", "measured", iodepth=32), rows_of("first", "measured")]
    rows = [*rows, rows_of("later", "measured", iodepth=depth)]
    summary = pd.DataFrame(rows).assign(import_folder="in")
    series = [series_of("first", t_s, iops), series_of("later", t_s, np.full(120, float(again)))]
    verdicts = pd.DataFrame(columns=["run", "direction", "causes"])
    found = curves(summary, pd.concat(series), verdicts)
    assert [(each.first.run, each.is_fresh) for each in found] == [("first", False)] * count
