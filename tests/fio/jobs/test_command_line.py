"""Commands of fio are planned as fio itself reads them, or refused with what to write."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.fio.commands import TABLE, differences, imported, planned, runs
from tests.fio.plain import parsed_jobs
from volbench.errors import InputError
from volbench.fio.jobs.command_line import as_command, is_command, parse_command
from volbench.fio.jobs.job_file import parse_jobfile
from volbench.fio.jobs.render_job import render

COMMANDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "commands.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["source"])
def test_commands_of_manuals_and_issues_are_planned_as_fio_reads_them(
    case: dict[str, Any], tmp_path: Path
) -> None:
    """Jobs, options, volumes and files are those of fio; what is left out or refused is said."""
    assert is_command(case["command"])
    if refused := case.get("refused"):
        with pytest.raises(InputError) as caught:
            imported(case["command"])
        assert refused in f"{caught.value.message} {caught.value.hint}"
        return
    parsed, job = imported(case["command"])
    assert list(job.profile.volumes.values()) == case["volumes"]
    options = [*job.profile.defaults.items(), *job.profile.jobs[0].options.items()]
    assert dict(options).get("filename", "") == case.get("files", "")
    assert parsed.left_out == case.get("left_out", [])
    words = shlex.split(re.sub(r"\\ *\n", " ", case["command"]))
    start = next(number for number, word in enumerate(words) if Path(word).name == "fio")
    end = next((n for n, word in enumerate(words) if word[0] in "#&>|2" and n), len(words))
    assert differences(words[start + 1 : end], job.profile, tmp_path) == []


@pytest.mark.parametrize("case", COMMANDS[:12], ids=lambda case: case["source"])
def test_a_job_file_as_a_command_is_the_same_to_fio(case: dict[str, Any], tmp_path: Path) -> None:
    """What is planned of a command, written as a command again, has the same jobs."""
    _, job = imported(case["command"])
    (run,) = runs(job.profile, tmp_path)
    again = as_command(render(run, measuring=False))
    assert parsed_jobs(*shlex.split(again)[1:], folder=tmp_path) == planned(job.profile, tmp_path)


def test_json_is_written_where_a_command_wants_it() -> None:
    """Without the format it would be a text for people, which is left out."""
    json_too = imported("fio --output=x --output-format=normal,json --name=a --size=1m")[0]
    assert (json_too.output, json_too.left_out) == ("x", [])
    assert imported("fio --output=x --name=a --size=1m")[0].left_out == ["--output"]


def test_jobs_in_several_directories_are_those_of_fio() -> None:
    """Jobs go to the directories one after the other: three to /a, two to /b."""
    _, job = imported("fio --name=x --directory=/a:/b --numjobs=5 --size=1m --rw=read --stonewall")
    (both,) = job.profile.jobs
    assert job.profile.volumes == {"data": "/a/", "data2": "/b/"}
    assert (both.role, both.roles) == ("data", {"x-2": "data2"})
    assert [each["numjobs"] for each in both.sections.values()] == ["3", "2"]
    assert job.notices == ()


def test_another_volume_replaces_all_volumes_of_a_command() -> None:
    """A volume of --on, however many the command names."""
    two = "--filename=/dev/a --name=b --filename=/dev/b", "--directory=/a:/b --numjobs=2"
    for places in (*two, "--filename=/mnt/a/x:/mnt/b/y", "--filename=/dev/a:/dev/b"):
        command = parse_command(f"fio --size=1m --rw=read --name=a {places}", TABLE)
        command.is_placed = True
        job = parse_jobfile("", path="j.fio", table=TABLE, command=command)
        assert job.profile.volumes == {"data": "."}
        assert "are replaced by one volume, which carries the load of all" in job.notices[-1]
