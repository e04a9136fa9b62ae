"""volbench k8s fetch: the campaign folder of a controller that has ended."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import PATH, flag, output_option
from volbench.kubernetes.cluster_connection import CONNECTION, ClusterConnection


@click.command("fetch")
@click.argument("name", metavar="NAME")
@output_option(type=PATH, metavar="DIR", help="New folder. Default: NAME.")
@flag("--remove", "Then remove the controller with its volume from the cluster.")
@click.option(
    "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
)
@CONNECTION
def command(
    name: str,
    output: Path | None,
    *,
    remove: bool,
    namespace: str,
    connection: ClusterConnection,
) -> None:
    """Copy the campaign folder of the controller NAME to this machine."""
    from volbench.kubernetes.controllers import fetch_campaign, remove_controller

    into = output or Path(name)
    with connection.opened(namespace) as cluster:
        fetch_campaign(cluster, name, into, on_reason=_say_reason)
        click.echo(f"campaign folder: {into}", err=True)
        if remove:
            remove_controller(cluster, name)
            click.echo(f"removed {name} from the namespace {cluster.namespace}", err=True)


def _say_reason(name: str, words: str) -> None:
    click.echo(f"{name}: Pending: {words}", err=True)
