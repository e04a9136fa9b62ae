"""Made-up frames for each kind of chart that is drawn when it is asked for."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from tests.nightly_campaigns import WORKLOADS, dropping, summary_of
from tests.present.frames_for_plots import (
    Row,
    bins,
    frames,
    intervals,
    result,
    samples,
    sweep,
    warming,
)
from tests.present.storm_frames import storm
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.plots.kinds import Options
from volbench.store.parquet_tables import frame_of, table_of

Frames = dict[str, pd.DataFrame]

MIXES = {"r100": 100, "r65": 65, "r0": 0}
ROUNDS = (900.0, 980.0, 1000.0, 1010.0, 990.0, 1000.0)


def ladder() -> Frames:
    """Return reads and writes over queue depth and numjobs; IOPS are 100 times their product."""
    rows = [
        result(f"{rw}-{depth}-{numjobs}", iops=100.0 * depth * numjobs)
        | {"rw": rw, "direction": rw.removeprefix("rand"), "iodepth": depth, "numjobs": numjobs}
        | {"iops_stddev": 7.0, "lat_stddev_s": 0.0001}
        | {"limit_iops": 1600.0, "limit_bw_bytes_per_s": 5e6}
        for rw in ("randread", "randwrite")
        for depth in (1, 2, 4)
        for numjobs in (1, 2, 4)
    ]
    return frames(rows)


def in_campaign(given: Frames, name: str) -> Frames:
    """Return frames as those of another campaign, its runs with ids of their own."""
    moved = {}
    for frame_name, frame in given.items():
        own = frame.copy()
        own["campaign"] = name
        own["run"] = f"{name}/" + own["run"]
        moved[frame_name] = own
    return moved


def together(*parts: Frames) -> Frames:
    """Return the rows of several campaigns as a Dataset does."""
    return {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


def repeats(*, factor: float = 1.0) -> Frames:
    """Return two jobs with three repeats each, with bins and intervals."""
    rows = [
        result(job, repeat=n, iops=factor * (iops + 10 * n), cpu_usr=3.0 + n, cpu_sys=9.0)
        for job, iops in (("small", 100.0), ("large", 50.0))
        for n in (1, 2, 3)
    ]
    waves = [factor * (100 + 7 * (n % 5)) for n in range(12)]
    return frames(
        rows,
        series=[point for row in rows for point in intervals(row, waves)],
        histogram=[own for row in rows for own in bins(row, {0.001: 90, 0.004: 9, 0.02: 1})],
    )


def fleet(*, hosts: int = 12) -> Frames:
    """Return a job on many hosts, all near 1,000 IOPS but the last, which has 400."""
    rows: list[Row] = []
    for n in range(1, hosts + 1):
        iops = 400.0 if n == hosts else 1000.0 + n
        rows.append(result("reads", iops=iops) | {"host": f"vm{n}", "run": f"reads-vm{n}"})
    return frames(rows)


def rounds(*, values: Sequence[float] = ROUNDS) -> Frames:
    """Return two block sizes and three mixes over rounds; reads and writes have their own rows."""
    rows = []
    for block in (4096, 65536):
        for mix, share in MIXES.items():
            for repeat, value in enumerate(values, start=1):
                for direction, part in (("read", share), ("write", 100 - share)):
                    if part:
                        row = result(f"b{block}-{mix}", repeat=repeat, iops=value * part / 100)
                        row |= {"rw": "randrw", "direction": direction, "block_bytes": block}
                        rows.append(row | {"rwmixread": share, "total_ios": int(value * part)})
    return frames(rows)


def in_rounds(given: Frames) -> Options:
    """Return the options of a profile that has rounds, which every job decides."""
    jobs = given["summary"]["job"].unique()
    tracked = tuple(Track(job=str(job), metric=Metric.IOPS) for job in jobs)
    profiles = map(str, given["summary"]["profile"].unique())
    return Options(rounds=dict.fromkeys(profiles, Rounds(track=tracked)))


def searched() -> Frames:
    """Return a search whose rate without a limit is 1,000, and whose bound is kept up to 900."""
    trials = [(None, 1000.0, 0.04), ("900", 900.0, 0.004), ("948", 948.0, 0.02)]
    rows = [
        result("reads", repeat=n, iops=iops) | {"lat_p99_s": latency}
        for n, (_, iops, latency) in enumerate(trials, start=1)
    ]
    made = frames(rows)
    made["summary"]["rate_iops"] = [asked for asked, *_ in trials]
    made["summary"]["_within"] = pd.Series([("p99 < 5ms",)] * len(trials))
    return made


def mapped() -> Frames:
    """Return a run with a latency map of two stretches and three latencies."""
    row = result("reads", direction="read", rw="randread")
    known = ("campaign", "run", "host", "profile", "job", "group", "role", "volume", "repeat")
    cells = [
        {name: row[name] for name in (*known, "phase", "direction")}
        | {"from_s": start, "t_s": start + 1.0, "bin_low_s": low, "bin_high_s": 2 * low}
        | {"count": count}
        for start, low, count in ((0.0, 0.001, 50), (1.0, 0.001, 40), (1.0, 0.016, 3))
    ]
    return frames([row], series=intervals(row, [50, 43])) | {
        "latency_map": frame_of(table_of("latency_map", cells))
    }


def climbs() -> Frames:
    """Return a sweep whose first run climbs on a fresh volume, with samples of the device."""
    climb = [10.0, 50.0, 80.0, 0.0, *[100.0] * 7]
    rows = sweep(depths=(1, 4), blocks=(4096, 65536))
    return frames(
        [row | {"limit_iops": 300.0} for row in rows],
        series=[point for row in rows for point in intervals(row, climb)],
        device=[sample for row in rows for sample in samples(row, climb, ended_s=9)],
        verdicts=warming(rows),
    )


def storms() -> Frames:
    """Return a storm of two clients."""
    return storm(clients=2, stagger_s=5, campaign="trial")


def nightly() -> Frames:
    """Return two workloads over 20 nights, of which one drops."""
    summary = summary_of(20, level=dropping(at=14), workloads=WORKLOADS[:2])
    return {**frames([]), "summary": summary}


def arms_in_blocks(*, blocks: int = 6, arms: int = 2) -> Frames:
    """Return a job with arms in blocks on a volume that becomes slower."""
    rows = []
    for block in range(blocks):
        for place in range(arms):
            run = block * arms + (place if block % 2 == 0 else arms - 1 - place)
            name = "abcde"[place]
            row = result(f"reads-{name}", repeat=block + 1, iops=1000.0 + 20 * place - run)
            start = f"2026-01-01T00:{run // 4:02}:{15 * (run % 4):02}.000Z"
            rows.append(row | {"arm": name, "block": block + 1, "started_utc": start})
    return frames(rows)


FOR_KIND: Mapping[str, Callable[[], Frames]] = {
    "device": climbs,
    "warmup": climbs,
    "storm": storms,
    "latency": repeats,
    "series": repeats,
    "histogram": repeats,
    "ecdf": repeats,
    "within": searched,
    "rounds": rounds,
    "latency-map": mapped,
    "trend": nightly,
}
"""Kind to frames that have something for it."""
