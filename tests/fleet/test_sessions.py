"""Sessions and round trips that a campaign costs on a real host."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.desk import Desk, check_clean, ended
from tests.fleet.hosts import Fleet, fleet

pytestmark = pytest.mark.root

MAX_SESSIONS = 8
"""Of a host, for each step of a campaign."""


@pytest.fixture(name="hosts", scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(2, tmp_path_factory.mktemp("sessions") / "f") as found:
        yield found


def sessions(hosts: Fleet) -> Counter[str]:
    """Return the sessions that each sshd has started."""
    return Counter({host.name: host.log.count("Starting session: ") for host in hosts.hosts})


def test_a_step_costs_few_sessions(tmp_path: Path, hosts: Fleet) -> None:
    """One session carries all requests and pushed state; results take one more for each run."""
    desk = Desk(tmp_path, hosts)
    desk.prepare(runtime="1s")
    before = sessions(hosts)
    ended(desk.run())
    assert desk.states() == ["finished"] * 4
    used = sessions(hosts) - before
    assert set(used) == {host.name for host in hosts.hosts}
    assert max(used.values()) <= 2 * MAX_SESSIONS
    check_clean(hosts.hosts)
