"""volbench status: how far a campaign is, from its journal alone."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import CAMPAIGN
from volbench.cli.output import TableOutput, table_options


@click.command("status")
@CAMPAIGN
@table_options()
def command(campaign: Path, *, shown: TableOutput) -> None:
    """Show how far each client of the campaign in DIR is, and whether a controller runs it.

    No host is connected to: a run is listed as running since the journal says so.
    """
    from volbench.present.tables.hosts_tables import ClientStatus, status_table
    from volbench.store.archive import is_held, read_campaign
    from volbench.store.journal import read_history

    layout, archive = read_campaign(campaign)
    history = read_history(layout.journal)
    clients: dict[tuple[str, int], ClientStatus] = {}
    for run in archive.campaign.runs:
        status = clients.setdefault((run.host, run.client), ClientStatus(run.host, run.client))
        status.add(run.id, history.states.get(run.id), history.processes.get(run.id, {}))
    controller = "a controller runs it" if is_held(layout) else "no controller runs it"
    shown.write(status_table(list(clients.values()), notes=[controller]))
