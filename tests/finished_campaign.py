"""Campaign folder of two runs, the first of them finished, without running fio."""

import json
from pathlib import Path

from tests.planned import a_folder, planned_campaign, planned_run
from volbench.model.campaign.planned_run import RunState, Section
from volbench.store.archive import Archive, Provenance, create_campaign
from volbench.store.journal import Journal
from volbench.store.layout import Layout

_OUTPUT = Path(__file__).parent / "cases/fio-3.33/randrw-jsonplus/stdout"


def half_finished(folder: Path) -> Layout:
    """Make a campaign of two runs of which the first has finished."""
    section = Section(name="mix", options={"rw": "randrw"})
    first, second = (
        planned_run(a_folder(), section, id=f"00{n}-mix-r{n}", job="mix", repeat=n, sample_s=0)
        for n in (1, 2)
    )
    campaign = planned_campaign(first, second)
    provenance = Provenance(volbench_version="0", python_version="3")
    layout = create_campaign(folder, Archive(campaign=campaign, provenance=provenance))
    finish(layout, first.id)
    return layout


def finish(layout: Layout, run_id: str) -> None:
    """Put what a real fio wrote into a run's folder and note the run as finished."""
    folder = layout.run(run_id)
    folder.path.mkdir()
    folder.fio_output.write_bytes(_OUTPUT.read_bytes())
    folder.status.write_text(json.dumps({"started_utc": "2026-01-01T00:00:00.000Z"}))
    with Journal(layout.journal) as journal:
        journal.write("run", run=run_id, state=RunState.FINISHED, reason="")
