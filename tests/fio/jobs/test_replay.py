"""A log of I/Os is replayed on the volume and nowhere else, whatever it names."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from tests.fio.runs import run_on, section
from volbench.engine.run.tool_command import expected_of
from volbench.errors import InputError
from volbench.fio.jobs.render_job import planned_files, render, writes
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import problems_of
from volbench.model.campaign.planned_run import Run, VolumeKind

MIB = 1 << 20


def blktrace(*, ios: int, pause_ns: int) -> bytes:
    """Return a trace as blktrace's kernel part writes it: each fourth I/O of 4 KiB is a write.

    Layout and constants are those of linux/blktrace_api.h.
    """
    queued, reads, writes_ = 1 << 4, 1 << 0, 1 << 1
    return b"".join(
        struct.pack(
            "<IIQQIIIIIHH",
            0x65617407,
            number,
            number * pause_ns,
            number * 64,
            4096,
            1 | (queued | (reads if number % 4 else writes_)) << 16,
            1,
            8 << 20,
            0,
            0,
            0,
        )
        for number in range(ios)
    )


def replay(volume: Path, log: Path, **options: str) -> Run:
    """Return a run that replays a log on the file ``disk`` of a directory."""
    job = section(ioengine="psync", filename="disk", read_iolog=str(log), **options)
    return run_on(volume, VolumeKind.DIRECTORY, job)


def test_the_log_is_redirected_to_the_full_path_of_the_file() -> None:
    """A log beside directory= makes fio 3.33 crash; the guard knows the file all the same."""
    run = replay(Path("/mnt/d"), Path("/traces/boot"))
    text = render(run)
    assert "directory=" not in text
    assert "filename=/mnt/d/disk\n" in text
    assert "replay_redirect=/mnt/d/disk\n" in text
    assert planned_files(run) == ("/mnt/d/disk",)
    assert writes(run)


def test_a_permitted_redirect_and_a_device_are_kept() -> None:
    """Who was allowed to redirect a log redirects it; a device is never made a file."""
    own = replay(Path("/mnt/d"), Path("/traces/boot"), replay_redirect="/dev/sdz")
    assert render(own).count("replay_redirect=") == 1
    device = run_on("/dev/sdz", VolumeKind.DEVICE, section(read_iolog="/traces/boot"))
    assert "replay_redirect=/dev/sdz\nallow_file_create=0\n" in render(device)


def test_several_logs_are_sections_of_one_name() -> None:
    """Fio 3.33 crashes on a list of logs; a job of its own for each has the same result."""
    text = render(replay(Path("/mnt/d"), Path("/traces/a:/traces/b"), numjobs="2"))
    assert text.count("[j]\n") == 2
    assert "read_iolog=/traces/a\n" in text
    assert "read_iolog=/traces/b\n" in text
    assert "numjobs=2" not in text
    assert "log_avg_msec" not in text


@pytest.mark.parametrize(
    ("kind", "target", "options"),
    [
        (VolumeKind.NBD, "nbd://h/e", {}),
        (VolumeKind.DIRECTORY, "/d", {"filename": "a:b"}),
        (VolumeKind.DIRECTORY, "/d", {"filename": "../a"}),
    ],
)
def test_targets_that_cannot_be_replayed_on_are_refused(
    kind: VolumeKind, target: str, options: dict[str, str]
) -> None:
    """Several files, exports, and names that leave the volume are refused."""
    run = run_on(target, kind, section(read_iolog="/traces/boot", **options))
    with pytest.raises(InputError):
        render(run)


@pytest.mark.parametrize("form", ["blktrace", "fio"])
def test_fio_replays_on_the_volume_alone(form: str, tmp_path: Path) -> None:
    """Thirty reads and ten writes reach the file, at their pace, and no file that the log names."""
    log, volume, elsewhere = tmp_path / "log", tmp_path / "volume", tmp_path / "elsewhere"
    volume.mkdir()
    (volume / "disk").write_bytes(b"\1" * (4 * MIB))
    if form == "blktrace":
        log.write_bytes(blktrace(ios=40, pause_ns=25_000_000))
    else:
        ways = ("write", "read", "read", "read")
        ios = (f"{n * 25_000} {elsewhere} {ways[n % 4]} {n * 32768} 4096" for n in range(40))
        head = ("fio version 3 iolog", f"0 {elsewhere} add", f"0 {elsewhere} open")
        log.write_text("\n".join([*head, *ios, f"1000000 {elsewhere} close", ""]))
    run = replay(volume, log)
    (tmp_path / "job.fio").write_text(render(run))
    done = subprocess.run(
        ["fio", "--output-format=json+", "job.fio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    output = parse_output(done.stdout, path="job.fio")
    expected = expected_of(run)
    assert problems_of(output, exit_status=0, stderr=done.stderr, expected=expected) == ()
    assert {way.direction.value: way.total_ios for way in output.jobs[0].directions} == {
        "read": 30,
        "write": 10,
    }
    assert not elsewhere.exists()
    assert json.loads(done.stdout[done.stdout.index("{\n") :])["jobs"][0]["job_runtime"] >= 900
    changed = (volume / "disk").read_bytes()[:4096]
    assert changed != b"\1" * 4096
