"""Options that can't work together: told with their line, and truly refused by fio."""

from pathlib import Path

import pytest

from tests.fio.runs import fio
from volbench.errors import ProfileError
from volbench.fio.jobs.job_file import ImportedJob, parse_jobfile
from volbench.fio.jobs.option_table import shipped_table

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
        ("[global]\niodepth_low=8\n[j]\nrw=read\nsize=1m\nioengine=libaio\niodepth=4\n", 2),
        ("[j]\nrw=write\nsize=1m\ndirect=1\nbs=1000\n", 5),
        (f"[j]\nrw=randwrite\nsize=1m\n{CRASHING.replace(' ', chr(10))}\n", 7),
    ],
)
def test_contradictions_are_reported_with_their_line(text: str, line: int) -> None:
    """What fio parses but can't run is named where it stands in the job file."""
    with pytest.raises(ProfileError) as caught:
        imported(text)
    assert [problem.line for problem in caught.value.problems] == [line]


def test_fio_fails_where_rates_contradict(tmp_path: Path) -> None:
    """The contradiction is fio's own, found by it only at run time."""
    (tmp_path / "x.fio").write_text("[j]\nioengine=null\nsize=1m\nrate=1m\nrate_iops=10\n")
    assert fio("--parse-only", "x.fio", cwd=tmp_path).returncode == 0
    assert fio("x.fio", cwd=tmp_path).returncode == 1


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


def test_standard_output_is_not_accepted_as_a_file() -> None:
    """Fio takes the file name - as standard input or output."""
    with pytest.raises(ProfileError, match=r"x\.fio:4.*called"):
        imported("[j]\nrw=read\nsize=1m\nfilename=-\n")


def test_jobs_with_similar_section_names_are_not_confused() -> None:
    """A job made of sections a and b is not mixed up with a section a_b."""
    jobs = ("[a]\nrw=read\nsize=1m\n", "[b]\nrw=read\nsize=1m\n")
    alone = "[a_b]\nstonewall\nrw=read\nsize=1m\n"
    names = [job.name for job in imported("".join(jobs) + alone).profile.jobs]
    assert names == ["a_b_2", "a_b"]
    long = "".join(f"[{'x' * 60}{n}]\nstonewall={n % 2}\nrw=read\nsize=1m\n" for n in (1, 2, 3, 4))
    assert len({job.name for job in imported(long).profile.jobs}) == 2
