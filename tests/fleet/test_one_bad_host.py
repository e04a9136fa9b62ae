"""One bad host of eight, of several kinds: the others measure right, and each is named."""

import time
from pathlib import Path

import pytest

import volbench
from tests.fleet.delay import long_line
from tests.fleet.desk import Desk, check_clean, ended, gate_has
from tests.fleet.hosts import RealHost, fleet
from tests.waiting import until

pytestmark = [pytest.mark.root, pytest.mark.slow]

_IOPS = 200  # limit of a host of the desk


def test_bad_hosts_harm_no_other(tmp_path: Path) -> None:
    """One floods its login, one has no room, one is far; for 8 s one is frozen, one refuses us."""
    with fleet(8, tmp_path / "f") as found, long_line(found[4], round_trip_s=0.5) as port:
        flooding, full, refusing, freezing, *_ = found.hosts
        desk = Desk(tmp_path, found)
        desk.prepare(runtime="20s", jobs=["a"], ports={4: port})
        (flooding.folder / "root/.bashrc").write_text("yes Welcome\n")
        accounts = flooding.folder / "etc/passwd"
        accounts.write_text(accounts.read_text().replace(":/root:/bin/sh", ":/root:/bin/bash"))
        full.run("mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", "/var/tmp")
        process = desk.run("--policy", "best-effort", "--accept-new-host-keys")
        until(lambda: all(gate_has(host, "woke") for host in found.hosts[2:]))
        freezing.freeze()
        refuse_logins(refusing)
        freezing.freeze(thaw=True)
        printed = ended(process, status=9)
        assert desk.states() == ["finished"] * 6, printed
        assert "left out: vm0: the login shell on vm0 prints without end" in printed
        assert "left out: vm1: /var/tmp" in printed
        (total,) = volbench.open_campaign(desk.out).frame("aggregate")["iops"]
        assert 0.3 * _IOPS * 6 < total < 1.05 * _IOPS * 6
        check_clean(found.hosts[2:])


def refuse_logins(host: RealHost) -> None:
    """End all sessions of a host, and accept no key for 8 s."""
    keys = host.folder / "run/fleet/authorized_keys"
    content = keys.read_bytes()
    keys.write_bytes(b"")
    host.kill_sshd()
    host.start_sshd()
    time.sleep(8)
    keys.write_bytes(content)
