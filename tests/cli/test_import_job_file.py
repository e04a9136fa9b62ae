"""`volbench profile import`, called as a user calls it."""

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench, call

JOB_FILES = Path(__file__).parents[1] / "fio" / "jobs" / "jobfiles"


@pytest.mark.parametrize("name", ["globals", "order"])
def test_an_imported_job_file_is_a_valid_profile(
    name: str, volbench: Volbench, tmp_path: Path
) -> None:
    """The YAML on standard output is accepted by `profile check`."""
    done = volbench("profile", "import", JOB_FILES / f"{name}.fio")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("note: ") for line in done.stderr.splitlines())
    (tmp_path / "p.yaml").write_text(done.stdout)
    checked = volbench("profile", "check", "p.yaml")
    assert checked.returncode == 0, checked.stderr


def test_notices_go_to_standard_error(volbench: Volbench, tmp_path: Path) -> None:
    """What fio reads in a surprising way is told beside the profile, with its line."""
    (tmp_path / "x.fio").write_text("[j]\nrw=read\nsize=1m\nruntime=1min\n")
    done = volbench("profile", "import", "x.fio")
    assert done.returncode == 0
    assert "x.fio:4: " in done.stderr
    assert "x.fio:4" not in done.stdout


def test_a_folder_that_is_not_there_stays_a_folder(tmp_path: Path, volbench: Volbench) -> None:
    """The file's name is kept when the imported profile is rendered on another machine."""
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=write\nsize=1m\nfilename=/not/here/data-file\n")
    profile = tmp_path / "job.yaml"
    assert volbench("profile", "import", job, "--output", profile).returncode == 0
    done = volbench("profile", "render", profile, "--output", tmp_path / "jobs")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "jobs" / "a.fio").read_text()
    assert "directory=/not/here\n" in text
    assert "filename=data-file\n" in text


def test_a_job_file_runs_as_it_is(tmp_path: Path) -> None:
    """`volbench run` plans the sections of a job file, and names a file that is not there."""
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=read\nsize=1m\n[b]\nstonewall\nrw=write\nsize=1m\nbs=8k\n")
    planned = call("run", job, "--on", tmp_path, "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    assert [run["job"] for run in json.loads(planned.stdout)] == ["a", "b"]
    missing = call("run", tmp_path / "no.fio", "--on", tmp_path)
    assert missing.returncode == 2
    assert "no.fio: No such file or directory" in missing.stderr
