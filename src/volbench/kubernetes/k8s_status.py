"""volbench k8s status: controllers in the cluster, and what one prints."""

from __future__ import annotations

import click

from volbench.cli.output import TableOutput, table_options
from volbench.kubernetes.cluster_connection import CONNECTION, ClusterConnection

_LINES = 10


@click.command("status")
@click.argument("name", default="", metavar="[NAME]")
@click.option(
    "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
)
@CONNECTION
@table_options()
def command(
    name: str, namespace: str, *, connection: ClusterConnection, shown: TableOutput
) -> None:
    """Show the controllers that were submitted, or the controller NAME and its last lines."""
    from volbench.kubernetes.controllers import controllers_on, find_controller, last_lines
    from volbench.present.tables.hosts_tables import controllers_table

    with connection.opened(namespace) as cluster:
        found = [find_controller(cluster, name)] if name else controllers_on(cluster)
        lines = last_lines(cluster, found[0], most=_LINES) if name else []
    shown.write(controllers_table([vars(own) for own in found]))
    for line in lines:
        shown.note(line)
