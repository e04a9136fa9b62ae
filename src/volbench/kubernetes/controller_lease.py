"""Lease by which a campaign shows that its controller is at work, renewed while it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from os import getpid
from socket import gethostname

from volbench.engine.hosts.orphans import identify, is_alive
from volbench.errors import VolbenchError
from volbench.execute.local import LocalExecutor
from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.leases import lease_holder, lease_manifest

LEASE_S = 120  # Seconds without a renewal after which a controller counts as ended

_RENEW_S = 30.0
_NAMESPACE = "pid_namespace"
# Annotation with the identity of the controller's process, which its own machine can verify
_PROCESS = "volbench.io/process"


@dataclass(frozen=True)
class ControllerSign:
    """The last sign of a controller."""

    machine: str  # host name of its machine
    age_s: float  # time since it was given
    is_dead: bool  # whether its process has ended, which only its own machine knows

    @property
    def is_at_work(self) -> bool:
        """Whether the controller counts as running."""
        return not self.is_dead and self.age_s < LEASE_S


def last_sign(cluster: Cluster, campaign: str) -> ControllerSign | None:
    """Return the last sign of the controller of a campaign, None if there is none."""
    lease = cluster.read("Lease", campaign)
    renewed = (lease or {}).get("spec", {}).get("renewTime")
    if lease is None or not renewed:
        return None
    age = datetime.now(UTC) - datetime.fromisoformat(renewed)
    process = lease["metadata"].get("annotations", {}).get(_PROCESS, "{}")
    return ControllerSign(lease_holder(lease), age.total_seconds(), _has_ended(json.loads(process)))


def _has_ended(process: Manifest) -> bool:
    """Return whether a process of this machine has ended; False for those of other machines."""
    own = _own_process()
    if not own["boot_id"] or any(process.get(key) != own[key] for key in ("boot_id", _NAMESPACE)):
        return False
    return not is_alive(LocalExecutor(), {k: v for k, v in process.items() if k != _NAMESPACE})


def _own_process() -> Manifest:
    here = LocalExecutor()
    namespace = here.real_path("/proc/self/ns/pid").rpartition("/")[2]
    return identify(here, getpid()) | {_NAMESPACE: namespace}


@contextmanager
def shown_as_running(cluster: Cluster, campaign: str) -> Iterator[None]:
    """Renew the lease of a campaign inside the block.

    A cluster that cannot be reached is tried again: the runs there do not depend on it.
    """
    manifest = lease_manifest(campaign, campaign, holder=gethostname(), labels={})
    manifest["metadata"]["annotations"] = {_PROCESS: json.dumps(_own_process())}
    cluster.delete("Lease", campaign)
    cluster.create(manifest | {"spec": manifest["spec"] | _renewed()})
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(_RENEW_S):
            _attempt(cluster, campaign)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _attempt(cluster: Cluster, campaign: str) -> VolbenchError | None:
    """Renew a lease; return the error if that fails now."""
    try:
        cluster.patch("Lease", campaign, {"spec": _renewed()})
    except VolbenchError as error:
        return error
    return None


def _renewed() -> Manifest:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"renewTime": now, "leaseDurationSeconds": LEASE_S}
