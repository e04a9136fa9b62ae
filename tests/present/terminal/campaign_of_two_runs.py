"""Campaign of two runs, as its progress is displayed."""

from volbench.model.campaign.event import CampaignStarted
from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind

VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def run_of(name: str) -> Run:
    """Return a planned run."""
    return Run(id=name, profile="p", job=name, volume=VOLUME, sections=(Section(name=name),))


FIRST, SECOND = run_of("001-a-r1"), run_of("002-[b]-r1")
CAMPAIGN = Campaign(name="c", created_utc="2026-01-02T03:04:05Z", runs=(FIRST, SECOND), seed=1)
STARTED = CampaignStarted(CAMPAIGN, CAMPAIGN.runs, {FIRST.id: 60.0, SECOND.id: 90.0})
