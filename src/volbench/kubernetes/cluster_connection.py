"""Options that name a Kubernetes cluster."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import PATH, Quantity, option_group
from volbench.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from volbench.kubernetes.cluster import Cluster

_VARIABLE = "KUBECONFIG"


@dataclass(frozen=True)
class ClusterConnection:
    """Cluster named on the command line."""

    context: str  # context of the kubeconfig file; empty for the current one

    @contextmanager
    def opened(self, namespace: str = "") -> Iterator[Cluster]:
        """Yield the connection to the cluster, closed at the end of the block.

        Args:
            namespace: empty for that of the context.
        """
        from volbench.kubernetes.cluster import open_cluster

        cluster = open_cluster(context=self.context, namespace=namespace)
        try:
            yield cluster
        finally:
            cluster.close()


def _use_file(context: click.Context, _option: click.Parameter, file: Path | None) -> None:
    """Let this process, and those that it starts, read another kubeconfig file."""
    if file is None:
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(file)

    def restore() -> None:
        os.environ.pop(_VARIABLE)
        if before is not None:
            os.environ[_VARIABLE] = before

    context.call_on_close(restore)


KUBECONFIG = click.option(
    "--kubeconfig",
    type=PATH,
    metavar="FILE",
    expose_value=False,
    callback=_use_file,
    help="File with the access to Kubernetes clusters. Default: KUBECONFIG, or ~/.kube/config.",
)

# Options of the connection to a cluster, as the keyword `connection`
CONNECTION = option_group(
    "connection",
    ClusterConnection,
    click.option(
        "--context",
        default="",
        metavar="NAME",
        help="Context of the kubeconfig file. Default: the current one.",
    ),
    KUBECONFIG,
)

POD_TIMEOUT = click.option(
    "--pod-timeout",
    "pod_timeout_s",
    type=Quantity("TIME", parse_duration),
    default="10m",
    show_default=True,
    help="How long to wait for pods that cannot start, such as for a new node.",
)
