"""Placement of a campaign in pods of a cluster: made before it, removed after it."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING

import click

from volbench.cli.hosts import connect
from volbench.cli.options import Verb, flag
from volbench.errors import InputError, StoppedError, VolbenchError
from volbench.kubernetes.cluster_connection import CONNECTION, POD_TIMEOUT, ClusterConnection
from volbench.kubernetes.cluster_options import CLUSTER, ClusterOptions

if TYPE_CHECKING:
    from pathlib import Path

    from volbench.cli.output import TableOutput
    from volbench.engine.campaign.prepare import Request
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.kubernetes.cluster import Cluster
    from volbench.kubernetes.cluster_spec import ClusterSpec


@dataclass(frozen=True)
class PodPlacement:
    """Pods of a cluster as the hosts of a campaign."""

    pods: ClusterOptions  # what they are like
    connection: ClusterConnection  # the cluster
    timeout_s: float  # longest wait until they are ready

    @contextmanager
    def hosts(
        self, request: Request, *, stays: bool
    ) -> Iterator[tuple[Request, list[ConnectedHost]]]:
        """Yield a campaign and its hosts; what is made for it is removed at the end of the block.

        Args:
            stays: whether the pods stay, as the campaign goes on in the background.
        """
        from volbench.execute.connect import HostKeyPolicy
        from volbench.kubernetes.controller_lease import shown_as_running
        from volbench.kubernetes.pod_hosts import (
            check_mounts,
            check_objects,
            create_objects,
            wait_for_hosts,
        )

        with ExitStack() as stack:
            cluster = stack.enter_context(self.connection.opened(self.pods.namespace))
            spec = self._spec(request, cluster)
            check_objects(cluster, spec)
            stack.enter_context(removed_at_end(cluster, spec.campaign, request.into, stays=stays))
            stack.enter_context(_ended_by_sigterm())
            create_objects(cluster, spec)
            click.echo(f"created {spec.campaign} in the namespace {cluster.namespace}", err=True)
            with shown_as_running(cluster, spec.campaign):
                hosts = wait_for_hosts(
                    cluster, spec, timeout_s=self.timeout_s, on_reason=_say_reason
                )
                with connect(hosts, HostKeyPolicy()) as connected:
                    for host in connected:
                        check_mounts(host.executor, host.host)
                    yield _on_pods(request, spec), connected

    def show_plan(self, request: Request, shown: TableOutput) -> None:
        """Print the plan of a campaign, whose objects are checked by the cluster."""
        from volbench.cli.execution import show_plan
        from volbench.kubernetes.pod_hosts import check_objects
        from volbench.kubernetes.rehearsed_plan import plan_without_pods

        with self.connection.opened(self.pods.namespace) as cluster:
            spec = self._spec(request, cluster)
            check_objects(cluster, spec)
            prepared = plan_without_pods(spec, _on_pods(request, spec))
        show_plan(prepared, bill=None, shown=shown)

    def _spec(self, request: Request, cluster: Cluster) -> ClusterSpec:
        from volbench.kubernetes.pod_hosts import in_random_order

        if request.targets:
            raise InputError(
                "--on names volumes of machines, and --k8s makes its own",
                hint="leave out one of them",
            )
        roles = {job.role for profile in request.profiles for job in profile.jobs}
        name = f"volbench-{secrets.token_hex(5)}"
        spec = self.pods.spec(campaign=name, roles=roles, namespace=cluster.namespace)
        return in_random_order(spec, seed=request.seed)


def _on_pods(request: Request, spec: ClusterSpec) -> Request:
    """Return a request whose consent holds on every pod.

    Volumes of several storage classes are measured one after another, in each step, where their
    pods may share a node, and its limits.
    """
    from volbench.kubernetes.pod_hosts import host_names
    from volbench.model.profile.profile_model import Start

    consent = (
        entry if ":" in entry else f"{name}:{entry}"
        for entry in request.allow_destroy
        for name in host_names(spec)
    )
    profiles = request.profiles
    if len(spec.volumes) > 1 and spec.replicas == 1 and not spec.is_parallel:
        profiles = tuple(
            profile.model_copy(update={"start": Start.SEQUENTIAL}) for profile in profiles
        )
    return replace(
        request,
        allow_destroy=tuple(dict.fromkeys(consent)),
        allow_shared_folder=True,  # the volumes of a pod are its own, whatever their modes
        profiles=profiles,
    )


def _say_reason(host: str, words: str) -> None:
    click.echo(f"{host}: Pending: {words}", err=True)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block by an error, so that what was made is removed.

    Once the campaign runs, it has a handler of its own.
    """

    def stop(_number: int, _frame: object) -> None:
        raise StoppedError("stopped before the campaign began")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def removed_at_end(
    cluster: Cluster, campaign: str, root: Path, *, stays: bool = False
) -> Iterator[None]:
    """Remove what a campaign made on a cluster, unless runs of it are left to do.

    Args:
        stays: whether it stays also without an error.
    """
    from volbench.kubernetes.pod_channel import PodEndedError
    from volbench.kubernetes.revival import is_resumable, record_losses

    try:
        yield
    except BaseException as error:
        if is_resumable(root, campaign):
            known = {error.host: error.reason} if isinstance(error, PodEndedError) else {}
            for host, words in record_losses(root, cluster, known=known).items():
                click.echo(f"{host}: what ran in its pod is lost: {words}", err=True)
            click.echo(
                f"{campaign} stays on the cluster; continue: volbench resume {root}; "
                f"or remove it: volbench k8s reap {campaign}",
                err=True,
            )
            raise
        try:
            remove(cluster, campaign)
        except VolbenchError as problem:  # the first error is what the user must see
            click.echo(f"{problem.message}; try: volbench k8s reap {campaign}", err=True)
        raise
    if not (stays or is_resumable(root, campaign)):
        remove(cluster, campaign)


def remove(cluster: Cluster, campaign: str, *, volumes: bool = False) -> None:
    """Remove what a campaign made on a cluster, and list the volumes that it leaves."""
    from volbench.kubernetes.removal import keeps_volumes, remove_campaign

    keep = keeps_volumes(cluster, campaign) and not volumes
    removed, left = remove_campaign(cluster, campaign, keep_volumes=keep)
    what = f"removed {campaign} from" if removed else f"nothing of {campaign} is in"
    click.echo(f"{what} the namespace {cluster.namespace}", err=True)
    if left:
        click.echo("these volumes are left, and may cost money; to remove them:", err=True)
    for volume in left:
        disk = f", disk {volume.handle}" if volume.handle else ""
        click.echo(f"  # {volume.size} of {volume.storage_class}{disk}", err=True)
        click.echo(f"  {volume.command(cluster.namespace)}", err=True)


_K8S = flag(
    "--k8s", "Run in pods of a Kubernetes cluster, made for the campaign and removed after."
)


def in_pods(verb: Verb) -> Verb:
    """Add the options of a placement in pods, as the keyword `placement`; None without --k8s."""

    @wraps(verb)
    def wrapped(
        *arguments: object,
        k8s: bool,
        pods: ClusterOptions,
        connection: ClusterConnection,
        pod_timeout_s: float,
        **given: object,
    ) -> None:
        placement = PodPlacement(pods, connection, pod_timeout_s) if k8s else None
        if placement is None and pods.given:
            raise InputError(f"{pods.given[0]} is an option of pods", hint="add --k8s")
        verb(*arguments, placement=placement, **given)

    decorated: Verb = wrapped
    for option in (POD_TIMEOUT, CONNECTION, CLUSTER, _K8S):
        decorated = option(decorated)
    return decorated
