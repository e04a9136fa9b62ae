"""Placement of a campaign in pods of a cluster: made before it as its hosts, removed after it."""

from __future__ import annotations

import json
import platform
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from volbench import __version__
from volbench.cli.confirmation import confirm_length
from volbench.cli.hosts import connect
from volbench.cli.start import show_plan
from volbench.cli.verb_groups import questions_shown
from volbench.engine.campaign.prepare import CampaignRequest, Prepared
from volbench.engine.guard.run_guard import may_write
from volbench.engine.hosts.connected_host import on_every_host
from volbench.engine.hosts.described_volumes import look_at
from volbench.errors import InputError, RefusedError, StoppedError, VolbenchError
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.connect import HostKeyPolicy
from volbench.execute.scheduler import on_each
from volbench.extensions.kubernetes.api_values import quantity_bytes
from volbench.extensions.kubernetes.cluster import PATIENCE_S
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec
from volbench.extensions.kubernetes.disks import record_disks
from volbench.extensions.kubernetes.leases import held_lease
from volbench.extensions.kubernetes.manifests import (
    CONTAINER,
    DATA_DEVICE,
    KEEP,
    PODS,
    WORKLOAD_LABEL,
    PlannedPod,
    objects,
    planned_pods,
    role_paths,
)
from volbench.extensions.kubernetes.pod import Pod, require_pod
from volbench.extensions.kubernetes.pod_executor import allow_connections
from volbench.extensions.kubernetes.pod_facts import PodFacts, container_limits
from volbench.extensions.kubernetes.pod_status import has_ended, ready_pods
from volbench.extensions.kubernetes.resumed_pods import removed_at_end
from volbench.extensions.kubernetes.storage_classes import ALL, measured_classes
from volbench.interrupts import interrupt
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Consent, Volume, VolumeKind
from volbench.plan.expansion.estimate import estimate
from volbench.plan.expansion.expand import root_seed
from volbench.plan.expansion.extents import Basis
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients
from volbench.store.archive import Archive, Provenance, refuse_used

if TYPE_CHECKING:
    from volbench.cli.output import TableOutput
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.protocol import Executor
    from volbench.extensions.kubernetes.cluster import Cluster, ClusterAddress, Manifest

# Annotation of a VolumeSnapshotContent that lets restored volumes have another mode
_MORE_CPU = "if that throttles fio: --pod limit.cpu=8, or a namespace without it"
_MODE_CHANGE = "snapshot.storage.kubernetes.io/allow-volume-mode-change"


@dataclass(frozen=True)
class PodPlacement:
    """Pods of a cluster as the hosts of a campaign; see `cli.additions.Placement`."""

    spec: ClusterSpec  # as described on the command line
    address: ClusterAddress

    @property
    def has_directories(self) -> bool:
        """Whether the volumes of the pods are directories, not devices."""
        return not self.spec.is_block

    @contextmanager
    def hosts(
        self, request: CampaignRequest, *, yes: bool, stays: bool
    ) -> Iterator[tuple[CampaignRequest, list[ConnectedHost]]]:
        """Yield a campaign and its hosts; what is made for it is removed at the end."""
        with ExitStack() as stack:
            refuse_used(request.into)
            cluster = stack.enter_context(self.address.opened())
            spec = self._checked_spec(request, cluster)
            asked, request = request, _on_pods(request, spec, host_names(spec))
            prepared = _plan_without_pods(spec, request)
            if not yes and prepared.estimate.is_long and sys.stdin.isatty():
                confirm_length(prepared, yes=False)
            require_consent(spec, prepared.campaign, request.terms.consent)
            name, cluster.patience_s = spec.campaign, PATIENCE_S
            stack.enter_context(ended_by_sigterm("stopped outside the campaign's runs"))
            stack.enter_context(held_lease(cluster, name, request.into, is_handed_on=stays))
            stack.enter_context(removed_at_end(cluster, name, request.into, stays=stays))
            create_objects(cluster, spec)
            click.echo(f"created {name} in the namespace {cluster.namespace}", err=True)
            hosts = wait_for_hosts(cluster, spec, is_partial=ALL in self.spec.storage_classes)
            request = _on_pods(asked, spec, [host.name for host in hosts])
            record_disks(cluster, name)
            with connect(hosts, HostKeyPolicy()) as connected:
                on_every_host(connected, lambda host: check_mounts(host.executor, host.host))
                yield request, connected

    def show_plan(self, request: CampaignRequest, table_output: TableOutput) -> None:
        """Print the plan of a campaign, whose objects are checked by the cluster."""
        with self.address.opened() as cluster:
            spec = self._checked_spec(request, cluster)
        request = _on_pods(request, spec, host_names(spec))
        prepared = _plan_without_pods(spec, request)
        check_consent(spec, prepared.campaign, request.terms.consent)
        show_plan(prepared, table_output)

    def _checked_spec(self, request: CampaignRequest, cluster: Cluster) -> ClusterSpec:
        """Return the specification in this cluster, with its storage classes in random order."""
        if request.targets:
            raise InputError(
                "--on and --k8s exclude each other: pods get volumes of their own",
                hint="leave out one of them",
            )
        classes = [*measured_classes(cluster, self.spec.storage_classes)]
        claims = list(dict.fromkeys(self.spec.claims))
        seed = root_seed(request.profiles, request.terms)
        for volumes in (classes, claims):
            random.Random(seed).shuffle(volumes)  # noqa: S311 - an order, no secret
        spec = replace(
            self.spec.for_roles(set().union(*(profile.roles for profile in request.profiles))),
            namespace=cluster.namespace,
            storage_classes=tuple(classes),
            claims=tuple(claims),
        )
        for name in claims:
            _check_claim(cluster, name, mode=spec.volume_mode)
        for name in dict.fromkeys(classes):
            cluster.require_storage_class(name)
        check_source(cluster, spec)
        allow_connections(len(planned_pods(spec)))
        for manifest in objects(replace(spec, replicas=1)):  # those of others are like them
            cluster.create(manifest, dry_run=True)
        return spec


def check_source(cluster: Cluster, spec: ClusterSpec) -> None:
    """Refuse a snapshot or claim from which no volume of the size can be made."""
    if not spec.data_source:
        return
    (what, name), kind = spec.origin, spec.data_source["kind"]
    found = cluster.read(kind, name)
    listed = cluster.kubectl("get", kind.lower())
    if found is None:
        raise InputError(
            f"there is no {what} {name} in the namespace {cluster.namespace}",
            hint=f"list them: {listed}",
        )
    status = found.get("status", {})
    if what == "claim":
        is_ready, size = status.get("phase") == "Bound", status.get("capacity", {}).get("storage")
    else:
        is_ready, size = bool(status.get("readyToUse")), status.get("restoreSize")
    if not is_ready:
        reason = status.get("error", {}).get("message") or f"it is {status.get('phase', 'pending')}"
        raise InputError(f"the {what} {name} is not ready: {reason}", hint=f"see: {listed} {name}")
    if quantity_bytes(spec.size) < quantity_bytes(size or ""):
        raise InputError(
            f"--claim-size {spec.size} is smaller than the {what} {name}",
            hint=f"--claim-size {size}",
        )
    mode = _source_mode(cluster, found)
    if mode not in ("", spec.volume_mode):
        raise InputError(
            f"no volume of the mode {spec.volume_mode} can be made from the {what} {name}, whose "
            f"volume has the mode {mode}",
            hint=f"--volume-mode {mode}",
        )


def _source_mode(cluster: Cluster, source: Manifest) -> str:
    """Return the volume mode that a snapshot or claim dictates; empty if it is free or unknown."""
    claim: Manifest | None = source
    if source["kind"] == "VolumeSnapshot":
        status = source.get("status", {})
        bound = cluster.read_if_allowed(
            "VolumeSnapshotContent", status.get("boundVolumeSnapshotContentName", "")
        )
        if _MODE_CHANGE in (bound or {}).get("metadata", {}).get("annotations", {}):
            return ""
        name = source["spec"].get("source", {}).get("persistentVolumeClaimName", "")
        claim = cluster.read("PersistentVolumeClaim", name) if name else None
    return str(claim["spec"].get("volumeMode", "Filesystem")) if claim else ""


def _check_claim(cluster: Cluster, name: str, *, mode: str) -> None:
    """Refuse a claim that cannot be measured, or that somebody uses."""
    claim = cluster.read("PersistentVolumeClaim", name)
    if claim is None:
        raise InputError(
            f"there is no claim {name} in the namespace {cluster.namespace}",
            hint=f"list them: {cluster.kubectl('get', 'pvc')}",
        )
    if claim.get("status", {}).get("phase") == "Lost" or "deletionTimestamp" in claim["metadata"]:
        trouble = "being deleted" if "deletionTimestamp" in claim["metadata"] else "Lost"
        raise InputError(
            f"the claim {name} is {trouble}",
            hint=f"see why: {cluster.kubectl('describe', 'pvc', name)}",
        )
    if claim["spec"]["accessModes"] == ["ReadOnlyMany"] and mode == "Filesystem":
        raise InputError(
            f"the claim {name} has the access mode ReadOnlyMany: files cannot be laid out on it",
            hint="name a claim with ReadWriteOnce or ReadWriteMany",
        )
    own_mode = claim["spec"].get("volumeMode", "Filesystem")
    if own_mode != mode:
        raise InputError(
            f"the claim {name} has the volume mode {own_mode}", hint=f"--volume-mode {own_mode}"
        )
    for pod in cluster.list("Pod"):
        volumes = pod["spec"].get("volumes", ())
        used = {volume.get("persistentVolumeClaim", {}).get("claimName") for volume in volumes}
        if name in used and not has_ended(pod):
            raise RefusedError(
                f"the claim {name} is used by the pod {pod['metadata']['name']}",
                hint="a measurement would slow it down, and its load would be measured: stop it",
            )


def _on_pods(request: CampaignRequest, spec: ClusterSpec, names: Sequence[str]) -> CampaignRequest:
    """Return a request whose consent holds on the pods that are the hosts of these names."""
    given = request.terms.consent.allow_destroy
    if spec.claims:  # each is allowed by its name, which the option takes for that of a file
        claims = {str(Path(name).absolute()): f"{name}:{DATA_DEVICE}" for name in spec.claims}
        consent = [claims.get(entry, entry) for entry in given]
    else:
        consent = [
            entry if ":" in entry else f"{name}:{entry}" for entry in given for name in names
        ]
    on_pods = request.terms.consent.model_copy(
        update={
            "allow_destroy": tuple(dict.fromkeys(consent)),
            "allow_shared_folder": True,  # the volumes of a pod are its own, whatever their modes
        }
    )
    return replace(request, terms=replace(request.terms, consent=on_pods))


def require_consent(spec: ClusterSpec, campaign: Campaign, consent: Consent) -> None:
    """Check the consent to overwrite raw volumes, and ask for it on a terminal.

    It is asked before the volumes are made: a disk whose class retains it would cost money.
    """
    if not check_consent(spec, campaign, consent) or not sys.stdin.isatty():
        return
    count = len(planned_pods(spec))
    what = "the new volume" if count == 1 else f"{count} new volumes"
    classes = ", ".join(dict.fromkeys(name or "the default class" for name in spec.volumes))
    asked = {name: f"the claim {name}" for name in spec.claims}
    if not spec.claims and DATA_DEVICE in role_paths(spec).values():
        asked[DATA_DEVICE] = f"{what} of {classes}"
    for name, volumes in asked.items():
        with questions_shown():
            question = f"All data on {volumes} will be overwritten. Type {name} to continue"
            typed = click.prompt(question, err=True, default="")
        if typed.strip() != name:
            raise RefusedError(
                f"{name} was not confirmed; nothing was made",
                hint=f"type exactly {name} when asked",
            )


def check_consent(spec: ClusterSpec, campaign: Campaign, consent: Consent) -> bool:
    """Return whether runs write to raw volumes, after checking that this is allowed."""
    paths = dict.fromkeys(role_paths(spec).values())
    targets = {f"{name}:{path}" for name in host_names(spec) for path in paths}
    if unknown := [entry for entry in consent.allow_destroy if entry not in targets]:
        raise InputError(
            f"--allow-destroy {unknown[0].rpartition(':')[2]} is not a target of this campaign",
            hint=f"its targets are: {', '.join(spec.claims or paths)}",
        )
    writing = [
        run for run in campaign.runs if run.volume.kind is VolumeKind.DEVICE and may_write(run)
    ]
    for run in writing:
        if f"{run.host}:{run.volume.target}" not in consent.allow_destroy:
            claim = run.host if spec.claims else ""
            what = f"everything on the volume of the claim {claim}" if claim else "new raw volumes"
            raise RefusedError(
                f"job {run.job} would overwrite {what}; nothing was made",
                hint=f"to allow that: --allow-destroy {claim or run.volume.target}",
            )
    return bool(writing)


@contextmanager
def ended_by_sigterm(message: str) -> Iterator[None]:
    """Let SIGTERM end the block by an error, so that what was made is removed.

    Once a campaign runs, it has a handler of its own. What the handler raises passes every
    ``except Exception``, such as that of a request that is tried again.
    """
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        interrupt(number, frame)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if came:
            raise StoppedError(message) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def create_objects(cluster: Cluster, spec: ClusterSpec) -> None:
    """Create all objects of a campaign; see `removal.remove_campaign`."""
    owner, *_ = objects(spec)
    of_class = {pod["metadata"]["labels"][WORKLOAD_LABEL]: pod for pod in _of_kind(spec, "Pod")}
    owner["data"] = {KEEP: json.dumps(spec.keep), PODS: json.dumps([*of_class.values()])}
    uid = cluster.create(owner)["metadata"]["uid"]
    for kind in ("PersistentVolumeClaim", "Pod"):
        for made in on_each(_of_kind(spec, kind, uid), cluster.create):
            if isinstance(made, VolbenchError):
                raise made


def _of_kind(spec: ClusterSpec, kind: str, owner_uid: str = "") -> list[Manifest]:
    return [each for each in objects(spec, owner_uid=owner_uid) if each["kind"] == kind]


def host_names(spec: ClusterSpec) -> list[str]:
    """Return the name of the host of each pod: its storage class, numbered if it has several.

    That of a claim that exists is the claim.
    """
    if spec.claims:
        return [*spec.claims]
    classes = [pod.storage_class or spec.unnamed_class for pod in planned_pods(spec)]
    totals, seen = Counter(classes), Counter[str]()
    names = []
    for name in classes:
        names.append(f"{name}-{seen[name]}" if totals[name] > 1 else name)
        seen[name] += 1
    return names


def wait_for_hosts(cluster: Cluster, spec: ClusterSpec, *, is_partial: bool = False) -> list[Host]:
    """Wait until the pods of a campaign are ready, and return them as hosts; see `ready_pods`."""
    planned = dict(zip(host_names(spec), planned_pods(spec), strict=True))
    wanted = {name: (pod.name, pod.claim) for name, pod in planned.items()}
    ready = ready_pods(cluster, wanted, timeout_s=spec.timeout_s, is_partial=is_partial)
    facts = PodFacts(cluster)
    for name, pod in ready.items():
        limit = container_limits(pod).get("cpu")
        if limit and "cpu" not in spec.limits:
            click.echo(f"{name}: a LimitRange limits the pod to {limit} CPU; {_MORE_CPU}", err=True)

    def host_of(item: tuple[str, PlannedPod]) -> Host:
        name, pod = item
        manifest = ready[name]
        described = facts.of(manifest, pod.claim)
        limits = facts.limits(described) if pod.claim else None
        # the cluster may have chosen its default class
        labels = {"storage_class": described.pop("storage_class") or spec.unnamed_class}
        labels["node"] = manifest["spec"]["nodeName"]
        labels["volume_size"] = described.pop("volume_size")
        labels["restored_from"] = " ".join(spec.origin).strip()
        labels |= {key: described[key] for key in ("zone", "machine_type", "persistent_volume")}
        own_pod = Pod(
            name=manifest["metadata"]["name"],
            namespace=cluster.namespace,
            uid=manifest["metadata"]["uid"],
            container=CONTAINER,
            node=labels["node"],
            claim=pod.claim,
            campaign=spec.campaign,
            context=cluster.context,
            machine=described.pop("machine"),
            claim_uid=described.pop("claim_uid"),
        )
        return Host(
            name=name,
            volumes=role_paths(spec),
            labels={key: label for key, label in labels.items() if label},
            turn=pod.turn,
            limits={next(iter(role_paths(spec))): limits} if limits else {},
            connection=own_pod.connection,
            facts=described,
        )

    made = on_each([item for item in planned.items() if item[0] in ready], host_of)
    for error in made:
        if isinstance(error, VolbenchError):
            raise error
    return [host for host in made if isinstance(host, Host)]


def check_mounts(executor: Executor, host: Host) -> None:
    """Check that the volumes of a pod are there: fio makes missing folders, on another disk."""
    volumes = look_at(executor, [VolumeQuestion(path) for path in host.volumes.values()]).volumes
    pod = require_pod(host)
    for role, path in host.volumes.items():
        mount = volumes[path].mount
        is_mounted = mount is not None and mount.mount_point == path
        if not is_mounted and not volumes[path].is_device:
            raise InputError(
                f"the volume {role} of {host.name} is not mounted at {path}",
                hint=f"see: kubectl -n {pod.namespace} describe pod {pod.name}",
            )
        if not volumes[path].is_device and executor.run(["test", "-w", path]).exit_status:
            user, owner = executor.run(["sh", "-c", 'id -u; stat -c %u "$0"', path]).stdout.split()
            raise InputError(
                f"the user {user} cannot write to the volume {role} of {host.name}, which belongs "
                f"to the user {owner}",
                hint=f"--pod run-as-user={owner}; or let the administrators change its owner: "
                "existing claims, hostPath and many NFS volumes ignore the group of the pod",
            )


def _plan_without_pods(spec: ClusterSpec, request: CampaignRequest) -> Prepared:
    """Return the plan of a campaign, whose volumes are taken as they are asked for."""
    volumes = {
        role: Volume(
            role=role,
            kind=VolumeKind.DEVICE if path == DATA_DEVICE else VolumeKind.DIRECTORY,
            target=path,
        )
        for role, path in role_paths(spec).items()
    }
    basis = Basis(quantity_bytes(spec.size)) if spec.size else None
    bases = dict.fromkeys(volumes, basis) if basis else {}
    hosts = [
        Host(
            name=name,
            volumes=role_paths(spec),
            labels={"storage_class": pod.storage_class},
            turn=pod.turn,
        )
        for name, pod in zip(host_names(spec), planned_pods(spec), strict=True)
    ]
    clients = clients_of([Client(host, 0, volumes, bases) for host in hosts], request.clients)
    campaign = expand_clients(request.profiles, clients, request.recorded_terms)
    provenance = Provenance(
        volbench_version=__version__, python_version=platform.python_version(), hosts=(), volumes=()
    )
    return Prepared(Archive(campaign=campaign, provenance=provenance), (), estimate(campaign))
