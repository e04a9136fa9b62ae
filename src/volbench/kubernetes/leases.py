"""Leases of a campaign: locks on the devices of a node, and the heartbeat of its controller.

Pods of one node share its devices, and see no files of each other: their locks are objects of the
cluster. A lock is void once the object that owns its campaign is gone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from os import getpid
from socket import gethostname

from volbench.engine.hosts.orphans import identify, is_alive
from volbench.errors import VolbenchError
from volbench.execute.local import LocalExecutor
from volbench.kubernetes.cluster import Cluster, Manifest, RequestError
from volbench.kubernetes.manifests import CAMPAIGN_LABEL, campaign_labels, make_object

_SHARED_LABEL = "volbench.io/filesystem"

# Three renewals in a row may fail before another machine takes the campaign for abandoned.
# Noticed by: tests/kubernetes/test_heartbeat.py::test_a_controller_is_running_while_it_renews
LEASE_S = 120
_RENEW_S = LEASE_S / 4

_NAMESPACE = "pid_namespace"
# Annotation with the identity of the controller's process, which its own machine can verify
_PROCESS = "volbench.io/process"


class LeaseLocks:
    """Locks on the devices and file systems of a node."""

    def __init__(self, cluster: Cluster, *, node: str, campaign: str) -> None:
        self._cluster = cluster
        self._node = node
        self._campaign = campaign

    def answer(self, verb: str, name: str, key: str) -> str:
        """Take, free, show, join or leave a lock; see `protocol.SharedLocks`."""
        digest = sha256(f"{self._node} {name}".encode()).hexdigest()[:16]
        lock = f"volbench-lock-{digest}"
        share = f"volbench-shared-{digest}-{sha256(key.encode()).hexdigest()[:16]}"
        match verb:
            case "take":
                return self._take(lock, key)
            case "show":
                return lease_holder(self._cluster.read("Lease", lock))
            case "free":
                if lease_holder(self._cluster.read("Lease", lock)) == key:
                    self._cluster.delete("Lease", lock)
            case "join":
                return self._join(share, key, digest)
            case "leave":
                self._cluster.delete("Lease", share)
        return ""

    def _take(self, lock: str, key: str) -> str:
        """Create a lock and return "", or the key of its holder."""
        for _ in range(3):
            try:
                self._cluster.create(_lease(lock, self._campaign, holder=key))
            except RequestError as error:
                if error.status != 409:
                    raise
            else:
                return ""
            lease = self._cluster.read("Lease", lock)
            if lease is None:
                continue
            if lease_holder(lease) == key or not self._is_void(lease):
                return "" if lease_holder(lease) == key else lease_holder(lease)
            self._cluster.delete("Lease", lock, uid=lease["metadata"]["uid"])
        return "unknown"

    def _join(self, share: str, key: str, digest: str) -> str:
        lease = _lease(share, self._campaign, holder=key)
        lease["metadata"]["labels"][_SHARED_LABEL] = digest
        try:
            self._cluster.create(lease)
        except RequestError as error:
            if error.status != 409:
                raise
        leases = self._cluster.list("Lease", f"{_SHARED_LABEL}={digest}")
        others = {lease_holder(lease) for lease in leases if not self._is_void(lease)} - {key}
        return "\n".join(sorted(others))

    def _is_void(self, lease: Manifest) -> bool:
        """Return whether the campaign of a lease is gone."""
        owner = lease["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "")
        return not owner or self._cluster.read("ConfigMap", owner) is None


def _lease(
    name: str, campaign: str, *, holder: str, annotations: Mapping[str, str] | None = None
) -> Manifest:
    labels, spec = campaign_labels(campaign), {"holderIdentity": holder}
    return make_object("Lease", name, labels=labels, annotations=annotations, spec=spec)


def lease_holder(lease: Manifest | None) -> str:
    """Return who holds a lease; empty if nobody does."""
    return str((lease or {}).get("spec", {}).get("holderIdentity", ""))


@dataclass(frozen=True)
class Heartbeat:
    """Last heartbeat of a controller."""

    machine: str  # host name of its machine
    age_s: float  # time since then
    is_dead: bool  # whether its process has ended, which only its own machine knows

    @property
    def is_running(self) -> bool:
        """Whether the controller counts as running."""
        return not self.is_dead and self.age_s < LEASE_S


def last_heartbeat(cluster: Cluster, campaign: str) -> Heartbeat | None:
    """Return the last heartbeat of the controller of a campaign; None if there was none."""
    lease = cluster.read("Lease", campaign)
    renewed = (lease or {}).get("spec", {}).get("renewTime")
    if lease is None or not renewed:
        return None
    age = datetime.now(UTC) - datetime.fromisoformat(renewed)
    process = lease["metadata"].get("annotations", {}).get(_PROCESS, "{}")
    return Heartbeat(lease_holder(lease), age.total_seconds(), _has_ended(json.loads(process)))


def _has_ended(process: Manifest) -> bool:
    """Return whether a process of this machine has ended; False for those of other machines."""
    here = _own_process()
    if not here["boot_id"] or any(process.get(key) != here[key] for key in ("boot_id", _NAMESPACE)):
        return False
    return not is_alive(LocalExecutor(), {k: v for k, v in process.items() if k != _NAMESPACE})


def _own_process() -> Manifest:
    here = LocalExecutor()
    namespace = here.real_path("/proc/self/ns/pid").rpartition("/")[2]
    return identify(here, getpid()) | {_NAMESPACE: namespace}


@contextmanager
def heartbeat(cluster: Cluster, campaign: str) -> Iterator[None]:
    """Renew the lease of a campaign inside the block.

    A cluster that cannot be reached is tried again: the runs there do not depend on it.
    """
    process = {_PROCESS: json.dumps(_own_process())}
    lease = _lease(campaign, campaign, holder=gethostname(), annotations=process)
    cluster.delete("Lease", campaign)
    cluster.create(lease | {"spec": lease["spec"] | _renewed()})
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(_RENEW_S):
            with suppress(VolbenchError):  # the next renewal may succeed; the runs go on
                cluster.patch("Lease", campaign, {"spec": _renewed()})

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renewed() -> Manifest:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"renewTime": now, "leaseDurationSeconds": LEASE_S}
