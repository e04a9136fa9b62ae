"""Campaign folders of one run that left what a recorded case holds."""

import json
from pathlib import Path

from volbench.ingest.campaign_tables import RunRows, read_run
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section, Volume, VolumeKind
from volbench.store.layout import Layout

CASES = Path(__file__).parent.parent / "cases"
VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")


def make(root: Path, case: str, *sections: Section) -> tuple[Layout, Campaign]:
    """Return a campaign folder with one run that left what a case holds."""
    run = Run(id="001-a-r1", profile="p", job="a", volume=VOLUME, sections=sections, sample_s=0)
    layout = Layout(root)
    folder = layout.run(run.id)
    folder.path.mkdir(parents=True)
    folder.fio_output.write_bytes((CASES / case / "stdout").read_bytes())
    folder.status.write_text(json.dumps({"started_utc": "2026-01-01T00:00:00.000Z"}))
    return layout, Campaign(name="c", created_utc="", runs=(run,), seed=1)


def ingest(layout: Layout, campaign: Campaign, state: RunState = RunState.FINISHED) -> RunRows:
    """Return the rows of the only run of a campaign."""
    (run,) = campaign.runs
    return read_run(campaign, run, state, layout.run(run.id))
