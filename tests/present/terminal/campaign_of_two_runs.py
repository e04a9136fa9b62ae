"""Campaign of two runs, as its progress is displayed."""

from tests.planned import a_folder, planned_campaign, planned_run
from volbench.model.campaign.event import CampaignStarted
from volbench.model.campaign.planned_run import Run, Section


def run_of(name: str) -> Run:
    """Return a planned run."""
    return planned_run(a_folder(), Section(name=name), id=name, job=name)


FIRST, SECOND = run_of("001-a-r1"), run_of("002-[b]-r1")
CAMPAIGN = planned_campaign(FIRST, SECOND)
STARTED = CampaignStarted(CAMPAIGN, CAMPAIGN.runs, {FIRST.id: 60.0, SECOND.id: 90.0})
