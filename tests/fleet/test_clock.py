"""Clock offsets over SSH: the true offset is zero, as all test hosts share our kernel's clock."""

import pytest

from tests.fleet.delay import long_line
from tests.fleet.hosts import Fleet
from tests.fleet.ways import executor_for, listed, pool_for
from volbench.engine.hosts.host_facts import survey_machine
from volbench.execute.ssh.ssh_channel import ssh_executor

pytestmark = pytest.mark.root


def test_slow_start_of_a_session_is_not_an_offset(hosts: Fleet) -> None:
    """A host whose sessions take 2 s to begin has the offset that it has without that."""
    rc = hosts[0].folder / "root/.ssh/rc"
    rc.parent.mkdir(exist_ok=True)
    rc.write_text("sleep 2\n")
    try:
        with executor_for(hosts, hosts[0]) as machine:
            clock = survey_machine(machine)[1]
    finally:
        rc.unlink()
    assert clock is not None
    assert clock.offset_s == 0
    assert clock.bound_s < 0.6


def test_long_latency_is_not_an_offset(hosts: Fleet) -> None:
    """Over a round trip of 300 ms the offset may be wrong by half of it, so it is not corrected."""
    with long_line(hosts[0], round_trip_s=0.3) as port:
        far = listed(hosts, hosts[0], address="127.0.0.1", port=port)
        known = hosts.folder / "known_far"
        with pool_for(hosts, far, known=known, accept_new=True) as pool:
            clock = survey_machine(ssh_executor(far, pool))[1]
    assert clock is not None
    assert clock.offset_s == 0
    assert 0.14 < clock.bound_s < 0.45
    assert clock.round_trip_s > 0.29
