"""Lease of a campaign: one controller at a time, by the server's clock, whatever was copied."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from tests.waiting import sleep_by
from volbench.engine.hosts.orphans import identify
from volbench.errors import CampaignError
from volbench.execute.local import LocalExecutor
from volbench.extensions.kubernetes import leases
from volbench.extensions.kubernetes.cluster import Cluster, Manifest, RequestError
from volbench.extensions.kubernetes.leases import LEASE_S, CampaignLease, current_holder

HERE: dict[str, object] = {}
ELSEWHERE: dict[str, object] = {"boot_id": "of another machine"}


class Server:
    """An API server with a clock of its own, some leases and pods; sleeping moves its clock."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC) - timedelta(seconds=150)  # this machine's clock is wrong
        self.lease: Manifest | None = None
        self.pods: dict[str, Manifest] = {}
        self.version = 0
        self.on_sleep: Callable[[], object] = lambda: None

    def command(self, verb: str, *names: str) -> str:
        """Return a command for this server."""
        return " ".join(("volbench", "k8s", verb, *names))

    def server_time(self) -> datetime:
        """Return the time of this server."""
        return self.now

    def read_monotonic(self) -> float:
        """Return the time as the clock of a machine that was not set has it."""
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        self.on_sleep()

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return the lease or a pod."""
        return deepcopy(self.lease) if kind == "Lease" else self.pods.get(name)

    def create(self, manifest: Manifest) -> Manifest:
        """Keep the lease, unless there is one."""
        if self.lease is not None:
            raise RequestError("it exists", status=409)
        return self._keep(manifest)

    def patch(self, _kind: str, _name: str, change: Manifest) -> Manifest:
        """Change the lease, if it has the version that its writer knows."""
        if self.lease is None:
            raise RequestError("it does not exist", status=404)
        if change["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise RequestError("it was changed", status=409)
        new = deepcopy(self.lease)
        new["spec"] |= change["spec"]
        notes = new["metadata"].get("annotations", {})
        new["metadata"]["annotations"] = notes | change["metadata"].get("annotations", {})
        return self._keep(new)

    def _keep(self, lease: Manifest) -> Manifest:
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = deepcopy(lease)
        return lease


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server on whose clock everybody waits."""
    made = Server()
    sleep_by(monkeypatch, made.sleep)
    monkeypatch.setattr(time, "monotonic", made.read_monotonic)
    return made


def lease_on(
    server: Server, process: Mapping[str, object] = HERE, *, folder: Path | None = None
) -> CampaignLease:
    """Return a lease of the campaign c, for a process with this identity; else for this one."""
    lease = CampaignLease(cast("Cluster", server), "c", folder)
    lease.described["process"] |= process
    return lease


def is_live(server: Server) -> bool:
    """Return whether the campaign has a live controller."""
    holder = current_holder(cast("Cluster", server), "c")
    return holder is not None and holder.is_live


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a campaign folder."""
    made = tmp_path / "original"
    made.mkdir()
    (made / "campaign.json").write_text("{}")
    return made


def test_a_controller_is_live_while_it_renews(server: Server) -> None:
    """A clock of its machine that is minutes off changes nothing."""
    lease = lease_on(server, ELSEWHERE)
    lease.take()
    server.sleep(LEASE_S - 1)
    assert is_live(server)
    assert lease.renew()
    server.sleep(LEASE_S - 1)
    assert is_live(server)
    server.sleep(1)
    assert not is_live(server)


@pytest.mark.parametrize("process", [HERE, ELSEWHERE])
def test_a_live_controller_keeps_its_lease(server: Server, process: dict[str, object]) -> None:
    """Who is refused has changed nothing: the first holds the lease as before."""
    first, second = lease_on(server, process), lease_on(server)
    first.take()
    before = deepcopy(server.lease)
    with pytest.raises(CampaignError, match="is held by a controller on"):
        second.take(waits=False)
    assert server.lease == before
    second.release()
    assert first.renew()
    assert is_live(server)


def test_a_waiting_controller_sees_a_renewal_and_gives_up(server: Server) -> None:
    """A controller elsewhere that renews its lease is alive: waiting longer does not help."""
    first, second = lease_on(server, ELSEWHERE), lease_on(server)
    first.take()
    server.on_sleep = first.renew
    with pytest.raises(CampaignError, match="is held by"):
        second.take()
    assert first.renew()


def test_a_lease_that_is_not_renewed_is_taken_over(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """A controller was killed elsewhere: another waits for the end of its lease, and says so."""
    lease_on(server, ELSEWHERE).take()
    server.sleep(20)
    begun = server.now
    lease_on(server).take()
    assert LEASE_S - 20 <= (server.now - begun).total_seconds() < LEASE_S
    assert "waiting up to 100 s" in capsys.readouterr().err


def test_an_expired_lease_is_watched_first(server: Server) -> None:
    """After an outage of the server the holder renews its lease first."""
    first, second = lease_on(server, ELSEWHERE), lease_on(server)
    first.take()
    server.sleep(2 * LEASE_S)
    server.on_sleep = first.renew
    with pytest.raises(CampaignError, match="is held by"):
        second.take(waits=False)
    server.on_sleep = lambda: None
    server.sleep(2 * LEASE_S)
    second.take(waits=False)
    assert not first.renew()
    first.release()
    assert second.renew()


def test_a_killed_controller_of_this_machine_is_noticed_at_once(server: Server) -> None:
    """Its process is gone: nobody has to wait for its lease."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ended:
        lease_on(server, identify(LocalExecutor(), ended.pid)).take()
        assert is_live(server)
        ended.kill()
    assert not is_live(server)
    begun = server.now
    lease_on(server).take()
    assert server.now == begun


@pytest.mark.parametrize("where", ["boot_id", "pid_namespace"])
def test_processes_on_other_machines_are_not_examined(server: Server, where: str) -> None:
    """The same pid on another machine, or in another container, says nothing."""
    lease_on(server, {"pid": 2**22 + os.getpid(), where: "other"}).take()
    assert is_live(server)


@pytest.mark.parametrize(
    ("pod", "live"),
    [(None, False), ({"status": {"phase": "Failed"}}, False), ({"status": {}}, True)],
)
def test_a_controller_in_a_pod_ends_with_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, pod: Manifest | None, *, live: bool
) -> None:
    """The cluster knows when its pod has ended: the next one need not wait."""
    monkeypatch.setenv(leases.POD_VARIABLE, "p")
    lease_on(server).take()
    if pod is not None:
        server.pods["p"] = pod
    assert is_live(server) is live


def test_a_process_takes_the_lease_of_its_parent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that goes on in the background is handed over without a wait."""
    first, second = lease_on(server), lease_on(server)
    first.take()
    monkeypatch.setattr(os, "getppid", os.getpid)
    second.take(waits=False)
    assert not first.renew()
    first.release()
    assert second.renew()


def test_a_released_lease_has_no_holder(server: Server) -> None:
    """The next controller takes it at once."""
    assert current_holder(cast("Cluster", server), "c") is None
    lease = lease_on(server, ELSEWHERE)
    lease.take()
    lease.release()
    assert current_holder(cast("Cluster", server), "c") is None
    begun = server.now
    lease_on(server).take()
    assert server.now == begun


def test_an_outdated_copy_of_the_folder_is_refused(server: Server, folder: Path) -> None:
    """What the original has done since is unknown to the copy; which folder that is, is said."""
    lease_on(server).take()  # by `volbench run`, before there was a folder
    server.sleep(2 * LEASE_S)
    monkey = server.lease
    assert monkey is not None
    monkey["spec"]["holderIdentity"] = ""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    for _ in range(2):  # a folder recognises its own marks
        resumed = lease_on(server, folder=folder)
        resumed.take()
        resumed.release()
    before = deepcopy(server.lease)
    with pytest.raises(CampaignError, match=f"continued from {folder} on") as caught:
        lease_on(server, folder=copy).take()
    assert f"volbench resume {folder}" in caught.value.hint
    assert server.lease == before
    removing = lease_on(server)  # by its name, for whoever has no folder of it
    removing.take()
    removing.release()
    later = folder.with_name("later")
    folder.rename(later)  # moved, not copied
    lease_on(server, folder=later).take()


def test_a_controller_killed_between_both_marks_is_not_a_copy(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has its new mark, the cluster the one before: it is the same folder."""
    first = lease_on(server, folder=folder)
    first.take()
    first.release()
    second = lease_on(server, folder=folder)
    with monkeypatch.context() as patch:
        patch.setattr(server, "patch", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            second.take()
    lease_on(server, folder=folder).take()


def test_descriptions_of_others_are_not_trusted(server: Server) -> None:
    """Whatever was written into the annotation, its lease counts by its time."""
    for text in ("", "[]", "{", json.dumps({"machine": 1}), '{"process": 1}'):
        server.lease = None
        lease_on(server).take()
        assert server.lease is not None
        server.lease["metadata"]["annotations"]["volbench.io/controller"] = text
        assert is_live(server)
