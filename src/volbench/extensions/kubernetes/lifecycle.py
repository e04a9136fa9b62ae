"""Life of volumes on a cluster: how long each step takes, from the claim to its removal.

A step ends when the API shows its end, which is looked for every 0.1 s: times that the API itself
records have whole seconds only. The first I/O is timed in the pod.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from statistics import median

import click

from volbench.errors import DeadlineError, RefusedError, TransportError
from volbench.extensions.kubernetes.cluster import PATIENCE_S, Cluster, Manifest
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec
from volbench.extensions.kubernetes.disks import Disk, record_disks, remaining_disks
from volbench.extensions.kubernetes.leases import held_lease
from volbench.extensions.kubernetes.manifests import CAMPAIGN_LABEL, WAIT, objects, role_paths
from volbench.extensions.kubernetes.pod_placement import check_source, ended_by_sigterm
from volbench.extensions.kubernetes.pod_status import ready_pods, why_ended
from volbench.extensions.kubernetes.removal import require_deletion
from volbench.extensions.kubernetes.resumed_pods import removed_at_end
from volbench.present.formatting import Row, shown
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import counted_noun, format_latency

# Some ten requests a second: an API server takes hundreds. Noticed by:
# tests/extensions/kubernetes/test_lifecycle.py::test_classes_take_turns
LOOK_S = 0.1
_SHOWN = {
    name: partial(shown, column=f"{name}_s", format_value=format_latency)
    for name in ("p50", "p99", "max")
}
_FEW = 100  # Of fewer volumes the 99th percentile is the slowest: a definition.
_RESOLUTION = "Steps are seen every 0.1 s; the first I/O is timed in the pod."
STEPS = ("provision", "attach", "start", "first I/O", "detach", "delete")
_PRINTED = re.compile(r"^first I/O (\d+\.\d+)$", re.MULTILINE)
# Writes 4 KiB and waits until they are durable; the start of Python is not part of the time.
_FIRST_IO = """\
import os, sys, time
begun = time.monotonic()
target = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(target, bytes(4096))
os.fsync(target)
print(f"first I/O {time.monotonic() - begun:.6f}", flush=True)
"""

Objects = Mapping[str, Manifest]  # by name


@dataclass
class VolumeLife:
    """A volume from its claim to its removal."""

    storage_class: str
    claim: Manifest
    pod: Manifest
    at_s: dict[str, float] = field(default_factory=dict)  # event to its monotonic time
    first_io_s: float | None = None  # duration of the first durable write
    volume: Manifest = field(default_factory=dict)  # its PersistentVolume, as far as it may be read
    node: str = ""
    outage_s: float = 0.0  # time in which the API server did not answer

    def durations_s(self) -> dict[str, float | None]:
        """Return the duration of each step; None for a step that the cluster does not have."""
        at_s = self.at_s
        placed_s, attached_s = max(at_s["bound"], at_s["scheduled"]), at_s.get("attached")
        begun_s = placed_s if attached_s is None else attached_s
        durations = (
            at_s["bound"] - at_s["created"],
            None if attached_s is None else max(0.0, attached_s - placed_s),
            max(0.0, at_s["running"] - begun_s),
            self.first_io_s,
            at_s["detached"] - at_s["stopped"],
            at_s["deleted"] - at_s["released"],
        )
        return dict(zip(STEPS, durations, strict=True))

    def create(self, cluster: Cluster) -> None:
        """Ask for the volume, and for a pod that uses it."""
        self._note("created")
        for manifest in (self.claim, self.pod):
            cluster.create(manifest)

    def has_worked(self, cluster: Cluster, claims: Objects, pods: Objects) -> bool:
        """Note the events up to the first I/O; return whether that is done."""
        claim, pod = claims.get(_name(self.claim), {}), pods[_name(self.pod)]
        if claim.get("status", {}).get("phase") == "Bound" and not self.volume:
            self._note("bound")
            name = claim["spec"]["volumeName"]
            found = cluster.read_if_allowed("PersistentVolume", name) or {}
            self.volume = {"metadata": {"name": name}, **found}
        self.node = pod.get("spec", {}).get("nodeName", "")
        if self.node:
            self._note("scheduled")
            if self._attachment(cluster).get("status", {}).get("attached"):
                self._note("attached")
        for container in pod.get("status", {}).get("containerStatuses", ()):
            if "running" in container.get("state", {}):
                self._note("running")
                if printed := _PRINTED.search(cluster.logs(_name(self.pod))):
                    self.first_io_s = float(printed.group(1))
        return self.first_io_s is not None

    def require_pod(self, cluster: Cluster, pods: Objects) -> None:
        """Raise why the pod has ended, or is being ended, before it was stopped."""
        found = pods.get(_name(self.pod))
        reason = why_ended(found, found["metadata"]["uid"] if found else "")
        if reason and "stopped" not in self.at_s:
            raise TransportError(
                f"the pod of {self.storage_class} has ended: {reason}",
                hint=f"see: {cluster.kubectl('get', 'events')} --field-selector "
                f"involvedObject.name={_name(self.pod)}",
            )

    def stop(self, cluster: Cluster) -> None:
        """Delete the pod."""
        self._note("stopped")
        cluster.delete("Pod", _name(self.pod))

    def is_detached(self, cluster: Cluster, _claims: Objects, pods: Objects) -> bool:
        """Note the end of the pod and of the attachment; return whether both are gone."""
        if _name(self.pod) in pods or self._attachment(cluster):
            return False
        return self._note("detached")

    def release(self, cluster: Cluster) -> None:
        """Delete the claim."""
        self._note("released")
        cluster.delete("PersistentVolumeClaim", _name(self.claim))

    def is_deleted(self, cluster: Cluster, claims: Objects, _pods: Objects) -> bool:
        """Note the removal of the volume; return whether it is gone."""
        name = _name(self.volume)
        if _name(self.claim) in claims or cluster.read_if_allowed("PersistentVolume", name):
            return False
        return self._note("deleted")

    def _note(self, event: str) -> bool:
        self.at_s.setdefault(event, time.monotonic())
        return True

    def _attachment(self, cluster: Cluster) -> Manifest:
        """Return the attachment of the volume to the node; empty if there is none.

        Its name: GetAttachmentName in pkg/volume/csi/csi_attacher.go of Kubernetes 1.34.
        """
        csi = self.volume.get("spec", {}).get("csi")
        if not csi or ("attached" not in self.at_s and "running" in self.at_s):
            return {}  # a driver that attaches nothing
        key = f"{csi['volumeHandle']}{csi['driver']}{self.node}"
        name = f"csi-{sha256(key.encode()).hexdigest()}"
        return cluster.read_if_allowed("VolumeAttachment", name) or {}


def _name(manifest: Manifest) -> str:
    return str(manifest.get("metadata", {}).get("name", ""))


def measure_lives(
    cluster: Cluster, spec: ClusterSpec, *, count: int, at_once: int
) -> Iterator[VolumeLife]:
    """Let volumes of each storage class live, and yield their lives; nothing of them is left.

    Args:
        at_once: number of volumes of one class that live at the same time; classes take turns.

    Raises:
        RefusedError: a class retains its volumes.
        TransportError: a pod cannot start, or a step has not ended in time.
    """
    for name in spec.storage_classes:
        cluster.require_storage_class(name)
        found = cluster.read_if_allowed("StorageClass", name) or {}
        if found.get("reclaimPolicy") == "Retain":
            raise RefusedError(
                f"the storage class {name} retains its volumes: {count} disks would be left",
                hint="make a copy of the class with reclaimPolicy: Delete, and measure that",
            )
    check_source(cluster, spec)
    rounds = [min(at_once, count - first) for first in range(0, count, at_once)]
    made, disks = 0, list[Disk]()
    with ExitStack() as stack:
        stack.enter_context(ended_by_sigterm("stopped before all volumes were timed"))
        cluster.patience_s = PATIENCE_S
        stack.enter_context(held_lease(cluster, spec.campaign))
        stack.enter_context(removed_at_end(cluster, spec.campaign))
        owner_uid = cluster.create(objects(spec)[0])["metadata"]["uid"]
        for number, volumes in enumerate(rounds, 1):
            for name in random.sample(spec.storage_classes, len(spec.storage_classes)):
                what = counted_noun(volumes, "volume")
                click.echo(f"[{number}/{len(rounds)}] {name}: {what}", err=True)
                planned = _planned(spec, name, owner_uid, range(made, made + volumes))
                made += volumes
                disks += follow_lives(cluster, spec.campaign, planned, timeout_s=spec.timeout_s)
                yield from planned
    require_deletion(cluster, remaining_disks(cluster, disks))


def _planned(
    spec: ClusterSpec, storage_class: str, owner_uid: str, numbers: range
) -> list[VolumeLife]:
    """Return volumes of a class, by their numbers in the campaign, with pods that write to them."""
    same = replace(spec, storage_classes=(storage_class,) * numbers.stop)
    _, *made = objects(same, owner_uid=owner_uid)
    path = role_paths(spec)["data"] + ("" if spec.is_block else "/.volbench-first-io")
    lives = []
    for number in numbers:
        claim, pod = made[2 * number : 2 * number + 2]
        (container,) = pod["spec"]["containers"]
        script = f'python3 -c "$0" "$1" || exit 1; {WAIT}'
        container["command"] = ["sh", "-c", script, _FIRST_IO, path]
        container["terminationMessagePolicy"] = "FallbackToLogsOnError"
        lives.append(VolumeLife(storage_class, claim, pod))
    return lives


def follow_lives(
    cluster: Cluster, campaign: str, lives: list[VolumeLife], *, timeout_s: float
) -> Sequence[Disk]:
    """Let volumes live at the same time, step by step, and return them."""
    disks: Sequence[Disk] = ()
    before_s = cluster.outage_s
    steps: tuple[tuple[str, Callable[..., None], Callable[..., bool]], ...] = (
        ("first I/O", VolumeLife.create, VolumeLife.has_worked),
        ("detach", VolumeLife.stop, VolumeLife.is_detached),
        ("delete", VolumeLife.release, VolumeLife.is_deleted),
    )
    for step, begin, has_ended_now in steps:
        for life in lives:
            begin(life, cluster)
        waiting, end_s = list(lives), time.monotonic() + timeout_s
        while waiting:
            claims, pods = (
                {_name(item): item for item in cluster.list(kind, f"{CAMPAIGN_LABEL}={campaign}")}
                for kind in ("PersistentVolumeClaim", "Pod")
            )
            for each in waiting:
                each.require_pod(cluster, pods)
            waiting = [each for each in waiting if not has_ended_now(each, cluster, claims, pods)]
            if waiting and time.monotonic() > end_s:
                name = _name(waiting[0].claim)
                if begin is VolumeLife.create:  # raises why the pod is not ready
                    wanted = {waiting[0].storage_class: (_name(waiting[0].pod), name)}
                    ready_pods(cluster, wanted, timeout_s=0)
                conditions = claims.get(name, {}).get("status", {}).get("conditions", ())
                why = "".join(f": {each['message']}" for each in conditions if "message" in each)
                raise DeadlineError(
                    f"the step {step} of {name} has not ended within {timeout_s:g} s{why}",
                    hint=f"see: {cluster.kubectl('get', 'events')}; or wait longer: "
                    "--pod timeout=30m",
                )
            time.sleep(LOOK_S if waiting else 0)
        if begin is VolumeLife.create:
            disks = record_disks(cluster, campaign, replaces=True)
    for life in lives:
        life.outage_s = cluster.outage_s - before_s
    record_disks(cluster, campaign, replaces=True)  # none: all are deleted, or cannot be seen
    return disks


def steps_table(lives: Sequence[VolumeLife]) -> Table[Row]:
    """Return median, 99th percentile and maximum of each step, a row a class and step."""
    rows: list[Row] = []
    through = [life for life in lives if life.outage_s]
    lives = [life for life in lives if not life.outage_s]
    for name, step, durations_s in _by_step(lives):
        ranked = sorted(durations_s)
        rows.append(
            {
                "storage_class": name,
                "step": step,
                "volumes": len(ranked),
                "p50_s": median(ranked),
                "p99_s": ranked[math.ceil(0.99 * len(ranked)) - 1],
                "max_s": ranked[-1],
            }
        )
    columns: tuple[Column[Row], ...] = (
        Column("storage_class", header="storage class", priority=IDENTITY),
        Column("step", priority=IDENTITY),
        Column("volumes", is_right=True),
        *(quantity(f"{name}_s", name, show=_SHOWN[name]) for name in _SHOWN),
    )
    is_few = any(len(durations_s) < _FEW for _, _, durations_s in _by_step(lives))
    few = f"Of fewer than {_FEW} volumes, p99 is the slowest." if is_few else ""
    lost = counted_noun(len(through), "volume") + " left out: the API server did not answer."
    notes = [note for note in (few, lost if through else "", _RESOLUTION) if note]
    return Table("lifecycle", columns, rows, notes=notes)


def _by_step(lives: Sequence[VolumeLife]) -> list[tuple[str, str, list[float]]]:
    """Return the durations of each class and step that the cluster has."""
    found = []
    for name in dict.fromkeys(sorted(life.storage_class for life in lives)):
        durations = [life.durations_s() for life in lives if life.storage_class == name]
        for step in STEPS:
            known = [seconds for each in durations if (seconds := each[step]) is not None]
            found += [(name, step, known)] if known else []
    return found
