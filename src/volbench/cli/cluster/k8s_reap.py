"""volbench k8s reap: remove what interrupted campaigns left on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volbench.cli.cluster_connection import CONNECTION, ClusterConnection
from volbench.cli.options import flag

if TYPE_CHECKING:
    from volbench.execute.kubernetes.cluster import Cluster


@click.command("reap")
@click.argument("campaigns", nargs=-1, metavar="[NAME...]")
@click.option(
    "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
)
@flag("--volumes", "Also remove volumes that --keep left.")
@flag("--dry-run", "List what would be removed.")
@CONNECTION
def command(
    campaigns: tuple[str, ...],
    *,
    namespace: str,
    volumes: bool,
    dry_run: bool,
    connection: ClusterConnection,
) -> None:
    """Remove the pods, volumes and locks of interrupted campaigns: of NAMEs, or of all.

    Only objects that carry volbench's labels are removed. Without NAMEs, campaigns whose controller
    has answered within two minutes are left alone; and so are volumes that --keep left.
    """
    from volbench.cli.cluster.pod_placement import remove
    from volbench.engine.pods.removal import campaigns_on, has_volumes_only

    with connection.opened(namespace) as cluster:
        for name in campaigns or campaigns_on(cluster):
            if not campaigns and _is_in_use(cluster, name):
                continue
            if has_volumes_only(cluster, name) and not volumes:
                click.echo(f"{name}: its volumes were kept; remove them: --volumes", err=True)
            elif dry_run:
                click.echo(name)
            else:
                remove(cluster, name, volumes=volumes)


def _is_in_use(cluster: Cluster, name: str) -> bool:
    """Return whether a campaign has a controller, and say so."""
    from volbench.execute.kubernetes.leases import has_controller

    lease = cluster.read("Lease", name)
    if not has_controller(lease):
        return False
    holder = (lease or {}).get("spec", {}).get("holderIdentity", "")
    click.echo(f"{name}: left alone: its controller on {holder} is at work", err=True)
    return True
