"""Hosts that were given up while they stood still: when they are back, they clean up themselves."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fleet.desk import Desk, check_clean, ended, gate_has
from tests.fleet.hosts import RealHost, fleet
from tests.fleet.ways import executor_for
from tests.waiting import PATIENCE_S, until
from volbench.engine.hosts.described_volumes import identities_of
from volbench.engine.hosts.host_facts import survey_machine
from volbench.errors import RefusedError, TransportError
from volbench.execute.agent import locks
from volbench.execute.agent.files import NamedFile, make_private_folder, remove_exactly, write_files
from volbench.execute.agent.locks import Reservation
from volbench.execute.agent.operations import LIMITS_S
from volbench.execute.agent.supervisor import launch
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import Patience
from volbench.execute.client import Request

pytestmark = pytest.mark.root

NUMBER = "4094:7"
"""No device has this number."""


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Iterator[Desk]:
    with fleet(2, tmp_path / "f") as found:
        yield Desk(tmp_path, found)


def reserve(machine: AgentExecutor, key: str) -> Reservation:
    """Lock a device for a campaign, as the engine does."""
    return machine.ask(
        locks.reserve, key, [NUMBER], ["/var/tmp"], machine.work_folder("", name=key)
    )


def locks_on(host: RealHost) -> str:
    """Return the locks and records on a host."""
    return host.run("sh", "-c", "ls -d /run/lock/volbench-* /tmp/volbench-* 2>/dev/null || true")


def agents(host: RealHost) -> list[str]:
    """Return the agents on a host."""
    reported = host.run("ps", "-ww", "-eo", "args=").splitlines()
    return [line for line in reported if "python3" in line]


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_host_frozen_while_it_is_reserved_is_free_again(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    is_begun: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Its agent carries out what it still had to, and takes it back where no run needs it."""
    (host, _) = desk.fleet.hosts
    with executor_for(desk.fleet, host) as machine:
        survey_machine(machine)
        reserve(machine, "k")
        machine.ask(make_private_folder, "/var/tmp", "volbench-k")
        if is_begun:
            machine.ask(write_files, {machine.work_folder("", name="k/001") + "/job.fio": ""})
        host.freeze()
        try:
            machine.client.patience = Patience(tries=1)
            monkeypatch.setitem(LIMITS_S, "reserve", 1.0)
            with pytest.raises(TransportError, match="reserve did not end in 1 s"):
                reserve(machine, "k")
        finally:
            machine.close()
            host.freeze(thaw=True)
        until(lambda: agents(host) == [])
    assert (locks_on(host) != "") == is_begun
    left = [path.name for path in (host.folder / "vartmp").iterdir()]
    assert left == (["volbench-k"] if is_begun else [])


def test_a_host_frozen_while_its_private_folder_is_made_removes_it(desk: Desk) -> None:
    """The folder is made once the host goes on: its controller never hears of it.

    It is not made where sshd was still to read the request when the connection ended.
    """
    (host, _) = desk.fleet.hosts
    parent = host.folder / "vartmp"

    def is_made_unheard() -> bool:
        before_ns = parent.stat().st_mtime_ns
        ask_for_a_folder_while_frozen(desk, host)
        assert list(parent.iterdir()) == []
        assert locks_on(host) == ""
        return parent.stat().st_mtime_ns > before_ns

    until(is_made_unheard)


def ask_for_a_folder_while_frozen(desk: Desk, host: RealHost) -> None:
    """Reserve a host, freeze it, ask for a folder in vain, and let it go on without controller."""
    with executor_for(desk.fleet, host) as machine:
        survey_machine(machine)
        reserve(machine, "k")
        host.freeze()
        try:
            machine.client.patience = Patience(tries=1)
            arguments: dict[str, object] = {"parent": "/var/tmp", "name": "volbench-k"}
            request = machine.request(make_private_folder, arguments)
            with pytest.raises(TransportError, match="make_private_folder /var/tmp did not end"):
                machine.client.ask(replace(request, timeout_s=1.0))
        finally:
            machine.close()
            host.freeze(thaw=True)
        until(lambda: agents(host) == [])


def test_a_reservation_survives_a_broken_connection(desk: Desk) -> None:
    """The next connection makes it anew, unless another campaign was faster."""
    (host, _) = desk.fleet.hosts
    with executor_for(desk.fleet, host) as machine, executor_for(desk.fleet, host) as other:
        survey_machine(machine)
        assert reserve(machine, "k") == Reservation("", "", {})
        host.kill_sshd()
        host.start_sshd()
        until(lambda: agents(host) == [])
        assert locks_on(host) == ""
        assert machine.ask(locks.lock_holder, NUMBER) == "k"
        host.kill_sshd()
        host.start_sshd()
        assert reserve(other, "l") == Reservation("", "", {})
        with pytest.raises(RefusedError, match=r"another campaign \(l\) locked the device 4094:7"):
            machine.ask(locks.lock_holder, NUMBER)


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("is_ready", [False, True])
def test_a_host_that_is_lost_while_it_is_released_cleans_itself(
    desk: Desk,
    is_cut: bool,  # noqa: FBT001 - a parameter
    is_ready: bool,  # noqa: FBT001 - a parameter
) -> None:
    """What the removal of a campaign did not reach is removed when the controller is gone."""
    (host, _) = desk.fleet.hosts
    with executor_for(desk.fleet, host) as machine:
        survey_machine(machine)
        reserve(machine, "k")
        folder, mark = machine.ask(make_private_folder, "/var/tmp", "volbench-k")
        host.run("sh", "-c", f"echo > {folder}/file; echo > {folder}/other")
        (made,) = identities_of(machine, [f"{folder}/file"])
        assert made is not None
        machine.owe([NamedFile(f"{folder}/file", made), NamedFile(folder, mark)])
        if is_ready:  # one that volbench did not make keeps its folder
            host.run("rm", f"{folder}/other")
        machine.ask(locks.lock_holder, NUMBER)
        host.link(up=False) if is_cut else host.freeze()
        try:
            machine.client.patience = Patience(tries=1)
            with pytest.raises(TransportError, match="remove_exactly did not end in 1 s"):
                machine.client.ask(
                    Request(remove_exactly, {"files": [[folder, mark]]}, timeout_s=1.0)
                )
        finally:
            machine.close()
            host.link(up=True) if is_cut else host.freeze(thaw=True)
        until(lambda: agents(host) == [])
    assert locks_on(host) == ""
    left = [path.name for path in (host.folder / "vartmp").rglob("*")]
    assert left == ([] if is_ready else ["volbench-k", "other"])


def test_a_host_notices_that_its_controller_is_gone(desk: Desk) -> None:
    """The link is cut for so long that no end of the connection arrives."""
    (host, _) = desk.fleet.hosts
    with executor_for(desk.fleet, host) as machine:
        survey_machine(machine)
        reserve(machine, "k")
        host.link(up=False)
        machine.close()
        time.sleep(20.0)  # The kernel of the controller tries for 15 s.
        host.link(up=True)
        until(lambda: agents(host) == [])
    assert locks_on(host) == ""


def test_a_launch_that_was_given_up_starts_nothing(desk: Desk) -> None:
    """It reached the host, and its agent reads it after the thaw, when nobody waits for it."""
    (host, _) = desk.fleet.hosts
    with executor_for(desk.fleet, host) as machine:
        survey_machine(machine)
        folder = machine.work_folder("", name="k/001")
        paths = {"cwd": folder, "stderr": f"{folder}/stderr", "control": f"{folder}/.stderr"}
        more = {"argv": ["sleep", "600"], "longest_s": 600.0, "files": {f"{folder}/": ""}}
        host.freeze()
        try:
            machine.client.post(Request(launch, {**paths, **more}, timeout_s=0.5))
            time.sleep(1.0)
        finally:
            machine.close()
            host.freeze(thaw=True)
        until(lambda: agents(host) == [])
    assert not (host.folder / "root/.volbench").exists()


def test_probe_leaves_nothing_on_a_host_that_froze(desk: Desk) -> None:
    """The supervisor of its rehearsal removes the work folder when nobody does."""
    desk.prepare()
    host = desk.fleet[1]
    process = desk.start("hosts", "--inventory", "fleet.yaml")
    ends = (host.folder / "root/.volbench").glob
    until(lambda: any(ends("rehearsal-*/.*/end")) or process.poll() is not None)
    host.freeze()
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    host.freeze(thaw=True)
    until(lambda: not (host.folder / "root/.volbench").exists())
    until(lambda: agents(host) == [])


def test_a_campaign_leaves_nothing_on_a_host_that_froze(desk: Desk) -> None:
    """The other host goes on without it; when it is back, nothing waits for a reap."""
    desk.prepare(runtime="2s", jobs=["a"])
    process = desk.run("--policy", "best-effort,4s")
    until(lambda: any(entry["kind"] == "in-use" for entry in desk.journal()))
    desk.fleet[1].freeze()
    begun = time.monotonic()
    try:
        printed, _ = process.communicate(timeout=300)
    finally:
        desk.fleet[1].freeze(thaw=True)
    assert "vm1" in printed
    assert desk.states()[0] == "finished", printed
    # The request under way does not take its deadline, which is 180 s for a look at volumes.
    assert time.monotonic() - begun < 150, printed
    until(lambda: gate_has(desk.fleet[1], "ready") or agents(desk.fleet[1]) == [])
    if any((desk.fleet[1].folder / "root/.volbench").glob("*/001-*")):
        ended(desk.start("resume", desk.out))  # its run was launched, before it froze or after
    until(lambda: agents(desk.fleet[1]) == [])
    assert locks_on(desk.fleet[1]) == "", printed
    assert list((desk.fleet[1].folder / "vartmp").iterdir()) == [], printed
    check_clean(desk.fleet.hosts)
