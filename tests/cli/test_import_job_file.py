"""`volbench profile import`, called as a user calls it."""

from pathlib import Path

import pytest

from tests.command_line import Volbench

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
