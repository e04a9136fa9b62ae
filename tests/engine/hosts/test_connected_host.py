"""Hosts that are connected: their errors, their clocks, and a fio that is missing or hangs."""

from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor
from volbench.engine.hosts.connected_host import ConnectedHost, estimate_clock, raise_all
from volbench.engine.hosts.host_facts import options_on, require_fio
from volbench.errors import (
    CampaignError,
    ConnectError,
    FioError,
    RefusedError,
    TransportError,
    VolbenchError,
)
from volbench.execute.agent import facts
from volbench.execute.client import PythonError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import ClockReading, OperationError
from volbench.model.campaign.host import Host


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([PythonError("no Python"), PythonError("no Python")], TransportError),
        ([OperationError("failed", "no memory"), OperationError("failed", "odd")], TransportError),
        ([ConnectError("lost"), ConnectError("lost")], ConnectError),
        ([RefusedError("in use"), ConnectError("lost")], CampaignError),
    ],
)
def test_errors_of_all_hosts_become_one(
    errors: list[VolbenchError], expected: type[VolbenchError]
) -> None:
    """Also errors that are made with other arguments than their class's general form."""
    with pytest.raises(VolbenchError) as caught:
        raise_all([ConnectedHost(Host(name=name), LocalExecutor()) for name in "ab"], errors)
    assert type(caught.value) is expected
    first, second = (error.message for error in errors)
    both = f"a, b: {first} (the first of 2 hosts)"
    listed = both if first == second else f"a: {first}; b: {second}"
    assert caught.value.message == f"2 of 2 hosts cannot take part: {listed}"
    assert caught.value.hint == (errors[0].hint if errors[0].hint == errors[1].hint else "")


def test_the_error_of_a_single_host_names_it() -> None:
    """Unless it is this machine, or its message does already."""
    hosts = [ConnectedHost(Host(name="vm7", address="192.0.2.1"), FakeExecutor())]
    for message in ("no folder /data", "vm7: no folder /data"):
        with pytest.raises(RefusedError) as caught:
            raise_all(hosts, [RefusedError(message)])
        assert caught.value.message == "vm7: no folder /data"


def test_the_shortest_exchange_counts() -> None:
    """A host 3 s ahead: the exchange of 20 ms says it to 10 ms, the slow ones are not looked at."""
    readings = [
        ClockReading(100.0, 103.3, 100.4),
        ClockReading(101.0, 104.01, 101.02),
        ClockReading(102.0, 105.1, 102.2),
    ]
    clock = estimate_clock(readings)
    assert clock.offset_s == pytest.approx(3.0)
    assert clock.bound_s == pytest.approx(0.01)
    assert clock.round_trip_s == pytest.approx(0.02)


def test_an_offset_within_its_bound_is_not_corrected() -> None:
    """It may be none; what it might be is added to the bound."""
    clock = estimate_clock([ClockReading(100.0, 100.2, 100.3)])
    assert clock.offset_s == 0
    assert (clock.bound_s, clock.round_trip_s) == pytest.approx((0.2, 0.3))


def test_a_fio_that_hangs_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is asked for in a bounded time, and the error says that it did not come."""
    monkeypatch.setattr(facts, "ANSWER_S", 0.2)
    fio = tmp_path / "fio"
    fio.write_text('#!/bin/sh\necho begin >>"$0.log"\nexec sleep 60\n')
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(FioError, match=r"fio does not answer as fio does: no end in 0\.2 s"):
        require_fio(LocalExecutor())
    assert (tmp_path / "fio.log").read_text() == "begin\n"


@pytest.mark.parametrize("status", [0, 1])
def test_another_program_called_fio_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Its help is not that of an option."""
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\nseq 17\nexit {status}\n")
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(FioError, match=r"/fio does not answer as fio does: 1$"):
        options_on(LocalExecutor())
