"""volbench k8s reap: remove what interrupted campaigns left on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volbench.cli.options import flag
from volbench.kubernetes.cluster_connection import CONNECTION, ClusterConnection

if TYPE_CHECKING:
    from volbench.kubernetes.cluster import Cluster


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

    Only objects that carry volbench's labels are removed. Without NAMEs, campaigns are left alone
    whose controller gave a sign within two minutes, unless it ran on this machine and was killed;
    and so are volumes that --keep left. Campaigns that are named are removed at once.
    """
    from volbench.kubernetes.pod_placement import remove
    from volbench.kubernetes.removal import campaigns_on, has_volumes_only

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
    from volbench.kubernetes.controller_lease import LEASE_S, last_sign

    sign = last_sign(cluster, name)
    if sign is None or not sign.is_at_work:
        return False
    left_s = LEASE_S - sign.age_s
    click.echo(
        f"{name}: left alone: its controller on {sign.machine} gave a sign {sign.age_s:.0f} s ago\n"
        f"  if that was killed: wait {left_s:.0f} s, or name it: volbench k8s reap {name}",
        err=True,
    )
    return True
