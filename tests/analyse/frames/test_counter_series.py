"""Counters are made of rates, and each moment counts once however many looked."""

import pandas as pd
import pytest

from volbench.analyse.frames.resample import once_each, running_sum

START = "2026-01-01T00:00:"


def looks(*seen: tuple[str, float, float], host: str = "vm1") -> pd.DataFrame:
    """Return rows of a device: end of the interval, its length, and the rate in it."""
    return pd.DataFrame(
        [
            {"host": host, "utc": f"{START}{end}Z", "interval_s": length, "iops": rate}
            for end, length, rate in seen
        ]
    )


def summed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that count, with the counter at the end of each."""
    rows = once_each(frame, by=["host"])
    return rows.assign(sum=running_sum(rows, rows["iops"] * rows["new_s"], by=["host"]))


def test_integer_counts_are_recovered_exactly() -> None:
    """A rate times its interval is what the kernel had counted; the counter stays in a gap."""
    rows = summed(looks(("01.000", 1.0, 7.0), ("02.003", 1.003, 10 / 1.003), ("03.003", 1.0, 0.0)))
    assert rows["sum"].tolist() == [7.0, 17.0, 17.0]
    assert rows["opens"].tolist() == [True, False, False]
    rows = summed(looks(("01.000", 1.0, 5.0), ("30.000", 1.0, 2.0)))
    assert rows["opens"].tolist() == [True, True]
    assert rows["begin_s"].diff().tolist()[1] == pytest.approx(29.0)
    assert rows["sum"].tolist() == [5.0, 7.0]


def test_time_sampled_by_two_clients_counts_once() -> None:
    """Looks of two clients at one device don't double what it did."""
    first = looks(("01.000", 1.0, 100.0), ("02.000", 1.0, 100.0))
    second = looks(("01.500", 1.0, 100.0), ("02.500", 1.0, 100.0))
    rows = summed(pd.concat([first, second]))
    assert rows["sum"].tolist() == pytest.approx([100.0, 150.0, 200.0, 250.0])
    assert rows["new_s"].tolist() == pytest.approx([1.0, 0.5, 0.5, 0.5])
    rows = summed(pd.concat([looks(("01.000", 1.0, 5.0)), looks(("01.000", 1.0, 5.0))]))
    assert rows["sum"].tolist() == [5.0]


def test_hosts_are_counted_separately() -> None:
    """What one host did is not added to another's."""
    two = pd.concat([looks(("01.000", 1.0, 5.0)), looks(("01.000", 1.0, 3.0), host="vm2")])
    assert summed(two).set_index("host")["sum"].to_dict() == {"vm1": 5.0, "vm2": 3.0}
