"""Rendered job files: what stands in them, and that fio reads exactly that."""

import re
from pathlib import Path

import pytest

from tests.fio.runs import Options, fio, really_run, run_on, section
from volbench import __version__
from volbench.errors import InputError
from volbench.fio.jobs.render_job import render, with_sent_logs, writes
from volbench.fio.results.merge_jobs import merge_jobs
from volbench.model.campaign.planned_files import file_ranges, planned_files
from volbench.model.campaign.planned_run import Section, VolumeKind
from volbench.model.results.result import Direction

HEAD = f"""\
# volbench {__version__}: profile p, job j
# rerun it with: fio <this file>

[global]
# threads, for worker processes survive when fio is killed
thread=1
"""

MEASURING = """\
# added by volbench for reporting
lat_percentiles=1
clat_percentiles=1
slat_percentiles=1
log_avg_msec=1000
log_unix_epoch=1
write_bw_log=series
write_iops_log=series
write_lat_log=series
# added by volbench: different random offsets in each repeat, the same in a rerun
randrepeat=0
randseed=42
"""

WRITE = section(rw="write", bs=4096, size=65536)

SNAPSHOTS = {
    "directory": (run_on("/mnt/d", VolumeKind.DIRECTORY, WRITE), "directory=/mnt/d\n"),
    "directory-with-filename": (
        run_on("/mnt/d", VolumeKind.DIRECTORY, WRITE, options={"filename": "a:b"}),
        "directory=/mnt/d\nfilename=a:b\n",
    ),
    "file": (run_on("/mnt/f", VolumeKind.FILE, WRITE), "filename=/mnt/f\n"),
    "device": (
        run_on("/dev/sdz", VolumeKind.DEVICE, WRITE),
        (
            "filename=/dev/sdz\n"
            "# fio must not create a file for a mistyped device\nallow_file_create=0\n"
        ),
    ),
    "nbd": (run_on("nbd://h/e", VolumeKind.NBD, WRITE), "ioengine=nbd\nuri=nbd://h/e\n"),
}

HOSTILE = [
    *("x\nexec_prerun=touch owned", "x\r\nexec_prerun=touch owned", "a#b", "a;b", " a", "a "),
    *("${HOME}", "$ncpus", "2*$mb_memory", "a\x00b", "a\x85b", "a\u2028b", "a\udcffb"),
]


@pytest.mark.parametrize("kind", SNAPSHOTS)
@pytest.mark.parametrize("measuring", [False, True])
def test_rendered_file_is_exactly_this(kind: str, *, measuring: bool) -> None:
    """Each kind of volume gives the lines that tie a section to it, and nothing else."""
    run, place = SNAPSHOTS[kind]
    expected = HEAD + (MEASURING if measuring else "")
    expected += "\n[j]\nrw=write\nbs=4096\nsize=65536\n" + place
    assert render(run, measuring=measuring) == expected


def test_parallel_sections_are_reported_separately(tmp_path: Path) -> None:
    """A group would have the name of its first section and the options of its last."""
    run = run_on(
        tmp_path,
        VolumeKind.DIRECTORY,
        section("log", rw="write", bs=16384, size=1 << 20, group_reporting=1),
        section("data", rw="randread", bs=8192, size=1 << 20, numjobs=2),
        options={"group_reporting": "1"},
    )
    done = {job.name: job for job in merge_jobs(really_run(run, tmp_path).jobs)}
    blocks = {
        name: {(d.direction, d.io_bytes // (d.total_ios or 1)) for d in job.directions}
        for name, job in done.items()
    }
    assert blocks == {"log": {(Direction.WRITE, 16384)}, "data": {(Direction.READ, 8192)}}
    assert "group_reporting" in render(run, measuring=False)
    alone = run.model_copy(update={"sections": run.sections[1:]})
    assert "group_reporting=1" in render(alone)


def test_several_sections_share_and_keep_their_own() -> None:
    """Shared options stand in [global], each section's own under its header."""
    run = run_on(
        "/mnt/d",
        VolumeKind.DIRECTORY,
        section("a", rw="read"),
        section("b", rw="write", filename="x"),
        options={"bs": "4096", "filename": "y", "thread": "0"},
    )
    text = render(run, measuring=False)
    assert text == HEAD + (
        "bs=4096\n"
        "\n[a]\nrw=read\ndirectory=/mnt/d\nfilename=y\n"
        "\n[b]\nrw=write\ndirectory=/mnt/d\nfilename=x\n"
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["note", "profile", "job"])
def test_free_text_cannot_add_lines(field: str, text: str, tmp_path: Path) -> None:
    """Names and notes that never met a check still can't become options."""
    clean = render(run_on("/mnt/d"), measuring=False)
    dirty = render(run_on("/mnt/d").model_copy(update={field: text}), measuring=False)
    assert _without_comments(dirty) == _without_comments(clean)
    assert "exec_prerun=" not in dirty
    (tmp_path / "job.fio").write_text(dirty, encoding="utf-8")


def _without_comments(text: str) -> list[str]:
    return [line for line in text.split("\n") if line and not line.startswith("#")]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", [entry for entry in VolumeKind if entry is not VolumeKind.UNKNOWN])
def test_targets_that_fio_would_misread_are_refused(kind: VolumeKind, text: str) -> None:
    """A target that fio would cut, replace or read as several lines is refused."""
    with pytest.raises(InputError, match="cannot be written into a job file"):
        render(run_on(f"/mnt/{text}" if text != " a" else text, kind))


@pytest.mark.parametrize("text", HOSTILE)
def test_invalid_option_values_are_refused_when_rendering(text: str) -> None:
    """An unsafe value is refused, whether shared or a section's own."""
    with pytest.raises(InputError, match="cannot be written into a job file"):
        render(run_on("/mnt/d", options={"verify_pattern": text}))
    with pytest.raises(InputError, match="cannot be written into a job file"):
        render(run_on("/mnt/d", VolumeKind.DIRECTORY, section(verify_pattern=text)))


@pytest.mark.parametrize("name", ["a\nb", "[x]", "", "a b", "a=b", "include", "include_x", "#a"])
def test_invalid_option_names_are_refused_when_rendering(name: str) -> None:
    """What is no option's name can't start a line: it could be a header or an include."""
    with pytest.raises(InputError, match="cannot be written into a job file"):
        render(run_on("/mnt/d", options={name: "1"}))


@pytest.mark.parametrize(
    "name", ["", "global", "global_read", "a b", "a]b", "a/b", "a\nb", "a#b", "x" * 128]
)
def test_invalid_section_names_are_refused_when_rendering(name: str) -> None:
    """A header that fio would cut, or read as defaults, is refused."""
    with pytest.raises(InputError, match="is not a valid section name"):
        render(run_on("/mnt/d", VolumeKind.DIRECTORY, Section(name=name)))


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "a:../x", "..", "a::b", "-", r"a\:b"])
@pytest.mark.parametrize("option", ["filename", "filename_format"])
def test_files_stay_inside_the_volume(option: str, name: str) -> None:
    """A file name that leaves the directory, or means standard output, is refused."""
    with pytest.raises(InputError, match="not a list of plain file names"):
        render(run_on("/mnt/d", options={option: name}))


@pytest.mark.parametrize(("name", "length"), [("filename", 4096), ("verify_pattern", 8191)])
def test_lines_that_fio_would_cut_are_refused(name: str, length: int) -> None:
    """Lines are limited in fio; a longer one is refused and not cut."""
    value = "x" * (length - len(name) - 1)
    with pytest.raises(InputError, match=f"longer than the {length} bytes"):
        render(run_on("/mnt/d", options={name: value}))
    assert value[1:] in render(run_on("/mnt/d", options={name: value[1:]}))


def test_filename_is_written_in_job_sections_only() -> None:
    """A filename in [global] overruns a buffer of fio's (issue 2151)."""
    sections = (section("a"), section("b"))
    run = run_on("/mnt/d", VolumeKind.DIRECTORY, *sections, options={"filename": "x:y:z"})
    defaults, *jobs = render(run).split("\n\n[")[1:]
    assert "filename" not in defaults
    assert all("\nfilename=x:y:z" in job for job in jobs)


def test_no_seed_is_added_beside_the_seed_of_a_profile() -> None:
    """A profile that says how its offsets are drawn keeps the word."""
    for own in ("randrepeat", "allrandrepeat", "randseed"):
        text = render(run_on("/mnt/d", options={own: "1"}))
        assert len(re.findall(r"^(?:all)?rand(?:repeat|seed)=", text, re.MULTILINE)) == 1


@pytest.mark.parametrize(("sample_s", "line"), [(0.5, "500"), (0.0001, "1"), (60, "60000")])
def test_logs_are_always_averaged(sample_s: float, line: str) -> None:
    """However short the sample, fio never logs every single I/O."""
    assert f"\nlog_avg_msec={line}\n" in render(run_on("/mnt/d", sample_s=sample_s))


def test_real_run_gives_all_percentiles_and_series_logs(tmp_path: Path) -> None:
    """A run reports total, completion and submission percentiles, and logs under our prefix."""
    volume = tmp_path / "v"
    volume.mkdir()
    job = section(rw="randrw", size=262144, ioengine="libaio", iodepth=4, runtime="1s")
    run = run_on(volume, VolumeKind.DIRECTORY, job, options={"time_based": "1"}, sample_s=0.2)
    (found,) = really_run(run, tmp_path).jobs
    for direction in found.directions:
        for latency in (direction.lat, direction.clat, direction.slat):
            assert latency is not None
            assert 99.0 in latency.percentiles
    logs = sorted(path.name for path in tmp_path.glob("*.log"))
    assert logs == [f"series_{kind}.1.log" for kind in ("bw", "clat", "iops", "lat", "slat")]
    assert all((tmp_path / name).stat().st_size for name in logs)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [{}, {"gtod_reduce": "1"}, {"disable_lat": "1"}])
def test_measuring_does_not_change_the_workload(extra: Options, tmp_path: Path) -> None:
    """With and without what volbench adds, the same I/Os are done on the same files."""
    job = section(rw="randrw", bs=4096, size=262144, rwmixread=50, randseed=7)
    counts, files = [], []
    for measuring in (False, True):
        volume = tmp_path / f"v{measuring}"
        volume.mkdir()
        run = run_on(volume, VolumeKind.DIRECTORY, job, options=extra, sample_s=0.2)
        (found,) = really_run(run, tmp_path, measuring=measuring).jobs
        counts.append([(d.direction, d.total_ios, d.io_bytes) for d in found.directions])
        files.append([(path.name, path.stat().st_size) for path in sorted(volume.iterdir())])
    assert counts[0] == counts[1]
    assert {direction for direction, *_ in counts[0]} == {Direction.READ, Direction.WRITE}
    assert files[0] == files[1] == [("j.0.0", 262144)]


SHAPES: dict[str, Options] = {
    "plain": {},
    "clones": {"numjobs": "3"},
    "files": {"nrfiles": "3"},
    "clones-and-files": {"numjobs": "2", "nrfiles": "2"},
    "filename": {"filename": "one"},
    "filenames": {"filename": "one:two", "numjobs": "2"},
    "filename-and-files": {"filename": "one", "nrfiles": "3"},
    "blank": {"filename": "one two:three four"},
    "format": {"filename_format": "f.$filenum.$jobname.$jobnum", "nrfiles": "2", "numjobs": "2"},
    "format-shared": {"filename_format": "same", "numjobs": "2"},
    "format-odd": {"filename_format": "$jobname$jobnum$jobnum-$nothing"},
    "null": {"ioengine": "null"},
}


ODD_FOLDERS = ("with blank", "with:colon", r"back\slash", "ümlaut")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "folder"),
    [
        *((shape, "plain") for shape in SHAPES),
        *((shape, folder) for shape in ("filenames", "blank", "format") for folder in ODD_FOLDERS),
    ],
)
def test_planned_files_are_those_that_fio_makes(shape: str, folder: str, tmp_path: Path) -> None:
    """The plan names every file fio creates, and no other, and its length to the byte."""
    volume = tmp_path / folder
    volume.mkdir()
    job = section(rw="read", bs=1, size=5009)
    run = run_on(volume, VolumeKind.DIRECTORY, job, options=SHAPES[shape], sample_s=0)
    really_run(run, tmp_path)
    made = {str(path): (0, path.stat().st_size) for path in volume.iterdir()}
    assert file_ranges(run) == made


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"offset": "100%"}, {"offset_increment": "100%"}])
def test_jobs_that_begin_at_a_share_of_their_file_make_it_longer(
    options: Options, tmp_path: Path
) -> None:
    """Each job makes it anew, beyond what the jobs before have left: more than two ranges long."""
    (volume := tmp_path / "v").mkdir()
    shared = {**options, "filename": "one", "numjobs": "5"}
    job = section(rw="read", bs=4096, size=65536)
    run = run_on(volume, VolumeKind.DIRECTORY, job, options=shared, sample_s=0)
    really_run(run, tmp_path)
    ((_, end),) = file_ranges(run).values()
    assert 5 * 65536 <= (volume / "one").stat().st_size <= end


@pytest.mark.parametrize("name", ["plain", "with blank", "with:colon", "a:b:c"])
def test_file_volume_is_that_file(name: str, tmp_path: Path) -> None:
    """A file volume is used as it is called, and nothing is made beside it."""
    volume = tmp_path / "v"
    volume.mkdir()
    run = run_on(volume / name, VolumeKind.FILE, section(rw="write", size=65536), sample_s=0)
    really_run(run, tmp_path)
    assert planned_files(run) == (str(volume / name),)
    assert [path.name for path in volume.iterdir()] == [name]


def test_missing_directory_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    """Where the mount point is missing fio must not fill the filesystem below."""
    missing = tmp_path / "missing"
    for options in ({}, {"filename": "x"}):
        run = run_on(missing, VolumeKind.DIRECTORY, section(rw="write", size=4096), options=options)
        (tmp_path / "job.fio").write_text(render(run))
        assert fio("job.fio", cwd=tmp_path).returncode == 1
        assert not missing.exists()


def test_mistyped_device_does_not_become_a_file(tmp_path: Path) -> None:
    """A path that is rendered as a device is never created by fio."""
    target = tmp_path / "sdz"
    run = run_on(target, VolumeKind.DEVICE, section(rw="read", size=65536))
    (tmp_path / "job.fio").write_text(render(run))
    assert fio("job.fio", cwd=tmp_path).returncode == 1
    assert not target.exists()


def test_export_needs_no_engine_of_the_profile() -> None:
    """An NBD volume brings its engine; the profile's own is not repeated beside it."""
    job = section(ioengine="libaio", rw="read")
    text = render(run_on("nbd://h/e", VolumeKind.NBD, job), measuring=False)
    assert re.findall(r"ioengine=\w+", text) == ["ioengine=nbd"]


def test_an_imported_run_on_an_unknown_volume_is_not_rendered() -> None:
    """An imported run names no volume that fio could be let loose on."""
    with pytest.raises(InputError, match="the volume it was measured on is unknown"):
        render(run_on("disk of somebody", VolumeKind.UNKNOWN))


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
