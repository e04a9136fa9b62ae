"""Sums over clients: only while all of them ran, and percentiles from bins added up."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from tests.planned import a_folder, planned_campaign, planned_run
from volbench.analyse.frames.aggregate import aggregate_rows
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import AGGREGATE, Row
from volbench.model.profile.profile_model import Start

BLOCK = 4096
BEGUN = pd.Timestamp("2026-01-01T00:00:00Z")


def a_campaign(count: int, *, start: Start = Start.TOGETHER) -> Campaign:
    """Return a plan in which clients do one step."""
    runs = [
        planned_run(a_folder(), id=f"r{n}", host=f"vm{n}", step=1, start=start)
        for n in range(count)
    ]
    return planned_campaign(*runs)


def test_a_single_client_of_several_has_a_row() -> None:
    """Where steps have different numbers of clients, one is the first of them."""
    plan = a_campaign(2)
    alone = plan.runs[0].model_copy(update={"id": "r2", "step": 2})
    several = plan.model_copy(update={"runs": (*plan.runs, alone)})
    clients = frames(*(ran(number, [50.0] * 5) for number in range(3)))
    rows = aggregated(several, clients.__getitem__)
    assert [(row["step"], row["clients"], row["iops"]) for row in rows] == [
        (1, 2, pytest.approx(100)),
        (2, 1, pytest.approx(50)),
    ]


def test_labels_that_all_clients_share_name_the_step() -> None:
    """Such as the storage class of replicas; those in which they differ do not."""
    hosts = tuple(
        Host(name=f"vm{n}", labels={"storage_class": "fast", "volume": f"pv{n}"}) for n in (0, 1)
    )
    plan = a_campaign(2).model_copy(update={"hosts": hosts})
    (row,) = aggregated(plan, frames(ran(0, [9.0] * 5), ran(1, [9.0] * 5)).__getitem__)
    assert {name for name in row if name.startswith("label_")} == {"label_storage_class"}
    assert row["label_storage_class"] == "fast"


def ran(
    number: int, iops: list[float], *, after_s: int = 0, bins: dict[float, int] | None = None
) -> dict[str, list[dict[str, object]]]:
    """Return the rows of a client that began some seconds after the first."""
    same = {"run": f"r{number}", "group": "j", "direction": "read"}
    times = range(1, len(iops) + 1)
    return {
        "summary": [
            {
                **same,
                "status": "finished",
                "total_ios": int(np.nansum(iops)),
                "io_bytes": int(np.nansum(iops)) * BLOCK,
                "runtime_s": float(len(iops)),
                "lat_mean_s": 0.001 * (number + 1),
                "lat_max_s": 0.998 * max(bins or {0.001: 10}),
            }
        ],
        "series": [
            {
                **same,
                "t_s": float(at),
                "utc": (BEGUN + pd.Timedelta(seconds=at + after_s)).isoformat(),
                "iops": rate,
                "bw_bytes_per_s": rate * BLOCK,
            }
            for at, rate in zip(times, iops, strict=True)
        ],
        "histogram": [
            {**same, "latency": "lat", "bin_s": bin_s, "count": count}
            for bin_s, count in (bins or {0.001: 10}).items()
        ],
    }


def frames(*clients: dict[str, list[dict[str, object]]]) -> dict[str, pd.DataFrame]:
    """Return the frames of some clients."""
    return {
        name: pd.DataFrame([row for client in clients for row in client[name]])
        for name in ("summary", "series", "histogram")
    }


def aggregated(campaign: Campaign, frame: Callable[[str], pd.DataFrame]) -> Sequence[Row]:
    """Return the rows of a campaign without a bad step."""
    failed: list[Run] = []
    rows = aggregate_rows(campaign, frame, on_failure=lambda run, _: failed.append(run))
    assert not failed
    return rows


def test_a_bad_row_fails_its_step_only() -> None:
    """A time that is none takes the sum of its own step, and says why."""
    good = [ran(0, [500.0] * 5), ran(1, [500.0] * 5)]
    bad = [ran(2, [500.0] * 5), ran(3, [500.0] * 5)]
    bad[1]["series"][2]["utc"] = "yesterday"
    runs = [
        run.model_copy(update={"step": place // 2 + 1})
        for place, run in enumerate(a_campaign(4).runs)
    ]
    campaign = a_campaign(4).model_copy(update={"runs": tuple(runs)})
    failed: list[tuple[str, str]] = []
    rows = aggregate_rows(
        campaign,
        frames(*good, *bad).__getitem__,
        on_failure=lambda run, error: failed.append((run.id, str(error))),
    )
    assert [row["step"] for row in rows] == [1]
    ((run, reason),) = failed
    assert run == "r2"
    assert "yesterday" in reason


def test_an_invalid_client_leaves_its_step_without_numbers() -> None:
    """A sum and the latencies of all clients would quote what a finding rejects."""
    clients = frames(ran(0, [500.0] * 5), ran(1, [500.0] * 5))
    (row,) = aggregate_rows(
        a_campaign(2), clients.__getitem__, on_failure=lambda *_: None, invalid={"r1"}
    )
    assert row["clients"] == 2
    assert not {"iops", "bw_bytes_per_s", "lat_mean_s", "lat_p99_s"} & set(row)


def test_sums_are_over_the_time_that_all_share() -> None:
    """A client that ran alone for 10 s counts only from there; without shared time no sum."""
    first = ran(0, [900.0] * 10 + [500.0] * 20)
    second = ran(1, [500.0] * 30, after_s=10)
    (row,) = aggregated(a_campaign(2), frames(first, second).__getitem__)
    assert row["iops"] == pytest.approx(1000)
    assert row["bw_bytes_per_s"] == pytest.approx(1000 * BLOCK)
    assert (row["overlap_s"], row["start_skew_s"], row["end_skew_s"]) == (20, 10, 10)
    assert row["start_skew_bound_s"] == pytest.approx(0.001)
    assert row["fairness"] == pytest.approx(1.0)
    assert set(row) <= {column.name for column in AGGREGATE}
    clients = frames(ran(0, [500.0] * 5), ran(1, [500.0] * 5, after_s=60))
    (row,) = aggregated(a_campaign(2), clients.__getitem__)
    assert row["overlap_s"] == 0
    assert "iops" not in row
    assert str(row["no_total"]).startswith("vm1 began after the others by 60 s, all ran together")


def test_a_short_overlap_has_no_total() -> None:
    """The ends of what all share are known to the bounds of two clocks."""
    early, late = ran(0, [300.0] * 20), ran(1, [300.0] * 20, after_s=14)
    (row,) = aggregated(a_campaign(2), frames(early, late).__getitem__)
    assert row["iops"] == 600
    for bound_s, after_s, total in ((0.29, 14, True), (0.31, 14, False), (0.0, 17, False)):
        late = ran(1, [300.0] * 20, after_s=after_s)
        late["summary"][0]["clock_bound_s"] = bound_s
        early["summary"][0]["clock_bound_s"] = bound_s
        (row,) = aggregated(a_campaign(2), frames(early, late).__getitem__)
        assert ("iops" in row, "no_total" in row) == (total, not total)


def test_fairness_falls_to_the_share_of_clients_that_get_something() -> None:
    """Jain's index: 1 for equal rates, 1/n where one of n has everything, or unknown."""
    for rates, fairness in (((500.0, 500.0), 1.0), ((1000.0, 0.0), 0.5), ((300.0, 100.0), 0.8)):
        clients = frames(*(ran(number, [rate] * 5) for number, rate in enumerate(rates)))
        (row,) = aggregated(a_campaign(2), clients.__getitem__)
        assert row["fairness"] == pytest.approx(fairness)
    clients = frames(ran(0, [math.nan]), ran(1, [math.nan]))
    (row,) = aggregated(a_campaign(2), clients.__getitem__)
    assert not {"iops", "bw_bytes_per_s", "fairness"} & set(row)


def test_percentiles_come_from_all_bins_together() -> None:
    """The median of 99 fast and 901 slow I/Os is slow; the last bin of fio has no value."""
    fast = ran(0, [100.0] * 5, bins={0.001: 99})
    slow = ran(1, [300.0] * 5, bins={0.02: 891, 0.5: 10})
    (row,) = aggregated(a_campaign(2), frames(fast, slow).__getitem__)
    assert row["lat_p50_s"] == 0.02
    assert row["lat_p99_s"] == 0.02
    assert row["lat_p999_s"] == row["lat_max_s"]
    assert row["lat_mean_s"] == pytest.approx((500 * 0.001 + 1500 * 0.002) / 2000)
    assert row["lat_max_s"] == 0.998 * 0.5  # Below the midpoint of its bin
    fast = ran(0, [100.0] * 5, bins={0.001: 900})
    slow = ran(1, [100.0] * 5, bins={17.11276032: 100})
    (row,) = aggregated(a_campaign(2), frames(fast, slow).__getitem__)
    assert row["lat_p50_s"] == 0.001
    assert math.isnan(float(str(row["lat_p99_s"])))


def test_a_total_over_fewer_clients_says_so() -> None:
    """Who failed is not in the sum; when a client ran is unknown without its series."""
    kept = frames(ran(0, [500.0] * 5), ran(1, [500.0] * 5))
    lost = pd.DataFrame([{"run": "r2", "group": "j", "direction": None, "status": "failed"}])
    kept["summary"] = pd.concat([kept["summary"], lost], ignore_index=True)
    (row,) = aggregated(a_campaign(3), kept.__getitem__)
    assert (row["clients"], row["clients_planned"]) == (2, 3)
    assert row["iops"] == pytest.approx(1000)
    silent = ran(1, [500.0] * 5)
    silent["series"] = []
    (row,) = aggregated(a_campaign(2), frames(ran(0, [500.0] * 5), silent).__getitem__)
    assert math.isnan(float(str(row.get("iops", math.nan))))
    assert row["clients"] == 2


def test_clients_in_turn_have_no_total() -> None:
    """Storage classes measured one after another share no time; one client says it all."""
    found = frames(ran(0, [500.0] * 5), ran(1, [500.0] * 5, after_s=5))
    assert aggregated(a_campaign(2), found.__getitem__)
    assert aggregated(a_campaign(2, start=Start.SEQUENTIAL), found.__getitem__) == []
    assert aggregated(a_campaign(1), frames(ran(0, [500.0] * 5)).__getitem__) == []
