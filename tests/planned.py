"""Runs and campaigns as plans have them, for tests of what executes, reads or shows them."""

from pathlib import Path
from typing import Any

from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind


def a_folder(target: str | Path = "/data") -> Volume:
    """Return a directory to measure."""
    return Volume(role="data", kind=VolumeKind.DIRECTORY, target=str(target))


def planned_run(volume: Volume, *sections: Section, **fields: Any) -> Run:  # noqa: ANN401 - any field of a run
    """Return a run of sections on a volume; without sections, of one called ``j``."""
    usual: dict[str, Any] = {"id": "001-j-r1", "profile": "p", "job": "j"}
    return Run(volume=volume, sections=sections or (Section(name="j"),), **{**usual, **fields})


def planned_campaign(*runs: Run, **fields: Any) -> Campaign:  # noqa: ANN401 - any field of a plan
    """Return a campaign of some runs."""
    usual: dict[str, Any] = {"name": "c", "created_utc": "2026-01-01T00:00:00Z", "seed": 1}
    return Campaign(runs=runs, **{**usual, **fields})
