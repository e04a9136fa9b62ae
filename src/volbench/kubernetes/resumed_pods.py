"""Pods of a campaign that is resumed: found again before, removed after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

    from volbench.model.campaign.host import Host


@contextmanager
def pods_again(hosts: Sequence[Host], root: Path, *, timeout_s: float) -> Iterator[Sequence[Host]]:
    """Yield hosts of a campaign with pods that can run programs, removed at the end of the block.

    Args:
        hosts: hosts as planned; machines are left as they are.
    """
    if not any(host.pod for host in hosts):
        yield hosts
        return
    from volbench.kubernetes.controller_lease import shown_as_running
    from volbench.kubernetes.pod_executor import PodConnections
    from volbench.kubernetes.pod_placement import removed_at_end
    from volbench.kubernetes.revival import Revival

    with PodConnections() as connections, ExitStack() as stack:
        campaigns = {host.pod.campaign: host.pod for host in hosts if host.pod}
        for campaign, pod in campaigns.items():
            cluster = connections.cluster(pod)
            stack.enter_context(removed_at_end(cluster, campaign, root))
            stack.enter_context(shown_as_running(cluster, campaign))
        revival = Revival(root, timeout_s, _say)
        yield [
            revival.host(connections.cluster(host.pod), host, host.pod) if host.pod else host
            for host in hosts
        ]


def _say(host: str, words: str) -> None:
    click.echo(f"{host}: {words}", err=True)


@contextmanager
def pods_to_remove(hosts: Sequence[Host], *, planned: Sequence[Host]) -> Iterator[Sequence[Host]]:
    """Yield the hosts that are machines, or whose pods are there; then remove these campaigns.

    Args:
        planned: all hosts of the campaign; none to leave the pods there.
    """
    if not any(host.pod for host in (*hosts, *planned)):
        yield hosts
        return
    from volbench.kubernetes.pod_executor import PodConnections
    from volbench.kubernetes.pod_placement import remove
    from volbench.kubernetes.pod_progress import why_ended

    with PodConnections() as connections:
        yield [
            host
            for host in hosts
            if host.pod is None
            or not why_ended(connections.cluster(host.pod).read("Pod", host.pod.name), host.pod.uid)
        ]
        for campaign, pod in {own.pod.campaign: own.pod for own in planned if own.pod}.items():
            remove(connections.cluster(pod), campaign)
