"""Executor of a pod, and the connections to the clusters of several pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from volbench.errors import InputError
from volbench.execute.agent_executor import AgentExecutor
from volbench.kubernetes.cluster import Cluster, open_cluster
from volbench.kubernetes.leases import LeaseLocks
from volbench.kubernetes.manifests import WORK_MOUNT
from volbench.kubernetes.pod_channel import PodChannel, PodEndedError
from volbench.model.campaign.host import Host, Pod

if TYPE_CHECKING:
    from volbench.execute.connect import Connect, HostKeyPolicy


class PodExecutor(AgentExecutor):
    """Executor of a pod, whose locks are objects of its cluster."""

    def __init__(self, name: str, pod: Pod, cluster: Cluster) -> None:
        super().__init__(PodChannel(name, pod, cluster), work_folder=WORK_MOUNT)
        self.shared_locks = LeaseLocks(cluster, node=pod.node, campaign=pod.campaign)
        self._pod = pod
        self._cluster = cluster
        self._identity = ""

    @property
    def identity(self) -> str:
        """Node and UID of the claim, or of the pod without one: what its results depend on."""
        if not self._identity:
            pod = self._cluster.read("Pod", self._pod.name)
            if pod is None:
                raise PodEndedError(self.host, self._pod.name, "it was deleted")
            name = self._pod.claim
            claim = self._cluster.read("PersistentVolumeClaim", name) if name else None
            node, uid = pod["spec"].get("nodeName", ""), (claim or pod)["metadata"]["uid"]
            self._identity = f"{node} {uid}"
        return self._identity


class PodConnections:
    """Connections to the clusters of several pods, opened when used and closed at the end."""

    def __init__(self) -> None:
        self._clusters: dict[tuple[str, str], Cluster] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close all connections."""
        for cluster in self._clusters.values():
            cluster.close()

    def cluster(self, pod: Pod) -> Cluster:
        """Return the connection to the cluster of a pod."""
        key = pod.context, pod.namespace
        if key not in self._clusters:
            self._clusters[key] = open_cluster(context=pod.context, namespace=pod.namespace)
        return self._clusters[key]


@contextmanager
def open_pods(_hosts: Sequence[Host], _host_keys: HostKeyPolicy) -> Iterator[Connect]:
    """Yield the executors of hosts with pods; see `connect.TRANSPORTS`."""
    with PodConnections() as connections:

        def connect(host: Host) -> PodExecutor:
            if host.pod is None:
                raise InputError(f"{host.name} is not a pod")
            return PodExecutor(host.name, host.pod, connections.cluster(host.pod))

        yield connect
