"""Logs of I/Os in job files: replayed on the volume and nowhere else, whatever they name."""

from pathlib import Path

import pytest

from tests.fio.runs import run_on, section
from volbench.errors import InputError
from volbench.fio.jobs.render_job import planned_files, render, with_sent_logs, writes
from volbench.model.campaign.planned_run import VolumeKind

DIGEST = 64 * "a"


def test_a_log_is_redirected_to_the_full_path_of_the_file() -> None:
    """A log beside directory= makes fio 3.33 crash; the guard knows the file all the same."""
    run = run_on(
        Path("/mnt/d"), VolumeKind.DIRECTORY, section(filename="disk", read_iolog="/traces/boot")
    )
    text = render(run)
    assert "directory=" not in text
    assert "filename=/mnt/d/disk\n" in text
    assert "replay_redirect=/mnt/d/disk\n" in text
    assert planned_files(run) == ("/mnt/d/disk",)
    assert writes(run)


def test_the_role_of_the_volume_is_its_path_in_the_job_file() -> None:
    """A device is never made a file."""
    part = section(read_iolog="/traces/boot", replay_redirect="data")
    text = render(run_on("/dev/sdz", VolumeKind.DEVICE, part))
    assert text.count("replay_redirect=") == 1
    assert "replay_redirect=/dev/sdz\nallow_file_create=0\n" in text


def test_a_sent_log_is_beside_the_job_file() -> None:
    """In a folder that is not fetched; the copy on the controller is in the campaign folder."""
    run = run_on(
        "/dev/sdz", VolumeKind.DEVICE, section(read_iolog=f"../../inputs/{DIGEST}", size="1m")
    )
    assert f"read_iolog=../../inputs/{DIGEST}\n" in render(run)
    assert f"read_iolog=.inputs/{DIGEST}\n" in render(with_sent_logs(run))


@pytest.mark.parametrize(
    ("kind", "target", "options"),
    [
        (VolumeKind.NBD, "nbd://h/e", {}),
        (VolumeKind.DIRECTORY, "/d", {"filename": "a:b"}),
        (VolumeKind.DIRECTORY, "/d", {"filename": "../a"}),
        (VolumeKind.DEVICE, "/dev/sdz", {"replay_redirect": "/dev/sdy"}),
    ],
)
def test_targets_that_cannot_be_replayed_on_are_refused(
    kind: VolumeKind, target: str, options: dict[str, str]
) -> None:
    """Exports, several files, names that leave the volume, and redirection to another device."""
    with pytest.raises(InputError):
        render(run_on(target, kind, section(read_iolog="/traces/boot", **options)))
