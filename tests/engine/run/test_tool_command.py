"""Commands, and what they must produce: good runs raise no alarm, bad ones do."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.fio.runs import run_on, section
from volbench.engine.run.tool_command import command_of, expected_of
from volbench.errors import OutputError
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import Expected, problems_of
from volbench.model.campaign.planned_run import Run, Section, VolumeKind
from volbench.model.results.result import Direction, RunOutput
from volbench.store.layout import FIO_OUTPUT, JOB_FILE

READ, WRITE, TRIM = Direction.READ, Direction.WRITE, Direction.TRIM


def null(name: str = "j", /, **options: str | int) -> Section:
    """Return a section that moves 1 MiB in 4 KiB blocks, to nowhere."""
    return section(name, **{"ioengine": "null", "size": 1048576, "bs": 4096, **options})


def psync(name: str = "j", /, **options: str | int) -> Section:
    """Return a section that moves 256 KiB in 4 KiB blocks."""
    return section(name, **{"size": 262144, "bs": 4096, **options})


def prepared(run: Run, folder: Path) -> list[str]:
    """Write what the command needs and return it."""
    command = command_of(run, fio="fio")
    for name, text in command.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return command.argv


def judged(run: Run, folder: Path, *, status: int, stderr: str) -> tuple[str, ...]:
    """Return the problems of an ended fio."""
    output: RunOutput | None = None
    path = folder / FIO_OUTPUT
    if path.exists():
        try:
            output = parse_output(path.read_text(errors="replace"))
        except OutputError:
            output = None
    return problems_of(output, exit_status=status, stderr=stderr, expected=expected_of(run))


def problems(run: Run, folder: Path) -> tuple[str, ...]:
    """Run the command of a run for real and return its problems."""
    done = subprocess.run(
        prepared(run, folder),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return judged(run, folder, status=done.returncode, stderr=done.stderr)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Return an empty folder to work on, beside the run's own."""
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder


TIMED: dict[str, str | int] = {"time_based": 1, "runtime": "1s", "rate_iops": 50}
"""At full speed the engine null would take a core for the whole second."""

GOOD: dict[str, tuple[Section, ...]] = {
    **{rw: (psync(rw=rw),) for rw in ("read", "write", "randread", "randwrite", "rw", "randrw")},
    **{rw: (null(rw=rw),) for rw in ("trim", "randtrim", "trimwrite", "randtrimwrite")},
    "only-reads": (null(rw="randrw", rwmixread=100),),
    "only-writes": (null(rw="randrw", rwmixread=0),),
    "one-io-of-a-mix": (null(rw="rw", number_ios=1),),
    "few-ios-of-a-lopsided-mix": (null(rw="rw", rwmixread=99, size=65536),),
    "unified": (null(rw="rw", unified_rw_reporting=1),),
    "verify": (psync(rw="write", verify="crc32c"),),
    "verify in time": (psync(rw="write", verify="crc32c", runtime="2s", time_based="1"),),
    "create-only": (psync(rw="read", create_only=1),),
    "fsync": (psync(rw="randwrite", fsync=4, end_fsync=1),),
    "clones-grouped": (psync(rw="write", numjobs=3, group_reporting=1),),
    "sections": (null("a", rw="read"), null("b", rw="write", numjobs=2)),
    "groups": (
        null("a", rw="read", group_reporting=1, numjobs=2),
        null("b", rw="write", group_reporting=1, new_group=1, numjobs=2),
        null("c", rw="trim", numjobs=2),
        null("d", rw="read", group_reporting=1, new_group=1),
    ),
    "grouped-behind-clones": (
        null("a", rw="read", numjobs=2),
        null("b", rw="write", numjobs=2, group_reporting=1),
    ),
    "size-ends-before-runtime": (null(rw="read", runtime="60s"),),
    "time-based-with-ramp": (null(rw="read", ramp_time="1s", **TIMED),),
    "time-based-without-runtime": (null(rw="read", time_based=1),),
    "runtimes-differ": (null("a", rw="read", **TIMED), null("b", rw="write")),
    "delayed": (null("a", rw="read", startdelay="1s"), null("b", rw="write")),
    "waiting": (null("a", rw="read"), null("b", rw="write", wait_for="a")),
    "exitall": (
        null("a", rw="read", **(TIMED | {"runtime": "30s"})),
        null("b", rw="read", exitall=1, startdelay="2s"),  # by then "a" has begun
    ),
    "steady": (null(rw="read", time_based=1, runtime="30s", ss="iops:95%", ss_dur="1s"),),
    "cpu": (section(ioengine="cpuio", cpuload=50, **TIMED),),
    "blocks-of-two-sizes": (null(rw="randrw", bssplit="4096/50:8192/50"),),
}


@pytest.mark.parametrize("shape", GOOD)
def test_good_runs_have_no_problems(shape: str, tmp_path: Path, volume: Path) -> None:
    """Whatever fio is rightly asked for, its success is seen as one."""
    run = run_on(volume, VolumeKind.DIRECTORY, *GOOD[shape], sample_s=0.2)
    assert problems(run, tmp_path) == ()


BAD: dict[str, tuple[Section, str]] = {
    "no size": (section(rw="read"), "error 22"),
    "a value out of range": (null(rw="read", iodepth=0), "exit status 1"),
    "an unknown engine": (null(rw="read", ioengine="nosuch"), "nosuch not loadable"),
    "too slow": (psync(rw="write", fsync=1, max_latency=1), "error 110"),
    "over at once": (null(rw="read", time_based=1, runtime="1us", thinktime=10), "no read"),
    "waiting for nobody": (null(rw="read", wait_for="z"), "waitee job z unknown"),
    "a damaged file": (psync(rw="read", verify="crc32c"), "error 84"),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", BAD)
def test_bad_runs_have_problems(defect: str, tmp_path: Path, volume: Path) -> None:
    """What fio refuses or breaks off is named."""
    job, words = BAD[defect]
    run = run_on(volume, VolumeKind.DIRECTORY, job, sample_s=0.2)
    assert words in "\n".join(problems(run, tmp_path))


def test_full_volume_is_a_problem(tmp_path: Path) -> None:
    """Writes that end with ENOSPC are no success."""
    run = run_on("/dev/full", VolumeKind.FILE, psync(rw="write"), sample_s=0)
    assert "error 28 (No space left on device)" in "\n".join(problems(run, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "killed by signal 9"), (signal.SIGINT, "interrupted")]
)
def test_killed_run_is_a_problem(
    number: signal.Signals, words: str, tmp_path: Path, volume: Path
) -> None:
    """However fio is ended from outside, the run is no success."""
    job = psync(rw="randrw", time_based=1, runtime="60s")
    run = run_on(volume, VolumeKind.DIRECTORY, job, sample_s=0.2)
    process = subprocess.Popen(
        prepared(run, tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(4) == "Jobs"  # it has started, so its handlers are in place
    process.send_signal(number)
    _, stderr = process.communicate(timeout=300)
    found = judged(run, tmp_path, status=process.returncode, stderr=stderr)
    assert words in "\n".join(found)


@pytest.mark.root
def test_mounted_device_is_a_problem(disks: Disks, tmp_path: Path) -> None:
    """The exit status 0 with which fio refuses a mounted device is no success."""
    device = disks.attach()
    disks.format(device)
    disks.mount(device)
    run = run_on(device, VolumeKind.DEVICE, psync(rw="write"), sample_s=0)
    assert "appears mounted" in "\n".join(problems(run, tmp_path))


@pytest.mark.root
@pytest.mark.parametrize("rw", ["read", "randwrite", "randtrim"])
def test_device_runs_have_no_problems(rw: str, disks: Disks, tmp_path: Path) -> None:
    """Reads, writes and trims of a whole device raise no alarm."""
    device = disks.attach()
    run = run_on(device, VolumeKind.DEVICE, section(rw=rw, bs=65536, direct=1), sample_s=0)
    assert problems(run, tmp_path) == ()


CHANGING: dict[str, Section] = {
    "write": psync(rw="write"),
    "mix of reads only": psync(rw="randrw", rwmixread=100),
    "trim": null(rw="randtrim"),
    "unlink": psync(rw="read", unlink=1),
    "deletes": psync(rw="read", ioengine="filedelete"),
    "creates": psync(rw="read", ioengine="filecreate"),
}


@pytest.mark.parametrize("kind", [VolumeKind.DEVICE, VolumeKind.NBD])
def test_reads_of_what_exists_are_read_only(kind: VolumeKind) -> None:
    """Where nothing is laid out, fio itself is told to refuse writes."""
    assert "--readonly" in command_of(run_on("/dev/sdz", kind), fio="fio").argv
    replaced = {"deletes", "creates"} if kind is VolumeKind.NBD else set()  # engines of files
    for name, job in CHANGING.items():
        argv = command_of(run_on("/dev/sdz", kind, job), fio="fio").argv
        assert ("--readonly" in argv) is (name in replaced)


def test_file_is_laid_out_for_a_read(tmp_path: Path, volume: Path) -> None:
    """A read of a missing file may write it first; fio would refuse that under --readonly."""
    run = run_on(volume, VolumeKind.DIRECTORY, psync(rw="randread"), sample_s=0)
    assert "--readonly" not in command_of(run, fio="fio").argv
    assert problems(run, tmp_path) == ()
    argv = [*prepared(run, tmp_path), "--readonly"]
    (volume / "j.0.0").unlink()
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False, timeout=300)
    assert done.returncode == 1
    assert not (volume / "j.0.0").exists()


def test_fio_command_is_shown_without_this_machines_paths(volume: Path) -> None:
    """What status.json keeps is the same command with a bare name."""
    command = command_of(run_on(volume), fio="/opt/fio/bin/fio")
    assert command.argv[0] == "/opt/fio/bin/fio"
    assert command.shown == ["fio", *command.argv[1:]]
    assert command.argv[-1] == JOB_FILE
    assert f"--output={FIO_OUTPUT}" in command.argv
    assert list(command.files) == [JOB_FILE]


def test_expected_names_entries_and_directions() -> None:
    """Each job is one entry, but those of the only section under group_reporting."""
    run = run_on(
        "/d",
        VolumeKind.DIRECTORY,
        section("a", rw="randread:4", group_reporting=1, numjobs=4, **TIMED),
        section("b", rw="write", group_reporting=1),
        section("c", rw="rw", rwmixread=0, numjobs=2),
    )
    assert expected_of(run) == (
        Expected("a", 4, (READ,), 1.0),
        Expected("b", 1, (WRITE,)),
        Expected("c", 2, (WRITE,)),
    )
    alone = run_on("/d", VolumeKind.DIRECTORY, section("a", group_reporting=1, numjobs=4))
    assert expected_of(alone) == (Expected("a", 1, (READ,)),)


@pytest.mark.parametrize(
    ("options", "directions"),
    [
        ({"rw": "rw", "number_ios": 1}, ()),
        ({"rw": "rw", "size": 4096 * 40}, (READ, WRITE)),
        ({"rw": "randrw", "rwmixread": 99, "size": 4096 * 40}, (READ,)),
        ({"rw": "randrw", "rwmixwrite": 99, "size": 4096 * 40}, (WRITE,)),
        ({"rw": "randrw", "rwmixread": 70, "time_based": 1, "size": 4096}, (READ, WRITE)),
        ({"rw": "randrw", "rwmixread": 99, "io_size": 2**30}, (READ, WRITE)),
        ({"rw": "randrw", "size": "50%"}, (READ, WRITE)),
        ({"rw": "trim"}, (TRIM,)),
        ({}, (READ,)),
    ],
)
def test_a_mix_expects_directions_not_absent_by_chance(
    options: dict[str, str | int], directions: tuple[Direction, ...]
) -> None:
    """A direction is demanded only where chance can't leave it out."""
    (expected,) = expected_of(run_on("/d", VolumeKind.DIRECTORY, section(**options)))
    assert expected.directions == directions
