"""dd: argument lists that the real dd takes, and reports that it really prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fio.runs import run_on, section
from volbench.errors import InputError, OutputError
from volbench.fio.dd import dd_argv, dd_problems, parse_dd, parse_dd_version
from volbench.fio.jobs.render_job import DD_FILE_NAME, planned_files
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.result import Direction, DirectionResult


def dd_run(
    target: str | Path, kind: VolumeKind = VolumeKind.DIRECTORY, **options: str | int
) -> Run:
    """Return a dd run of 16 KiB in 4 KiB blocks."""
    job = section(**{"bs": 4096, "size": 16384, **options})
    return run_on(target, kind, job).model_copy(update={"tool": Tool.DD})


def dd(run: Run, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Start the real dd for a run, as an executor does."""
    return subprocess.run(
        dd_argv(run),
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def only_direction(stderr: str, run: Run) -> DirectionResult:
    """Return what a report says."""
    output = parse_dd(stderr, run=run, elapsed_s=1.0, version="dd-9.1")
    (job,) = output.jobs
    (direction,) = job.directions
    assert (output.tool_version, output.diagnostics, job.elapsed_s) == ("dd-9.1", stderr, 1.0)
    return direction


@pytest.mark.parametrize(
    ("run", "argv"),
    [
        (
            dd_run("/mnt/d", conv="fsync", oflag="direct,dsync"),
            "dd if=/dev/zero of=/mnt/d/dd-test-file bs=4096 count=4 oflag=direct,dsync conv=fsync",
        ),
        (
            dd_run("/mnt/f", VolumeKind.FILE, rw="read", iflag="direct"),
            "dd if=/mnt/f of=/dev/null bs=4096 count=4 iflag=direct",
        ),
        (
            dd_run("/dev/sdz", VolumeKind.DEVICE, **{"if": "/dev/urandom"}),
            "dd if=/dev/urandom of=/dev/sdz bs=4096 count=4 conv=nocreat",
        ),
        (
            dd_run("/dev/sdz", VolumeKind.DEVICE, conv="fdatasync", rw="write"),
            "dd if=/dev/zero of=/dev/sdz bs=4096 count=4 conv=fdatasync,nocreat",
        ),
        (
            dd_run("/dev/sdz", VolumeKind.DEVICE, rw="read"),
            "dd if=/dev/sdz of=/dev/null bs=4096 count=4",
        ),
    ],
)
def test_arguments_are_exactly_these(run: Run, argv: str) -> None:
    """Each kind of volume and direction gives the command a person would type."""
    assert dd_argv(run) == argv.split()


def test_real_write_then_read(tmp_path: Path) -> None:
    """What dd writes it reads back, and both reports hold all bytes and dd's own seconds."""
    for rw in ("write", "read"):
        run = dd_run(tmp_path, rw=rw)
        done = dd(run, tmp_path)
        assert dd_problems(exit_status=done.returncode, stderr=done.stderr) == ()
        direction = only_direction(done.stderr, run)
        assert direction.direction is Direction(rw)
        assert direction.io_bytes == 16384
        assert direction.runtime_s > 0
        assert direction.bw_bytes_per_s == pytest.approx(16384 / direction.runtime_s)
        assert (direction.iops, direction.total_ios, direction.lat) == (None, None, None)
    assert planned_files(dd_run(tmp_path)) == (str(tmp_path / DD_FILE_NAME),)
    assert [path.name for path in tmp_path.iterdir()] == [DD_FILE_NAME]


@pytest.mark.parametrize("name", ["a b", "$(touch owned)", "`touch owned`", "a;touch owned", "-x"])
def test_nothing_of_a_path_reaches_a_shell(name: str, tmp_path: Path) -> None:
    """However a folder is called, dd writes into it and nothing else happens."""
    folder = tmp_path / name
    folder.mkdir()
    done = dd(dd_run(folder), tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == [DD_FILE_NAME]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_full_device_is_reported_with_the_message_of_dd(tmp_path: Path) -> None:
    """A write that ends with ENOSPC is a problem, and its report is no result."""
    run = dd_run("/dev/full", VolumeKind.FILE)
    done = dd(run, tmp_path)
    (problem,) = dd_problems(exit_status=done.returncode, stderr=done.stderr)
    assert problem == ("dd exited with 1: dd: error writing '/dev/full': No space left on device")
    with pytest.raises(OutputError, match="dd moved 0 of 16384 bytes"):
        only_direction(done.stderr, run)


def test_missing_directory_is_reported_and_not_made(tmp_path: Path) -> None:
    """Dd fails on a directory that is gone."""
    run = dd_run(tmp_path / "gone")
    done = dd(run, tmp_path)
    (problem,) = dd_problems(exit_status=done.returncode, stderr=done.stderr)
    assert problem.endswith("No such file or directory")
    assert not any(tmp_path.iterdir())


def test_mistyped_device_does_not_become_a_file(tmp_path: Path) -> None:
    """A device that is not there is not made as a file."""
    done = dd(dd_run(tmp_path / "sdz", VolumeKind.DEVICE), tmp_path)
    assert done.returncode == 1
    assert not any(tmp_path.iterdir())


def test_a_short_read_gives_no_result(tmp_path: Path) -> None:
    """Dd is content with a file that ends early; its bytes are not what was."""
    assert dd(dd_run(tmp_path), tmp_path).returncode == 0
    run = dd_run(tmp_path, rw="read", size=32768)
    done = dd(run, tmp_path)
    assert dd_problems(exit_status=done.returncode, stderr=done.stderr) == ()
    with pytest.raises(OutputError, match="dd moved 16384 of 32768 bytes"):
        only_direction(done.stderr, run)


HEAD = "4+0 records in\n4+0 records out\n"


@pytest.mark.parametrize(
    ("line", "runtime_s"),
    [
        ("16384 bytes (16 kB, 16 KiB) copied, 0.000190842 s, 85.9 MB/s", 0.000190842),
        ("16384 bytes (16 kB) copied, 9.4921e-05 s, 173 MB/s", 9.4921e-05),
        ("16384 bytes copied, 2 s, 8.2 kB/s", 2.0),
        ("16384 bytes (16.0KB) copied, 0.000052 seconds, 300.5MB/s", 0.000052),
        ("16384 bytes transferred in 0.000109 secs (150311339 bytes/sec)", 0.000109),
    ],
)
def test_reports_of_other_dd_implementations_are_read(line: str, runtime_s: float) -> None:
    """GNU coreutils of several ages, BusyBox and BSD word the report differently."""
    direction = only_direction(f"{HEAD}{line}\n", dd_run("/d"))
    assert (direction.io_bytes, direction.runtime_s) == (16384, runtime_s)


def test_last_of_several_reports_counts() -> None:
    """A signal makes dd print reports on the way; only the last is the result."""
    early = "8192 bytes (8.2 kB, 8.0 KiB) copied, 1.5 s, 5.5 kB/s\n"
    last = "16384 bytes (16 kB, 16 KiB) copied, 3.25 s, 5.0 kB/s\n"
    direction = only_direction(
        f"2+0 records in\n2+0 records out\n{early}{HEAD}{last}", dd_run("/d")
    )
    assert (direction.io_bytes, direction.runtime_s) == (16384, 3.25)


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        HEAD,
        HEAD + "16384 bytes (16 kB, 16 KiB) copied, 0.0001",
        HEAD + "16384 bytes (16 kB, 16 KiB) copied, 0,0001 s, 85,9 MB/s",
        HEAD + "16384 Bytes (16 kB, 16 KiB) kopiert, 0.0001 s, 85 MB/s",
        "16384 bytes copied, 0.0.1 s, 1 kB/s",
        "dd: invalid number: 'x'",
    ],
)
def test_text_that_is_not_a_report_is_an_error(stderr: str) -> None:
    """A report that is cut off, missing or in another language is not guessed at."""
    with pytest.raises(OutputError, match="dd printed no report"):
        only_direction(stderr, dd_run("/d"))


@pytest.mark.parametrize(
    ("stderr", "said"),
    [("", "no message"), ("killed\n", "killed"), ("x\ndd: a\ndd: b\n", "dd: a dd: b")],
)
def test_failure_without_a_message_is_still_a_problem(stderr: str, said: str) -> None:
    """Whatever dd says, an exit status other than 0 is no success."""
    assert dd_problems(exit_status=-9, stderr=stderr) == (f"dd exited with -9: {said}",)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (VolumeKind.NBD, {}, "cannot access an NBD export"),
        (VolumeKind.DIRECTORY, {"size": 5000}, "must be a multiple of bs"),
        (VolumeKind.DIRECTORY, {"bs": 0}, "at least 1 byte"),
        (VolumeKind.DIRECTORY, {"bs": "x"}, "is not a size"),
        (VolumeKind.DIRECTORY, {"of": "/etc/passwd"}, "no option 'of'"),
        (VolumeKind.DIRECTORY, {"if": "/etc/shadow"}, "must be one of /dev/zero"),
        (VolumeKind.DIRECTORY, {"conv": "excl"}, "must be one of fsync"),
        (VolumeKind.DIRECTORY, {"rw": "randread"}, "must be one of read"),
    ],
)
def test_options_are_checked_again(
    kind: VolumeKind, options: dict[str, str | int], words: str
) -> None:
    """A Run that never met a check still can't make dd touch anything but its volume."""
    with pytest.raises(InputError, match=words):
        dd_argv(dd_run("/d", kind, **options))


def test_a_missing_size_is_refused() -> None:
    """Without a size dd would fill the volume."""
    run = run_on("/d", VolumeKind.DIRECTORY, section(bs=4096))
    with pytest.raises(InputError, match="must be a multiple of bs"):
        dd_argv(run)


def test_nul_in_a_path_is_refused() -> None:
    """No program can be started with a NUL in an argument."""
    with pytest.raises(InputError, match="is not a valid path"):
        dd_argv(dd_run("/d\x00"))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("dd (coreutils) 9.1\nCopyright (C) 2022\n", "dd-9.1"),
        ("dd (GNU coreutils) 8.32\n", "dd-8.32"),
        ("dd (uutils coreutils) 0.0.27\n", "dd-0.0.27"),
        ("BusyBox v1.35.0 (2022-01-01 00:00:00 UTC) multi-call binary.\n", "dd-1.35.0"),
        ("dd: unrecognized option\n", "dd"),
        ("\n9.9\n", "dd"),
        ("", "dd"),
    ],
)
def test_the_version_is_read_from_the_first_line(text: str, version: str) -> None:
    """The first number of the first line is the version."""
    assert parse_dd_version(text) == version


def test_version_of_the_installed_dd() -> None:
    """The dd on this machine tells one."""
    done = subprocess.run(["dd", "--version"], capture_output=True, text=True, check=True)
    assert parse_dd_version(done.stdout).startswith("dd-")


@pytest.mark.parametrize(
    "numbers", [("9" * 16, "1"), ("9" * 5000, "1"), ("1048576", "1e400"), ("1048576", "9" * 30)]
)
def test_implausible_numbers_are_refused(numbers: tuple[str, str]) -> None:
    """A damaged report gives no result."""
    report = "{} bytes (1.0 MB, 1.0 MiB) copied, {} s, 1.0 MB/s\n".format(*numbers)
    with pytest.raises(OutputError, match="implausible numbers"):
        parse_dd(report, run=dd_run(Path("/data"), size="1048576"), elapsed_s=1.0, version="dd-9.1")
