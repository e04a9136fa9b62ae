"""Pods of an interrupted campaign, found again or recreated on their volume and node."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from volbench.engine.campaign.campaign_state import RunStates
from volbench.errors import ConnectError, DeadlineError, TransportError, VolbenchError, quoted
from volbench.execute.agent.processes import lifetime
from volbench.extensions.kubernetes.cluster import PATIENCE_S, Cluster, Manifest
from volbench.extensions.kubernetes.leases import held_lease
from volbench.extensions.kubernetes.manifests import PODS, WORKLOAD_LABEL, owner_reference
from volbench.extensions.kubernetes.pod import Pod, pod_of
from volbench.extensions.kubernetes.pod_executor import PodConnections, PodEndedError, PodExecutor
from volbench.extensions.kubernetes.pod_facts import PodFacts
from volbench.extensions.kubernetes.pod_status import POLL_S, node_trouble, ready_pods, why_ended
from volbench.extensions.kubernetes.removal import print_disks, remove_campaign
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import RunState
from volbench.store.archive import hold_campaign, read_campaign
from volbench.store.consent import seal_of
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout

_OPEN = {RunState.PLANNED, RunState.RUNNING, RunState.INTERRUPTED}


@contextmanager
def revived_pods(
    hosts: Sequence[Host], root: Path, *, timeout_s: float
) -> Iterator[Sequence[Host]]:
    """Yield hosts of a campaign with pods that can run programs, removed at the end of the block.

    Machines among them are left as they are.
    """
    with PodConnections() as connections, ExitStack() as stack:
        pods = [pod for host in hosts if (pod := pod_of(host))]
        for campaign, pod in {pod.campaign: pod for pod in pods}.items():
            cluster = connections.cluster(pod)
            _require_objects(cluster, campaign, root)
            cluster.patience_s = PATIENCE_S
            stack.enter_context(held_lease(cluster, campaign, root))
            try:
                _require_objects(cluster, campaign, root)
            except TransportError:  # removed while this controller waited for the lease
                cluster.delete("Lease", campaign)
                raise
            stack.enter_context(removed_at_end(cluster, campaign, root))
        revival = _Revival(root, timeout_s)
        yield [
            revival.host(connections.cluster(own), host, own) if (own := pod_of(host)) else host
            for host in hosts
        ]


def _require_objects(cluster: Cluster, campaign: str, root: Path) -> None:
    """Check that the objects of a campaign are there."""
    if cluster.read("ConfigMap", campaign) is None:
        raise TransportError(
            f"nothing of {campaign} is left in the namespace {cluster.namespace}: it was "
            "removed, or another copy of this folder has finished it",
            hint=f"what has finished here is kept: volbench show {quoted(root)}; for the rest, run "
            "the campaign again",
        )


@contextmanager
def removed_at_end(
    cluster: Cluster, campaign: str, root: Path | None = None, *, stays: bool = False
) -> Iterator[None]:
    """Remove what a campaign made on a cluster, unless runs of it are left to do, or it `stays`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, ConnectError):  # it was waited for long enough
            cluster.patience_s = 0
        if isinstance(error, KeyboardInterrupt):
            click.echo(f"stopping; another Ctrl-C leaves {campaign} on the cluster", err=True)
        if root is not None and _is_resumable(root, campaign):
            _print_remains(cluster, campaign, root)
            raise
        try:
            remove_campaign(cluster, campaign)
        except VolbenchError as problem:  # the first error ends the program
            click.echo(f"{problem.message}; {problem.hint}", err=True)
        raise
    if not (stays or (root is not None and _is_resumable(root, campaign))):
        remove_campaign(cluster, campaign)


def _print_remains(cluster: Cluster, campaign: str, root: Path) -> None:
    """Print how a campaign is continued, or that nothing of it is left."""
    try:
        _require_objects(cluster, campaign, root)
    except ConnectError:  # unknown
        pass
    except TransportError as error:
        click.echo(f"{error.message}; {error.hint}", err=True)
        return
    click.echo(
        f"{campaign} remains on the cluster; continue: volbench resume {quoted(root)}; "
        f"or remove it: {cluster.command('reap', campaign)}",
        err=True,
    )
    print_disks(cluster, campaign)


def _is_resumable(root: Path, owner: str) -> bool:
    """Return whether runs of a campaign are left, or may still be going on."""
    if not Layout(root).journal.exists():
        return False
    states = read_history(Layout(root).journal).states
    plan = read_campaign(root)[1].campaign
    if owner not in {pod.campaign for host in plan.hosts if (pod := pod_of(host))}:
        return False
    return any(states.get(run.id, RunState.PLANNED) in _OPEN for run in plan.runs)


@dataclass(frozen=True)
class _Revival:
    """Search for the pods of an interrupted campaign."""

    root: Path  # the campaign folder
    timeout_s: float  # longest wait for a pod that is recreated

    def host(self, cluster: Cluster, host: Host, pod: Pod) -> Host:
        """Return a host whose pod can run programs; what ran in a lost one is recorded as lost."""
        known = cluster.read("Pod", pod.name)
        reason = why_ended(known, "" if known is None else known["metadata"]["uid"])
        if reason:
            click.echo(f"{host.name}: {reason}; what ran in it is lost", err=True)
            _record_loss(self.root, host.name, f"its pod has ended: {reason}")
            self._recreate(cluster, host.name, pod, known)
        wanted = {host.name: (pod.name, pod.claim)}
        ready = ready_pods(cluster, wanted, timeout_s=self.timeout_s)[host.name]
        node = ready["spec"]["nodeName"]
        if node != pod.node:
            raise TransportError(
                f"the pod of {host.name} moved from node {pod.node} to node {node}",
                hint="results of two nodes are not comparable; let the cluster schedule it on "
                f"{pod.node}, or {self._give_up(host.name)}",
            )
        facts = PodFacts(cluster).of(ready, pod.claim)
        for fact, what in (
            ("machine", f"the node {node}"),
            ("claim_uid", f"the claim {pod.claim}"),
        ):
            if getattr(pod, fact) and facts[fact] not in ("", getattr(pod, fact)):
                raise TransportError(
                    f"{what} of {host.name} is another one of the same name",
                    hint=f"its results are not comparable with those before; "
                    f"{self._give_up(host.name)}",
                )
        now = pod.model_copy(update={"uid": ready["metadata"]["uid"]})
        if now.uid != pod.uid and not reason:
            self._find_losses(cluster, host.name, now)
        return host.model_copy(update={"connection": now.connection})

    def _find_losses(self, cluster: Cluster, host: str, pod: Pod) -> None:
        """Record as lost what ran in an earlier pod; what runs in this one goes on."""
        executor = PodExecutor(host, pod, cluster)
        try:
            lost = [
                run
                for run, handle in _running(self.root, host).items()
                if not (handle and executor.ask(lifetime, handle))
            ]
        finally:
            executor.close()
        if lost:
            reason = why_ended(cluster.read("Pod", pod.name), "")
            click.echo(f"{host}: {reason}; what ran in the earlier one is lost", err=True)
            _record_loss(self.root, host, f"its pod has ended: {reason}", runs=lost)

    def _recreate(self, cluster: Cluster, host: str, pod: Pod, ended: Manifest | None) -> None:
        """Create a pod again, on the node where it was, once the node has ended the old one."""
        if ended is not None:
            self._await_end(cluster, host, pod, ended["metadata"]["uid"])
        if cluster.read_if_allowed("Node", pod.node) is None:
            raise TransportError(
                f"the node {pod.node} of {host} is gone: it was deleted from the cluster",
                hint=f"results of another node are not comparable; {self._give_up(host)}",
            )
        owner = cluster.read("ConfigMap", pod.campaign) or {}
        pods = json.loads(owner.get("data", {}).get(PODS, "[]"))
        names = (pod.name, pod.name.rpartition("-")[0])  # of its class
        found = (each for each in pods if each["metadata"]["labels"][WORKLOAD_LABEL] in names)
        if (manifest := next(found, None)) is None:
            return
        manifest["metadata"]["name"] = pod.name
        for volume in manifest["spec"]["volumes"]:
            if "persistentVolumeClaim" in volume:
                volume["persistentVolumeClaim"]["claimName"] = pod.claim
        manifest["spec"].pop("topologySpreadConstraints", None)
        reference = owner_reference(pod.campaign, owner["metadata"]["uid"])
        manifest["metadata"]["ownerReferences"] = [reference]
        # Only on its node: results of another one are not comparable.
        fields = [{"key": "metadata.name", "operator": "In", "values": [pod.node]}]
        terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
        only = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        manifest["spec"]["affinity"] = {"nodeAffinity": only}
        cluster.create(manifest)

    def _give_up(self, host: str) -> str:
        give_up = f"volbench resume {quoted(self.root)} --without {quoted(host)}"
        return f"give the host up: {give_up}; then volbench status {quoted(self.root)} --clean"

    def _await_end(self, cluster: Cluster, host: str, pod: Pod, uid: str) -> None:
        """Wait until the node has confirmed the end of a pod: before, fio may still run in it."""
        cluster.delete("Pod", pod.name, uid=uid)
        end_s, printed = time.monotonic() + self.timeout_s, ""
        while (old := cluster.read("Pod", pod.name)) and old["metadata"]["uid"] == uid:
            trouble = node_trouble(cluster.read_if_allowed("Node", pod.node))
            if trouble != printed:
                click.echo(
                    f"{host}: its node {pod.node} has not terminated the old pod yet: {trouble}",
                    err=True,
                )
                printed = trouble
            if time.monotonic() > end_s:
                raise DeadlineError(
                    f"the node {pod.node} has not terminated the old pod of {host}, where fio may "
                    f"still run: {trouble}",
                    hint="bring the node back; if it is lost: "
                    f"{cluster.kubectl('delete', 'node', pod.node)}; "
                    f"then volbench resume {quoted(self.root)}",
                )
            time.sleep(POLL_S)


def record_losses(hosts: Iterable[Host], root: Path, error: BaseException) -> None:
    """Record the active runs of pods that have ended as interrupted, and print why.

    While the cluster cannot be reached, nothing is recorded: a resume looks again.

    Args:
        hosts: whose pods are those in which runs were active.
        error: what ended the campaign; it may name a pod and the reason of its end.
    """
    known = {error.host: error.reason} if isinstance(error, PodEndedError) else {}
    with suppress(TransportError), PodConnections() as connections:
        for host in hosts:
            own = pod_of(host)
            if own is None or not _running(root, host.name):
                continue
            pod = connections.cluster(own).read("Pod", own.name)
            if reason := why_ended(pod, own.uid):
                reason = known.get(host.name) or reason
                _record_loss(root, host.name, f"its pod has ended: {reason}")
                click.echo(f"{host.name}: the run in its pod is lost: {reason}", err=True)


def _running(root: Path, host: str) -> dict[str, str]:
    """Return the active runs of a host whose results are not here: id to handle, if known."""
    layout = Layout(root)
    history = read_history(layout.journal)
    return {
        run.id: str(history.processes.get(run.id, {}).get("handle", ""))
        for run in read_campaign(root)[1].campaign.runs
        if run.host == host
        and history.states.get(run.id) is RunState.RUNNING
        and not layout.run(run.id).status.exists()
    }


def _record_loss(root: Path, host: str, reason: str, *, runs: Collection[str] = ()) -> None:
    """Record active runs of a host as interrupted: those that are named, or all."""
    wanted = set(runs or _running(root, host))
    layout = Layout(root)
    if not wanted:
        return
    plan = read_campaign(root)[1].campaign
    with hold_campaign(layout), Journal(layout.journal, seal_of(layout)) as journal:
        states = RunStates(journal, read_history(layout.journal), lambda _event: None)
        lost = [run for run in plan.runs if run.id in wanted]
        states.settle(lost, RunState.INTERRUPTED, reason=reason)
