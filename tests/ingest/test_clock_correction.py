"""Hosts whose clocks differ are laid over each other by the controller's clock."""

import json
from pathlib import Path

import pytest

from tests.ingest.recorded_runs import ingest, make
from volbench.ingest.campaign_tables import shifted_utc
from volbench.model.campaign.planned_run import Section

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def test_only_instants_are_shifted() -> None:
    """Milliseconds stay; what was not reported stays missing."""
    assert shifted_utc("2026-01-01T00:00:01.500Z", by_s=-3.25) == "2025-12-31T23:59:58.250Z"
    assert shifted_utc("2026-01-01T00:00:01Z", by_s=0.0) == "2026-01-01T00:00:01Z"
    assert shifted_utc(None, by_s=5.0) is None


@pytest.mark.parametrize("ahead_s", [0.0, 3.0, -7200.0])
def test_series_are_on_the_clock_of_the_controller(tmp_path: Path, ahead_s: float) -> None:
    """A host that is three seconds ahead did its I/O three seconds earlier than it says."""
    section = Section(name="mix", options={"rw": "randrw"})
    layout, campaign = make(tmp_path, "fio-3.33/randrw-jsonplus", section)
    folder = layout.run("001-a-r1")
    (run,) = campaign.runs
    campaign = campaign.model_copy(update={"runs": (run.model_copy(update={"sample_s": 0.1}),)})
    rows = "".join(
        f"{EPOCH_MS + round(1000 * ahead_s) + 100 * n}, 50, 0, 0, 0\n" for n in range(1, 6)
    )
    (folder.path / "series_iops.1.log").write_text(rows)
    status = {"started_utc": "2026-01-01T00:00:00.000Z", "start": {"clock_offset_s": ahead_s}}
    folder.status.write_text(json.dumps(status))
    reported = ingest(layout, campaign)
    assert reported.series[0].columns["utc"][0] == "2026-01-01T00:00:00.100Z"
    assert {row["started_utc"] for row in reported.summary} == {"2026-01-01T00:00:00.000Z"}
