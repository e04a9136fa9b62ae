"""Campaigns that run on this machine, with a real fio."""

from pathlib import Path

from volbench.engine.campaign.campaign_engine import run_campaign
from volbench.engine.campaign.campaign_state import Settings
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.hosts.host_facts import require_fio
from volbench.engine.run.stop_request import StopRequest
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.event import Event
from volbench.model.campaign.planned_run import Campaign
from volbench.store.archive import Archive, Provenance
from volbench.store.consent import create_signed_campaign
from volbench.store.layout import Layout


def stored(folder: Path, campaign: Campaign) -> Layout:
    """Store a plan."""
    provenance = Provenance(volbench_version="0", python_version="3")
    return create_signed_campaign(folder, Archive(campaign=campaign, provenance=provenance))


def run(folder: Path, campaign: Campaign, events: list[Event] | None = None) -> Layout:
    """Run a plan on this machine."""
    layout = stored(folder, campaign)
    execute(layout, campaign, require_fio(LocalExecutor()), [] if events is None else events)
    return layout


def execute(
    layout: Layout,
    campaign: Campaign,
    fio: str,
    events: list[Event],
    *,
    settings: Settings | None = None,
) -> None:
    """Run a stored plan with a certain fio."""
    run_campaign(
        layout,
        campaign,
        [this_machine(fio=fio)],
        settings=settings or Settings(),
        listener=events.append,
        stop=StopRequest(),
    )
