"""Storms on one clock: nothing lost, nothing made up, and the numbers that are told of them."""

import numpy as np
import pandas as pd
import pytest

from tests.present.frames_for_plots import Row, frames, result
from tests.present.storm_frames import START_S, both, client, samples, series, storm
from volbench.analyse.frames.resample import covered, spread
from volbench.analyse.time.boot_storm import Storm, storms

EDGES = np.linspace(0.0, 20.0, 5)


def one_storm(*reported: tuple[str, float, list[float]], **columns: object) -> Storm:
    """Return the storm of clients that only read: name, start, and reads of each second."""
    summary: list[Row] = []
    rows: list[Row] = []
    for name, start_s, reads in reported:
        row = client(name)
        summary.append(result("vm", direction="read", rw="randread") | row | columns)
        rows += series(row, "read", reads, start_s=START_S + start_s)
    (found,) = storms(frames(summary, series=rows))
    return found


def test_intervals_across_an_edge_are_split() -> None:
    """An interval over an edge counts on both sides by its parts; gaps are zero."""
    rates = spread(np.array([7.0]), np.array([5.0]), np.array([10.0]), EDGES)
    assert rates.tolist() == [6.0, 4.0, 0.0, 0.0]
    ends, widths = np.array([5.0, 9.0, 20.0]), np.array([5.0, 5.0, 5.0])
    rates = spread(ends, widths, np.array([2.0, 2.0, np.nan]), EDGES)
    assert rates.tolist() == [2.0, pytest.approx(1.6), 0.0, 0.0]
    assert covered(ends, widths, EDGES).tolist() == [1.0, pytest.approx(0.8), 0.0, 1.0]
    assert spread(*(np.empty(0),) * 3, EDGES).tolist() == [0.0] * 4


def test_no_io_is_lost() -> None:
    """The storm holds exactly the I/Os that the clients' series hold."""
    reported = storm(clients=7, stagger_s=13, cap=900.0)
    (found,) = storms(reported)
    done = float((found.iops * np.diff(found.edges_s)).sum())
    assert done == pytest.approx(float(reported["series"]["iops"].sum()))
    reads = reported["series"]["direction"] == "read"
    done = float((found.read_iops * np.diff(found.edges_s)).sum())
    assert done == pytest.approx(float(reported["series"]["iops"][reads].sum()))


def test_clients_are_aligned_by_their_clocks() -> None:
    """Starts are those of the first I/O, in order, since the first of all."""
    found = one_storm(("c02", 20.0, [1.0] * 10), ("c01", 0.0, [1.0] * 21), ("c03", 41.5, [1.0] * 9))
    assert [(entry.name, entry.start_s) for entry in found.clients] == [
        ("c01", 0.0),
        ("c02", 20.0),
        ("c03", 41.5),
    ]
    assert [entry.end_s for entry in found.clients] == [21.0, 30.0, 50.5]
    assert (found.started_utc_s, found.last_start_s, found.end_s) == (START_S, 41.5, 50.5)
    assert found.most_at_once == 2


def test_clients_without_a_number_are_named_by_host() -> None:
    """A client is called by what its run's id says behind the step."""
    rows = [client(name, host=host) for name, host in (("vm01-c02", "vm01"), ("vm02", "vm02"))]
    rows.append(client("x") | {"run": "001-vm-r1", "host": "alone"})
    reported = [point for row in rows for point in series(row, "read", [1.0], start_s=START_S)]
    (found,) = storms(frames([result("vm") | row for row in rows], series=reported))
    assert {(entry.name, entry.host) for entry in found.clients} == {
        ("vm01-c02", "vm01"),
        ("vm02", "vm02"),
        ("alone", "alone"),
    }


def test_the_peak_and_the_time_after_the_last_start_are_measured() -> None:
    """The peak is that of all clients together; I/Os after the last start are counted apart."""
    quiet_then_busy = [10.0] * 10 + [100.0] * 5 + [10.0] * 5
    found = one_storm(("c01", 0.0, quiet_then_busy), ("c02", 5.0, quiet_then_busy))
    assert (found.peak_iops, found.peak_s) == (110.0, 12.5)
    assert found.last_start_s == 5.0
    assert found.later_share == pytest.approx(1 - 50 / 1300)
    assert found.most_at_once == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reads", "busy_s"),
    [
        ([100.0] * 10 + [9.0] * 40, 10.0),
        ([100.0] * 10 + [11.0] * 40, 50.0),
        ([100.0] * 10 + [0.0] * 20 + [50.0] * 5 + [1.0] * 15, 35.0),
        ([100.0] * 12, 12.0),
        ([0.0] * 12, 0.0),
    ],
)
def test_a_client_settles_after_its_last_busy_interval(reads: list[float], busy_s: float) -> None:
    """A tenth of its own peak is the line; coming back counts; nobody settles after the end."""
    found = one_storm(("c01", 0.0, [1.0] * 31), ("c02", 30.0, reads))
    assert found.clients[1].busy_s == busy_s


def test_sections_of_a_client_are_added_up() -> None:
    """Boot and what comes after it are one client, though fio reports them apart."""
    row = client("c01")
    after = row | {"group": "after"}
    other = client("c02")
    reported = [
        *series(row, "read", [10.0] * 5, start_s=START_S),
        *series(after, "read", [20.0] * 10, start_s=START_S + 5),
        *series(after, "write", [30.0] * 10, start_s=START_S + 5),
        *series(other, "read", [0.0] * 15, start_s=START_S),
    ]
    (found,) = storms(frames([result("vm") | row, result("vm") | other], series=reported))
    first = next(entry for entry in found.clients if entry.name == "c01")
    assert first.read_iops.tolist() == [10.0, 20.0, 20.0]
    assert first.write_iops.tolist() == [0.0, 30.0, 30.0]
    assert (first.start_s, first.end_s) == (0.0, 15.0)


def test_a_device_that_all_clients_watched_counts_once() -> None:
    """Thirty looks at one device are one device, also where only some of them looked."""
    rows = [client("c01"), client("c02")]
    reported = [point for row in rows for point in series(row, "read", [1.0] * 20, start_s=START_S)]
    looks = [
        *samples(rows[0], [100.0, 200.0, 300.0], [5.0] * 3, start_s=START_S),
        *samples(rows[1], [300.0, 400.0], [5.0] * 2, start_s=START_S + 10),
    ]
    (found,) = storms(frames([result("vm") | row for row in rows], series=reported, device=looks))
    assert found.device == "vdb"
    assert found.device_read_iops.tolist() == [100.0, 200.0, 300.0, 400.0]
    assert found.device_write_iops.tolist() == [5.0] * 4


def test_partial_samples_of_an_interval_yield_to_whole_ones() -> None:
    """A client that ended in the busy half of an interval would tell too much of all of it."""
    rows = [client("c01"), client("c02")]
    reported = [point for row in rows for point in series(row, "read", [1.0] * 10, start_s=START_S)]
    whole = samples(rows[0], [100.0, 50.0], [0.0, 0.0], start_s=START_S)
    half = samples(rows[1], [90.0], [0.0], start_s=START_S + 2.5)
    (found,) = storms(
        frames([result("vm") | row for row in rows], series=reported, device=whole + half)
    )
    assert found.device_read_iops.tolist() == [100.0, 50.0]


def test_ios_missing_at_the_end_of_logs_are_taken_from_the_total() -> None:
    """Old versions of fio lose the last interval of a log, never its I/Os in the result."""
    rows = [client("c01"), client("c02")]
    reported = [point for row in rows for point in series(row, "read", [10.0] * 9, start_s=START_S)]
    totals = ({"total_ios": 102, "runtime_s": 10.0}, {"total_ios": 90, "runtime_s": 9.001})
    summary = [
        result("vm", direction="read") | row | total
        for row, total in zip(rows, totals, strict=True)
    ]
    (found,) = storms(frames(summary, series=reported))
    first, second = found.clients
    assert (first.end_s, second.end_s) == (10.0, 9.0)
    assert first.read_iops.tolist() == [10.0, pytest.approx(10.4)]
    assert second.read_iops.tolist() == [10.0, 8.0]


def test_devices_of_several_hosts_are_added_up() -> None:
    """Each host has its own disk; where nobody watched one, its line is missing."""
    rows = [client("vm01", host="vm01"), client("vm02", host="vm02")]
    reported = [point for row in rows for point in series(row, "read", [1.0] * 10, start_s=START_S)]
    looks = [s for row in rows for s in samples(row, [7.0], [1.0], start_s=START_S)]
    (found,) = storms(frames([result("vm") | row for row in rows], series=reported, device=looks))
    assert found.device == "2 devices"
    assert found.device_read_iops[0] == 14.0
    assert np.isnan(found.device_read_iops[1])
    found = one_storm(("c01", 0.0, [1.0]), ("c02", 0.0, [1.0]))
    assert found.device == ""
    assert np.isnan(found.device_read_iops).all()


def test_failed_clients_are_named_and_left_out() -> None:
    """A storm of fewer clients than asked for never looks like a full one."""
    rows = [result("vm") | client(name) for name in ("c01", "c02", "c03")]
    rows[1] |= {"status": "failed"}
    ended = [client_of(row) for row in rows[::2]]
    reported = [point for row in ended for point in series(row, "read", [1.0], start_s=START_S)]
    (found,) = storms(frames(rows, series=reported))
    assert [entry.name for entry in found.clients] == ["c01", "c03"]
    assert found.without_series == ("001-vm-r1-c02",)


def test_storms_of_campaigns_and_repeats_are_separate() -> None:
    """Runs of one name in two campaigns, or in two repeats, are not one storm."""
    reported = both(storm(clients=2, campaign="slow"), storm(clients=3, campaign="fast"))
    assert [(entry.campaign, len(entry.clients)) for entry in storms(reported)] == [
        ("slow", 2),
        ("fast", 3),
    ]
    again = []
    for repeat in (1, 2):
        rows = [client(name, repeat=repeat) for name in ("c01", "c02")]
        points = [p for row in rows for p in series(row, "read", [1.0], start_s=START_S)]
        again.append(frames([result("vm") | row for row in rows], series=points))
    assert [entry.repeat for entry in storms(both(*again))] == [1, 2]


@pytest.mark.parametrize("lacking", ["utc", "phase", "second", "overlap"])
def test_ordinary_steps_are_not_storms(lacking: str) -> None:
    """One client, preparation, clients in turn and series without times make no storm."""
    reported = storm(clients=2, stagger_s=600 if lacking == "overlap" else 5)
    if lacking == "utc":
        reported["series"]["utc"] = pd.Series([None] * len(reported["series"]), dtype="string")
    elif lacking == "phase":
        reported["summary"]["phase"] = "precondition"
    elif lacking == "second":
        reported["summary"] = reported["summary"][reported["summary"]["run"] == "001-vm-r1-c01"]
    assert storms(reported) == ()


@pytest.mark.parametrize(
    ("limits", "reported"), [((7000.0, 7000.0), 7000.0), ((None, 7000.0), None)]
)
def test_a_limit_counts_where_all_clients_share_it(
    limits: tuple[float | None, ...], reported: float | None
) -> None:
    """Limits of several volumes are no limit of the sum."""
    rows = [
        result("vm") | client(name) | {"limit_iops": limit}
        for name, limit in zip(("c01", "c02"), limits, strict=True)
    ]
    points = [p for row in rows for p in series(client_of(row), "read", [1.0], start_s=START_S)]
    (found,) = storms(frames(rows, series=points))
    assert (None if np.isnan(found.limit_iops) else found.limit_iops) == reported


def client_of(row: Row) -> Row:
    """Return the columns of a row that every frame shares."""
    return {name: row[name] for name in client("x")}
