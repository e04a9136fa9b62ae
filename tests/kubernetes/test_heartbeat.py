"""Heartbeat of a campaign's controller: by time, and by its process where that can be seen."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from volbench.engine.hosts.orphans import identify
from volbench.execute.local import LocalExecutor
from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.leases import LEASE_S, heartbeat, last_heartbeat


class OneLease:
    """A cluster with one lease."""

    def __init__(self) -> None:
        self.lease: Manifest | None = None

    def delete(self, kind: str, name: str) -> None:
        """Remove the lease."""
        del kind, name
        self.lease = None

    def create(self, manifest: Manifest) -> None:
        """Keep the lease."""
        self.lease = manifest

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return the lease."""
        del kind, name
        return self.lease


@pytest.fixture
def lease() -> OneLease:
    """Return a cluster whose lease was renewed by this process just now."""
    objects = OneLease()
    with heartbeat(cast("Cluster", objects), "c"):
        return objects


def set_process(objects: OneLease, **changed: object) -> None:
    """Change the identity of the process that holds a lease."""
    assert objects.lease is not None
    notes = objects.lease["metadata"]["annotations"]
    ((key, text),) = notes.items()
    notes[key] = json.dumps(json.loads(text) | changed)


def is_running(objects: OneLease) -> bool:
    """Return whether the controller counts as running."""
    last = last_heartbeat(cast("Cluster", objects), "c")
    return last is not None and last.is_running


def test_a_controller_is_running_while_it_renews(lease: OneLease) -> None:
    """Without a renewal for two minutes it counts as ended, wherever it ran."""
    assert is_running(lease)
    assert lease.lease is not None
    old = datetime.now(UTC) - timedelta(seconds=LEASE_S + 1)
    lease.lease["spec"]["renewTime"] = old.isoformat()
    assert not is_running(lease)


def test_a_killed_controller_of_this_machine_is_seen_at_once(lease: OneLease) -> None:
    """Its process is gone: nobody has to wait for its lease."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ended:
        set_process(lease, **identify(LocalExecutor(), ended.pid))
        assert is_running(lease)
        ended.kill()
    assert not is_running(lease)


@pytest.mark.parametrize("where", ["boot_id", "pid_namespace"])
def test_processes_elsewhere_are_not_judged(lease: OneLease, where: str) -> None:
    """The same pid on another machine, or in another container, says nothing."""
    set_process(lease, pid=2**22 + os.getpid(), **{where: "other"})
    assert is_running(lease)


def test_a_campaign_without_a_lease_has_no_controller() -> None:
    """There is no heartbeat at all."""
    assert last_heartbeat(cast("Cluster", OneLease()), "c") is None
