"""Campaign folders of one run that left what a recorded case holds."""

import json
from pathlib import Path

from tests.planned import a_folder, planned_campaign, planned_run
from volbench.ingest.campaign_tables import RunRows, read_run
from volbench.model.campaign.planned_run import Campaign, RunState, Section
from volbench.store.layout import Layout

CASES = Path(__file__).parent.parent / "cases"


def make(root: Path, case: str, *sections: Section) -> tuple[Layout, Campaign]:
    """Return a campaign folder with one run that left what a case holds."""
    run = planned_run(a_folder(), *sections, id="001-a-r1", job="a", sample_s=0)
    layout = Layout(root)
    folder = layout.run(run.id)
    folder.path.mkdir(parents=True)
    folder.fio_output.write_bytes((CASES / case / "stdout").read_bytes())
    folder.status.write_text(json.dumps({"started_utc": "2026-01-01T00:00:00.000Z"}))
    return layout, planned_campaign(run)


def ingest(layout: Layout, campaign: Campaign, state: RunState = RunState.FINISHED) -> RunRows:
    """Return the rows of the only run of a campaign."""
    (run,) = campaign.runs
    return read_run(campaign, run, state, layout.run(run.id))
