"""What a run will write is known before it starts."""

from __future__ import annotations

import pytest

from volbench.fio.dd import dd_argv
from volbench.fio.jobs.render_job import writes
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool


@pytest.mark.parametrize("rw", [{}, {"rw": "write"}])
def test_a_dd_job_writes_unless_it_reads(rw: dict[str, str]) -> None:
    """What the guard is told of a dd run is what dd will do."""
    volume = Volume(role="data", kind=VolumeKind.FILE, target="/data/file")
    sizes = {"bs": "512", "size": "512"}
    run = Run(
        id="001-d-r1",
        profile="p",
        job="d",
        volume=volume,
        tool=Tool.DD,
        sections=(Section(name="d", options={**sizes, **rw}),),
    )
    assert writes(run)
    assert "of=/data/file" in dd_argv(run)
    reading = run.model_copy(
        update={"sections": (Section(name="d", options={**sizes, "rw": "read"}),)}
    )
    assert not writes(reading)
    assert "of=/dev/null" in dd_argv(reading)
