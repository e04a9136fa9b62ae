"""Clock offsets over SSH: the true offset is zero, as all test hosts share our kernel's clock."""

import pytest

from tests.fleet.hosts import Fleet
from tests.fleet.ways import executor_for
from volbench.engine.hosts.host_facts import survey_machine

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
    assert clock.bound_s < 0.9
