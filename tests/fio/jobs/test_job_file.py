"""Job files turned into profiles and back mean the same to fio, or are refused with their line."""

import re
from pathlib import Path

import pytest

from tests.fio.plain import amount, fio_jobs, shown_options
from volbench.errors import ProfileError
from volbench.fio.jobs.job_file import ImportedJob, parse_jobfile
from volbench.fio.jobs.job_syntax import read_value
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.plan.expansion.expand import Terms, expand

JOB_FILES = sorted((Path(__file__).parent / "jobfiles").glob("*.fio"))
TABLE = shipped_table()
SAID_OTHERWISE = {
    *("name", "stonewall", "thread", "description", "directory", "filename", "filename_format"),
    *("wait_for", "kb_base"),
}
"""Options that a profile expresses in another way; the files and groups show whether they hold."""
VARYING = {"split", "swapped", "triple", "alone", "mix", "vectored", "minute", "data", "quiet"}
"""Sections whose number of I/Os depends on fio's random numbers, or on the clock."""


def _import(text: str, *, allow_exec: bool = False) -> ImportedJob:
    return parse_jobfile(text, path="mine.fio", table=TABLE, allow_exec=allow_exec)


def _runs(profile: Profile, folder: Path) -> tuple[Run, ...]:
    roles = {job.role for job in profile.jobs}
    volumes = {
        role: Volume(role=role, kind=VolumeKind.DIRECTORY, target=str(folder)) for role in roles
    }
    return expand([profile], volumes, Terms(name="t", seed=1)).runs


def _read(path: Path) -> str:
    return path.read_bytes().decode()


def _meant(options: list[tuple[str, str | None]], *, kb_base: int) -> dict[str, str]:
    meant: dict[str, str] = {}
    for name, text in options:
        option = TABLE.find(name)
        assert option is not None
        meant[option.name] = read_value(option, text, kb_base=kb_base).value
        if option.name == "buffered":
            meant["direct"] = str(1 - int(meant.pop("buffered")))
        if option.name == "rwmixwrite":
            meant["rwmixread"] = str(100 - int(meant.pop("rwmixwrite")))
    return {name: value for name, value in meant.items() if name not in SAID_OTHERWISE}


@pytest.mark.slow
@pytest.mark.parametrize("path", JOB_FILES, ids=lambda path: path.stem)
def test_fio_shows_the_same_options(path: Path, tmp_path: Path) -> None:
    """Every option of every section stands in what is rendered, with the value fio reads."""
    text = _read(path)
    kb_base = 1000 if "kb_base=1000" in text else 1024
    before = [_meant(options, kb_base=kb_base) for options in shown_options(tmp_path, text)]
    after = [
        _meant(options, kb_base=1024)
        for run in _runs(_import(text).profile, tmp_path)
        for options in shown_options(tmp_path, render(run, measuring=False))
    ]
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("path", JOB_FILES, ids=lambda path: path.stem)
def test_fio_does_the_same(path: Path, tmp_path: Path) -> None:
    """Both transfer the same bytes in the same blocks, and leave the same files."""
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
    before = fio_jobs(folders[0], _read(path))
    after = [
        job
        for run in _runs(_import(_read(path)).profile, folders[1])
        for job in fio_jobs(folders[1], render(run, measuring=False))
    ]
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        fields = ["io_bytes"] if old["jobname"] not in VARYING else []
        if old["jobname"] not in VARYING:
            fields.append("total_ios")
        assert {name: amount(old, name) for name in fields} == {
            name: amount(new, name) for name in fields
        }, old["jobname"]
    sizes = [
        {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
        for folder in folders
    ]
    assert sizes[1] == sizes[0]


@pytest.mark.parametrize(
    ("place", "volumes", "options"),
    [
        ("filename=/dev/sdz", {"data": "/dev/sdz"}, {}),
        (r"filename=/dev/disk/by-path/a\:b", {"data": "/dev/disk/by-path/a:b"}, {}),
        ("filename=/srv/bench/f", {"data": "/srv/bench/"}, {"filename": "f"}),
        ("filename=/dev/shm/f", {"data": "/dev/shm/"}, {"filename": "f"}),
        ("filename=/srv/a:/srv/b", {"data": "/srv/"}, {"filename": "a:b"}),
        ("directory=/srv\nfilename=/x/f", {"data": "/srv/x/"}, {"filename": "f"}),
        ("directory=/srv", {"data": "/srv/"}, {}),
        ("filename=sub/f", {"data": "sub/"}, {"filename": "f"}),
        ("size=1m", {"data": "."}, {"size": "1048576"}),
        (
            "ioengine=nbd\nuri=nbd+unix:///?socket=/run/n",
            {"data": "nbd+unix:///?socket=/run/n"},
            {"ioengine": "nbd"},
        ),
    ],
)
def test_filename_and_directory_become_a_volume(
    place: str, volumes: dict[str, str], options: dict[str, str]
) -> None:
    """Places leave the options and become targets of a role."""
    profile = _import(f"[j]\n{place}\n").profile
    assert profile.volumes == volumes
    assert profile.jobs[0].options == options


def test_several_filenames_become_several_roles() -> None:
    """Jobs that wait for one another may work on different volumes."""
    profile = _import(
        "[a]\nfilename=/dev/sdy\n[b]\nstonewall\nfilename=/dev/sdz\n[c]\nstonewall\nioengine=null\n"
    ).profile
    assert profile.volumes == {"data": "/dev/sdy", "data2": "/dev/sdz"}
    assert [job.role for job in profile.jobs] == ["data", "data2", "data"]


REFUSED = {
    "before any section": ("size=1m\n[j]\n", 1),
    "byte-order mark": ("\ufeff[j]\nsize=1m\n", 1),
    "no job": ("[global]\nsize=1m\n", 0),
    "include": ("[j]\ninclude other.fio\n", 2),
    "environment": ("[j]\nsize=1m\nfilename=/tmp/${NAME}\n", 3),
    "keyword": ("[j]\nnumjobs=$ncpus\n", 2),
    "arithmetic": ("[j]\nsize=(4*1024)\n", 2),
    "prerun": ("[j]\nsize=1m\n\nexec_prerun=touch /tmp/x\n", 4),
    "exec engine": ("[j]\nioengine=exec\n", 2),
    "external engine": ("[j]\nioengine=external:/tmp/evil.so\n", 2),
    "remote engine": ("[j]\nioengine=rbd\n", 2),
    "unknown option": ("[j]\niodeptj=4\n", 2),
    "engine that this fio lacks": ("[j]\nioengine=http\nhttp_host=a\nhttp_mode=s3\n", 2),
    "blank before a word": ("[j]\nrw = write\n", 2),
    "no value": ("[j]\nsize\n", 2),
    "comment in a header": ("[job #1]\nsize=1m\n", 1),
    "long line": ("[j]\nsize=1m\ndescription=" + "x" * 8200 + "\n", 3),
    "devices and files of one job": ("[j]\nsize=1m\nfilename=/dev/sdb:/srv/x\n", 3),
    "volumes at once": ("[a]\nfilename=/a/x\n[b]\nfilename=/b/y\nwait_for=a\n", 5),
    "late startdelay": ("[a]\nsize=1m\n[b]\nstonewall\nstartdelay=5\n", 5),
    "wait_for nobody": ("[a]\nsize=1m\nwait_for=z\n", 3),
    "exit_what": ("[a]\nexitall\nexit_what=all\n[b]\nstonewall\nexit_what=all\n", 6),
    "file in a new folder": ("[a/b]\nsize=1m\n", 1),
    "file must exist": ("[a]\nfilename=/srv/x\nallow_file_create=0\n", 3),
    "no statistics": ("[a]\nstats=0\n", 2),
    "out of range": ("[a]\niodepth=0\n", 2),
    "uid": ("[a]\nuid=0\n", 2),
    "opendir": ("[a]\nopendir=/etc\n", 2),
    "control character": ("[a]\ndescription=a\x07b\n", 2),
}


@pytest.mark.parametrize(("text", "line"), REFUSED.values(), ids=REFUSED)
def test_unsupported_options_are_refused_with_their_line(text: str, line: int) -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(ProfileError) as caught:
        _import(text)
    assert [problem.line for problem in caught.value.problems] == [line]
    assert all(problem.path == "mine.fio" for problem in caught.value.problems)


def test_all_problems_are_reported_at_once() -> None:
    """A file is refused with everything that is wrong in it, in order."""
    with pytest.raises(ProfileError) as caught:
        _import("[a]\niodeptj=4\nsize=big\n[b]\nrw = read\n")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 5]
    assert "iodepth" in caught.value.problems[0].hint
    with pytest.raises(ProfileError, match=r"no ioengine 'ime_psync' \(it has "):
        _import("[a]\nioengine=ime_psync\n")
    with pytest.raises(ProfileError, match=r"sprandom.*3\.41 on"):
        _import("[a]\nsprandom=1\n")


def test_options_that_run_programs_are_kept_with_consent() -> None:
    """With --allow-exec the option stays in the profile."""
    profile = _import("[a]\nsize=1m\nexec_prerun=sync\n", allow_exec=True).profile
    assert profile.jobs[0].options["exec_prerun"] == "sync"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[j]\nsize=8KiB\n", "mine.fio:2: fio reads size=8KiB as 8000"),
        ("[j]\nfilename=x#y\n", "mine.fio:2: fio ends the line at '#'"),
        ("[j]\nthreads=1\n", "mine.fio:2: threads is left out"),
        ("[j]\nrwmixcycle=1\n", "mine.fio:2: rwmixcycle is left out"),
        ("[j k]\nsize=1m\n", "mine.fio:1: section 'j k' is renamed to j_k"),
    ],
)
def test_changed_values_are_reported(text: str, words: str) -> None:
    """Each change comes with a notice that names its line."""
    assert any(notice.startswith(words) for notice in _import(text).notices)


def test_options_of_logs_are_left_out_in_one_line() -> None:
    """A user of a job file has no profile, and logs of many sections need no line each."""
    log = "size=1m\nwrite_bw_log=/tmp/x\nlog_avg_msec=500\n"
    (notice,) = _import(f"[a]\n{log}[b]\nstonewall\n{log}").notices
    assert notice.startswith("write_bw_log, log_avg_msec: left out")
    assert "sample" in notice


def test_name_names_the_job_and_not_its_files() -> None:
    """As in fio, files are named after the section, and wait_for means the name."""
    text = "[a]\nname=x y\nsize=1m\n[b/c]\nfilename=f\nwait_for=x y\nsize=1m\n"
    (job,) = _import(text).profile.jobs
    assert job.sections["x_y"]["filename_format"] == "a.$jobnum.$filenum"
    assert job.sections["b_c"] == {"filename": "f", "wait_for": "x_y"}
    shared = "[global]\nname=all\nsize=1m\n"
    assert [job.name for job in _import(f"{shared}[a]\n").profile.jobs] == ["all"]
    (several,) = _import(f"{shared}[a]\n[b]\n").profile.jobs
    assert [*several.sections] == ["a", "b"]
    assert _import("[2x50%_sort]\nioengine=cpuio\ncpuload=50\n").profile.jobs[0].name


def test_an_unset_direction_of_a_split_is_kept() -> None:
    """For fio it has the block size of bs."""
    options = _import("[j]\nbssplit=8k/90:16k/10,,\n").profile.jobs[0].options
    assert options == {"bssplit": "8192/90:16384/10,,"}


def test_a_log_to_replay_is_found_from_here() -> None:
    """As fio opens it; volbench runs fio in another folder."""
    options = _import("[j]\nread_iolog=a/t.log\n").profile.jobs[0].options
    assert options["read_iolog"] == str(Path("a/t.log").absolute())


@pytest.mark.parametrize("text", ["[j]\nsize=64k ; why\n", "[j]\nsize=64k\t# why\n"])
def test_a_comment_behind_a_value_is_not_reported(text: str) -> None:
    """Only a sign right behind a value may have been meant as a part of it."""
    assert not _import(text).notices


def test_sections_of_one_name_stay_separate_and_keep_their_files() -> None:
    """Fio lets two sections of one name share generated files; so do the renamed ones."""
    profile = _import("[a]\nsize=1m\n[a]\nstonewall\nsize=1m\n").profile
    assert [job.name for job in profile.jobs] == ["a", "a_2"]
    assert profile.jobs[1].options["filename_format"] == "a.$jobnum.$filenum"


@pytest.mark.parametrize("path", JOB_FILES, ids=lambda path: path.stem)
def test_rendered_lines_hold_one_option_each(path: Path, tmp_path: Path) -> None:
    """No line of a rendered file can be read as two."""
    for run in _runs(_import(_read(path)).profile, tmp_path):
        for line in render(run).splitlines():
            assert re.fullmatch(r"|#[^;]*|\[[\w-]+\]|[a-z_]+=[^#;]+", line), line


def test_an_engine_specific_option_follows_its_engine(tmp_path: Path) -> None:
    """Fio refuses such an option in [global] without the engine, and ignores it under another."""
    text = (
        "[global]\nioengine=libaio\nuserspace_reap\nsize=64k\n[a]\n[b]\nstonewall\nioengine=psync\n"
    )
    profile = _import(text).profile
    assert profile.defaults["userspace_reap"] == "1"
    first, second = (render(run, measuring=False) for run in _runs(profile, tmp_path))
    assert "userspace_reap=1" in first.partition("[a]")[2]
    assert "userspace_reap" not in second
    for rendered in (first, second):
        assert amount(fio_jobs(tmp_path, rendered)[0], "io_bytes") == 65536
