"""What options of fio may reach, refusals with their reasons, and options that contradict."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fio.runs import fio
from volbench.errors import InputError, ProfileError
from volbench.fio.jobs.job_file import ImportedJob, parse_jobfile
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.fio_options import Option, OptionKind
from volbench.model.profile.option_policy import (
    BOUNDS,
    FOREIGN_ENGINES,
    MAX_FILES,
    MAX_JOBS,
    OWN,
    PLAIN_ENGINES,
    PLAIN_TEXTS,
    RISKY,
    check_option,
)
from volbench.plan.profile.load_profile import load_profile

TABLE = shipped_table()


@pytest.mark.parametrize("name", [name for name in RISKY if TABLE.find(name)])
def test_risky_options_need_consent(name: str) -> None:
    """What runs programs or leaves the run's folder is refused without --allow-exec."""
    with pytest.raises(InputError, match="is refused") as caught:
        check_option(TABLE, name, "1")
    assert "--allow-exec" in caught.value.hint
    assert check_option(TABLE, "verify_state_save", "1")[1] == "1"  # fio's default


def test_a_log_to_replay_is_named_in_full() -> None:
    """A short name would be relative to the run's folder; fio 3.33 crashes on several logs."""
    for wrong in ("boot.log", "/traces/a:/traces/b"):
        with pytest.raises(InputError, match="not the absolute path of one log"):
            check_option(TABLE, "read_iolog", wrong)
    named = ("read_iolog", "/traces/boot.log")
    assert check_option(TABLE, *named) == named


def test_risky_options_pass_with_consent() -> None:
    """With --allow-exec the same option is only checked for its value."""
    assert check_option(TABLE, "exec_prerun", "sync", allow_exec=True) == ("exec_prerun", "sync")
    for name in ("write_iolog", "merge_blktrace_file", "donorname", "mem"):  # files that fio writes
        with pytest.raises(InputError, match="is not in the folder of the run"):
            check_option(TABLE, name, "mmap:/srv/x" if name == "mem" else "../x", allow_exec=True)
    assert check_option(TABLE, "write_iolog", "log", allow_exec=True) == ("write_iolog", "log")


@pytest.mark.parametrize("allow_exec", [False, True], ids=["refused", "allowed"])
@pytest.mark.parametrize("name", [name for name in OWN if TABLE.find(name)])
def test_options_that_volbench_sets_are_refused(name: str, *, allow_exec: bool) -> None:
    """What volbench sets itself comes with what to write instead."""
    with pytest.raises(InputError) as caught:
        check_option(TABLE, name, "1", allow_exec=allow_exec)
    assert caught.value.hint == OWN[name]


@pytest.mark.parametrize("name", ["exec", "rbd", "net", "external:/tmp/x.so"])
def test_engines_that_write_outside_the_volume_need_consent(name: str) -> None:
    """An engine that runs code or works elsewhere is refused without --allow-exec."""
    with pytest.raises(InputError, match="is refused"):
        check_option(TABLE, "ioengine", name)
    assert check_option(TABLE, "ioengine", name, allow_exec=True) == ("ioengine", name)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/b", "", "a:", "a:/b", "..", ".", "-", "a\\", "f:f"]
)
def test_file_names_stay_inside_the_volume(name: str) -> None:
    """A profile names files, never places."""
    with pytest.raises(InputError):
        check_option(TABLE, "filename", name)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        *((name, 0) for name in ("numjobs", "bs", "size", "io_size", "loops")),
        *(("filename_format", "../$jobnum"), ("mem", "mmaphuge:job.fio")),
    ],
)
def test_values_that_fio_would_trip_over_are_refused(name: str, raw: object) -> None:
    """Some values pass fio's parser and fail, or do harm, when it runs."""
    with pytest.raises(InputError):
        check_option(TABLE, name, raw)


@pytest.mark.parametrize("value", ["$clientuidprecious", "$clientuid", "a/$jobname", "..", "$x"])
def test_file_names_are_known_before_the_run(value: str) -> None:
    """A format whose names volbench can't tell beforehand could hit somebody's file."""
    with pytest.raises(InputError):
        check_option(shipped_table(), "filename_format", value)
    kept = check_option(shipped_table(), "filename_format", "f.$jobname.$jobnum.$filenum")
    assert kept == ("filename_format", "f.$jobname.$jobnum.$filenum")


def test_every_text_option_was_reviewed() -> None:
    """Each option whose value is a text is in one table: ours, risky, or plain."""
    texts = {name for name, option in TABLE.options.items() if option.kind is OptionKind.TEXT}
    assert texts <= OWN.keys() | RISKY.keys() | PLAIN_TEXTS
    assert not PLAIN_TEXTS & (OWN.keys() | RISKY.keys())
    assert all((*RISKY.values(), *OWN.values()))


@pytest.mark.parametrize("value", ["/etc/shadow", "1"])
def test_an_unknown_text_option_needs_consent(value: str) -> None:
    """A newer fio may have options that nobody has reviewed: one that takes a text is refused."""
    new = Option(name="brand_new", kind=OptionKind.TEXT, aliases=("brandnew",))
    table = replace(TABLE, options={**TABLE.options, new.name: new})
    for name in (new.name, *new.aliases):
        with pytest.raises(InputError, match="is refused") as caught:
            check_option(table, name, value)
        assert "--allow-exec" in caught.value.hint
        assert check_option(table, name, value, allow_exec=True) == (new.name, value)


def test_an_unknown_engine_needs_consent() -> None:
    """Each engine of this fio was reviewed; one that a newer fio adds is refused."""
    assert {*TABLE.engines} <= PLAIN_ENGINES | FOREIGN_ENGINES.keys()
    assert not PLAIN_ENGINES & FOREIGN_ENGINES.keys()
    table = replace(TABLE, engines=(*TABLE.engines, "brandnew"))
    with pytest.raises(InputError, match="is refused") as caught:
        check_option(table, "ioengine", "brandnew")
    assert "--allow-exec" in caught.value.hint
    assert check_option(table, "ioengine", "brandnew", allow_exec=True)[1] == "brandnew"


@pytest.mark.parametrize("name", ["buffer_pattern", "verify_pattern"])
@pytest.mark.parametrize("value", ["'/etc/shadow'", "0xff'/etc/shadow'", "'x"])
def test_patterns_that_read_a_file_are_refused(name: str, value: str) -> None:
    """Fio reads the file that a pattern names between single quotes, also behind other bytes."""
    with pytest.raises(InputError, match="is refused") as caught:
        check_option(TABLE, name, value)
    assert "--allow-exec" in caught.value.hint
    assert check_option(TABLE, name, value, allow_exec=True) == (name, value)
    assert check_option(TABLE, name, '0xdeadbeef"abc"') == (name, '0xdeadbeef"abc"')


@pytest.mark.parametrize(
    "text",
    [
        "name: x\njobs: {a: {rw: write, size: 4k, buffer_pattern: \"'/etc/shadow'\"}}\n",
        "name: x\ndefaults: {verify_pattern: \"'/etc/shadow'\"}\njobs: {a: {rw: write}}\n",
        "name: x\nmatrix: {rw: [write], size: [4k], buffer_pattern: [\"'/etc/shadow'\"]}\n",
    ],
)
def test_no_profile_copies_a_file_into_the_volume(text: str) -> None:
    """Wherever an option may stand in a profile, the pattern is refused at its line."""
    with pytest.raises(ProfileError, match="'/etc/shadow'"):
        load_profile(text, path="p.yaml", table=TABLE)


@pytest.mark.parametrize("value", ["read:/etc/passwd", "read:'x'", 'read:"x"'])
def test_parameters_of_choices_do_not_name_files(value: str) -> None:
    """Behind the colon of a choice stand numbers and words; shares such as 60/10 are no path."""
    with pytest.raises(InputError, match="is refused"):
        check_option(TABLE, "rw", value)
    zones = "zoned:60/10:30/20:8/30:2/40"
    assert check_option(TABLE, "random_distribution", zones) == ("random_distribution", zones)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value", ["99999999", "2147483647"])
@pytest.mark.parametrize("allow_exec", [False, True], ids=["plain", "allow-exec"])
def test_jobs_that_fio_cannot_run_are_refused_with_a_reason(
    name: str, value: str, *, allow_exec: bool
) -> None:
    """The maximum itself is accepted, one more is not; consent to programs changes nothing."""
    most, reason = BOUNDS[name]
    assert check_option(TABLE, name, most) == (name, str(most))
    for wrong in (value, str(most + 1)):
        with pytest.raises(InputError) as caught:
            check_option(TABLE, name, wrong, allow_exec=allow_exec)
        assert str(most) in caught.value.message
        assert reason in caught.value.message


PROFILE = "name: x\njobs: {a: {rw: read, size: 4k}, b: {rw: write, size: 4k, numjobs: 2}}\n"


@pytest.mark.parametrize(
    "settings",
    [
        ["numjobs=99999999"],
        ["a.numjobs=99999999"],
        ["nrfiles=99999999"],
        ["numjobs=4096", "nrfiles=4096"],
        ["iodepth=99999999"],
        ["verify_async=99999999"],
    ],
)
def test_huge_numbers_are_refused_before_anything_is_expanded(settings: list[str]) -> None:
    """An override that would take gigabytes to plan ends at once, with the limit."""
    with pytest.raises(InputError) as caught:
        load_profile(PROFILE, path="p.yaml", table=TABLE, settings=settings)
    assert any(str(most) in caught.value.message for most in (MAX_FILES, MAX_JOBS, 65_536))


def test_sections_share_one_limit_of_jobs() -> None:
    """Fio counts the jobs of all sections of a process."""
    text = "name: x\njobs: {a: {rw: read, size: 4k, numjobs: 3000, sections: {one: {}, two: {}}}}\n"
    with pytest.raises(ProfileError, match="6000"):
        load_profile(text, path="p.yaml", table=TABLE)
    with pytest.raises(InputError, match="has 8193 sections"):
        imported("".join(f"[j{number}]\n" for number in range(8193)))


def test_fio_refuses_one_job_more(tmp_path: Path) -> None:
    """The limit of jobs is fio's own."""
    (tmp_path / "x.fio").write_text(
        f"[j]\nioengine=null\nsize=4k\nthread=1\nnumjobs={MAX_JOBS + 1}\n"
    )
    done: subprocess.CompletedProcess[str] = fio("x.fio", cwd=tmp_path)
    assert done.returncode != 0
    assert "maximum number of jobs" in done.stdout + done.stderr


CRASHING = "ioengine=libaio rate_iops=200 fsync=3 rate_process=poisson"


def imported(text: str) -> ImportedJob:
    """Import a job file."""
    return parse_jobfile(text, path="x.fio", table=shipped_table())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[j]\nrw=read\nsize=1m\nbs=2m\n", 4),
        ("[j]\nrw=read\nsize=1k\n", 3),
        ("[j]\nsize=1m\nrw=write\nrate=1m\nrate_iops=10\n", 5),
        ("[global]\nbs=8m\niodepth_low=8\n[j]\nrw=read\nsize=1m\niodepth=4\n", 2),
        ("[j]\nrw=write\nsize=1m\ndirect=1\nbs=1000\n", 5),
        (f"[j]\nrw=randwrite\nsize=1m\n{CRASHING.replace(' ', chr(10))}\n", 7),
    ],
)
def test_contradictions_are_reported_with_their_line(text: str, line: int) -> None:
    """What fio parses but can't run is named where it stands in the job file."""
    with pytest.raises(ProfileError) as caught:
        imported(text)
    assert [problem.line for problem in caught.value.problems] == [line]


def test_fio_crashes_on_random_arrivals_with_flushes(tmp_path: Path) -> None:
    """A refusal of what a later fio can do would be wrong: then this fails."""
    words = ["--name=j", "--rw=randwrite", "--size=1m", "--runtime=2s", "--time_based"]
    done = fio(*words, *(f"--{option}" for option in CRASHING.split()), cwd=tmp_path)
    assert done.returncode not in {0, 1}


def test_time_based_without_runtime_is_left_out() -> None:
    """Fio ignores it, so the profile does without and says so."""
    found = imported("[j]\nrw=read\nsize=1m\ntime_based\n")
    assert "time_based" not in found.profile.jobs[0].options
    assert found.notices == ("x.fio:4: time_based without runtime does nothing",)


def test_jobs_with_similar_section_names_are_not_confused() -> None:
    """A job made of sections a and b is not mixed up with a section a_b."""
    jobs = ("[a]\nrw=read\nsize=1m\n", "[b]\nrw=read\nsize=1m\n")
    alone = "[a_b]\nstonewall\nrw=read\nsize=1m\n"
    names = [job.name for job in imported("".join(jobs) + alone).profile.jobs]
    assert names == ["a_b_2", "a_b"]
    long = "".join(f"[{'x' * 60}{n}]\nstonewall={n % 2}\nrw=read\nsize=1m\n" for n in (1, 2, 3, 4))
    assert len({job.name for job in imported(long).profile.jobs}) == 2
