"""Leases of a campaign: locks on the devices of a node, and the lease of its controller.

Pods of one node share its devices, and see no files of each other: their locks are objects of the
cluster. A lock is void once the object that owns its campaign is gone.

One controller at a time holds the lease of a campaign: it alone starts runs in its pods, and
removes them. All times are those of the API server.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from socket import gethostname
from typing import Any
from uuid import uuid4

import click

from volbench.errors import CampaignError, TransportError, VolbenchError, quoted
from volbench.extensions.kubernetes.cluster import Cluster, Manifest, RequestError
from volbench.extensions.kubernetes.manifests import CAMPAIGN_LABEL, campaign_labels, make_object
from volbench.extensions.kubernetes.pod_status import has_ended
from volbench.store.atomic_files import write_atomic
from volbench.store.layout import Layout

_SHARED_LABEL = "volbench.io/filesystem"

# Seven renewals in a row may fail before another controller takes the campaign for abandoned.
# Noticed by: tests/test_campaign_lease.py::test_a_controller_is_live_while_it_renews
LEASE_S = 120
_RENEW_S = LEASE_S / 8
# After an outage of the API server its holder renews a lease first: it tries again this often.
# Noticed by: tests/test_campaign_lease.py::test_an_expired_lease_is_watched_first
_RETRY_S = 2.0
_WATCH_S = 3 * _RETRY_S

_NAMESPACE = "pid_namespace"
# Annotations of a lease: who holds it; and the mark of the folder that continued the campaign last
_HOLDER, _MARK = "volbench.io/controller", "volbench.io/folder-mark"
POD_VARIABLE = "VOLBENCH_POD"  # Environment variable with the name of a controller's own pod


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
        """Return whether the campaign of a lease is gone; this one is not."""
        owner = lease["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "")
        if owner == self._campaign:
            return False
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
class Holder:
    """Controller that holds the lease of a campaign."""

    machine: str  # host name of its machine
    folder: str  # campaign folder there; empty if it has none
    age_s: float  # time since its last renewal
    is_alive: bool | None  # whether its process runs; None if that cannot be seen from here

    @property
    def is_live(self) -> bool:
        """Whether the controller counts as running."""
        return self.age_s < LEASE_S if self.is_alive is None else self.is_alive

    def __str__(self) -> str:
        """Name the controller, with the time of its last heartbeat."""
        folder = f" (folder {self.folder})" if self.folder else ""
        return f"a controller on {self.machine}{folder}, last seen {max(0.0, self.age_s):.0f} s ago"


def current_holder(cluster: Cluster, campaign: str) -> Holder | None:
    """Return the controller that holds a campaign; None if nobody does."""
    return _holder_of(cluster, cluster.read("Lease", campaign))


def _holder_of(cluster: Cluster, lease: Manifest | None) -> Holder | None:
    renewed = (lease or {}).get("spec", {}).get("renewTime")
    if lease is None or not lease_holder(lease) or not renewed:
        return None
    age = cluster.server_time() - datetime.fromisoformat(renewed)
    described = controller_of(lease)
    return Holder(
        str(described.get("machine", "an unknown machine")),
        str(described.get("folder", "")),
        age.total_seconds(),
        _is_alive(cluster, described),
    )


def controller_of(lease: Manifest) -> Manifest:
    """Return the description of the controller that wrote a lease last; empty if there is none."""
    text = lease["metadata"].get("annotations", {}).get(_HOLDER, "{}")
    try:
        described = json.loads(text)
        return {**described, "process": {**described.get("process", {})}}
    except (ValueError, TypeError, AttributeError):  # written by something else
        return {}


def _is_alive(cluster: Cluster, described: Manifest) -> bool | None:
    """Return whether a controller runs: its pod, or a process of this machine."""
    if name := described.get("pod"):
        pod = cluster.read("Pod", str(name))
        return False if pod is None or has_ended(pod) else None
    process, here = described.get("process", {}), _process(os.getpid())
    if not here["boot_id"] or any(process.get(key) != here[key] for key in ("boot_id", _NAMESPACE)):
        return None
    pid, ticks = process.get("pid"), process.get("start_ticks")
    return isinstance(pid, int) and ticks is not None and _process(pid) == process


def _process(pid: int) -> Manifest:
    from volbench.engine.hosts.orphans import identify
    from volbench.execute.agent.files import real_path
    from volbench.execute.local import LocalExecutor

    here = LocalExecutor()
    namespace = here.ask(real_path, "/proc/self/ns/pid").rpartition("/")[2]
    return identify(here, pid) | {_NAMESPACE: namespace}


class CampaignLease:
    """Lease of a campaign, for one controller.

    A folder that continues a campaign gets a mark, which the lease has too: a copy of the folder
    that was made before does not know it, and nothing that it says of its runs is true any more.
    """

    def __init__(self, cluster: Cluster, campaign: str, folder: Path | None = None) -> None:
        self._cluster = cluster
        self._campaign = campaign
        layout = None if folder is None else Layout(folder)
        self._layout = layout if layout is not None and layout.campaign.exists() else None
        self._identity = f"{gethostname()}-{uuid4()}"
        self.described: dict[str, Any] = {  # as others see this controller
            "machine": gethostname(),
            "folder": "" if folder is None else str(folder.absolute()),
            "pod": os.environ.get(POD_VARIABLE, ""),
            "process": _process(os.getpid()),
        }
        self._version = ""  # of the lease, as this controller wrote it last

    def take(self, *, waits: bool = True) -> None:
        """Take the lease, unless a live controller holds it, or another folder has continued.

        Args:
            waits: whether to wait for the end of a lease that is not renewed.
        """
        since_s, first, printed = time.monotonic(), "", False
        while True:
            lease = self._cluster.read("Lease", self._campaign)
            holder = _holder_of(self._cluster, lease)
            renewed = "" if lease is None else str(lease.get("spec", {}).get("renewTime", ""))
            is_unchanged = renewed == (first := first or renewed)
            is_silent = is_unchanged and time.monotonic() - since_s >= _WATCH_S
            if (
                holder is None
                or holder.is_alive is False
                or self._is_parent(lease)
                or (is_silent and not holder.is_live)
            ):
                if self._write_lease(lease):
                    return
                first = ""
            elif holder.is_alive or not is_unchanged or (holder.is_live and not waits):
                raise _held(self._campaign, holder)
            elif holder.is_live and not printed:
                left_s = LEASE_S - holder.age_s
                click.echo(
                    f"{self._campaign} is held by {holder}; waiting up to {left_s:.0f} s for a "
                    "heartbeat of that controller; without one, this controller takes over",
                    err=True,
                )
                printed = True
            time.sleep(_RETRY_S / 2)

    def _is_parent(self, lease: Manifest | None) -> bool:
        """Return whether the process that started this one holds a lease, to hand it over."""
        process = {} if lease is None else controller_of(lease).get("process", {})
        return bool(process) and process == _process(os.getppid())

    def _write_lease(self, lease: Manifest | None) -> bool:
        """Write this controller into the lease; return False if it has changed meanwhile."""
        known = "" if lease is None else lease["metadata"].get("annotations", {}).get(_MARK, "")
        if lease is not None and self._layout is not None and known not in _marks(self._layout):
            folder = controller_of(lease).get("folder") or "another folder"
            machine = controller_of(lease).get("machine") or "another machine"
            raise CampaignError(
                f"{self._campaign} was continued from {folder} on {machine} after this folder was "
                "copied: its runs and their results are there",
                hint=f"continue there: volbench resume {quoted(folder)}; to remove what is left "
                f"on the cluster: {self._cluster.command('reap', self._campaign)}",
            )
        mark = known if self._is_parent(lease) else self._mark_folder(known)
        notes = {_HOLDER: json.dumps(self.described), **({_MARK: mark} if mark else {})}
        new = _lease(self._campaign, self._campaign, holder=self._identity, annotations=notes)
        new["spec"] |= self._renewed()
        try:
            if lease is None:
                written = self._cluster.create(new)
            else:
                new["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"]
                written = self._cluster.patch("Lease", self._campaign, new)
        except RequestError as error:
            if error.status not in {404, 409}:
                raise
            return False
        self._version = written["metadata"]["resourceVersion"]
        return True

    def _mark_folder(self, known: str) -> str:
        """Give the folder a new mark; until the lease has it, the known one counts too."""
        from volbench.store.archive import hold_campaign

        if self._layout is None:
            return known
        mark = str(uuid4())
        with hold_campaign(self._layout):
            write_atomic(self._layout.cluster_marks, f"{known}\n{mark}".encode())
        return mark

    def renew(self) -> bool:
        """Renew the lease; return False if another controller holds it now."""
        change: Manifest = {"metadata": {"resourceVersion": self._version}, "spec": self._renewed()}
        try:
            lease = self._cluster.patch("Lease", self._campaign, change)
        except RequestError as error:
            if error.status not in {404, 409}:
                raise
            read = self._cluster.read("Lease", self._campaign)
            if read is None:
                return True  # the campaign is being removed
            if lease_holder(read) != self._identity:
                return False
            lease = read
        self._version = lease["metadata"]["resourceVersion"]
        return True

    def release(self) -> None:
        """Give the lease back, if this controller still holds it."""
        lease = self._cluster.read("Lease", self._campaign)
        if lease is None or lease_holder(lease) != self._identity:
            return
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        try:
            change = {"metadata": version, "spec": {"holderIdentity": "", "renewTime": None}}
            self._cluster.patch("Lease", self._campaign, change)
        except RequestError as error:
            if error.status not in {404, 409}:
                raise

    def _renewed(self) -> Manifest:
        now = self._cluster.server_time().isoformat(timespec="microseconds")
        return {"renewTime": now.replace("+00:00", "Z"), "leaseDurationSeconds": LEASE_S}


def _marks(layout: Layout) -> list[str]:
    """Return the marks that a lease may have if the folder is not an outdated copy."""
    file = layout.cluster_marks
    return file.read_text(encoding="utf-8").split("\n") if file.exists() else [""]


def _held(campaign: str, holder: Holder) -> CampaignError:
    hint = "stop that controller first, or wait until it has ended"
    if holder.is_alive is None:
        left_s = LEASE_S - holder.age_s
        hint += f"; if it was killed, its lease ends in {max(1.0, left_s):.0f} s"
    return CampaignError(f"{campaign} is held by {holder}", hint=hint)


@contextmanager
def held_lease(
    cluster: Cluster,
    campaign: str,
    folder: Path | None = None,
    *,
    waits: bool = True,
    is_handed_on: bool = False,
) -> Iterator[None]:
    """Hold the lease of a campaign inside the block; see `CampaignLease.take`.

    A cluster that cannot be reached is tried again: the runs there do not depend on it. A
    controller that has lost its lease ends at once, as if it were killed: the runs in the pods are
    those of the new holder.

    Args:
        is_handed_on: another process may take the lease over from this one.
    """
    lease = CampaignLease(cluster, campaign, folder)
    lease.take(waits=waits)
    ended = threading.Event()

    def renew() -> None:
        wait_s = _RENEW_S
        while not ended.wait(wait_s):
            try:
                is_held = lease.renew()
            except VolbenchError:  # the next renewal may succeed; the runs go on
                wait_s = _RETRY_S
                continue
            wait_s = _RENEW_S
            if is_held or ended.is_set():
                continue
            if not is_handed_on:
                _end_process(cluster, campaign)
            return

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        try:
            lease.release()
        except VolbenchError as error:  # it ends by itself
            click.echo(f"the lease of {campaign} ends in {LEASE_S} s: {error.message}", err=True)


def _end_process(cluster: Cluster, campaign: str) -> None:
    """End this process without an orderly stop, which would end runs of the new holder."""
    click.echo(
        f"error: {campaign} was taken over by {current_holder(cluster, campaign)}: this controller "
        "could not renew its lease; it ends without touching the runs",
        err=True,
    )
    os._exit(TransportError.exit_code)
