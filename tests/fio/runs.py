"""Runs to render, and fio itself, for the tests of this package and of what stands on it."""

import os
import subprocess
from pathlib import Path

from tests.fio.plain import FIO
from tests.planned import planned_run
from volbench.fio.jobs.render_job import render
from volbench.fio.results.json_output import parse_output
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.results.result import RunOutput

Options = dict[str, str]


def run_on(
    target: str | Path,
    kind: VolumeKind = VolumeKind.DIRECTORY,
    *sections: Section,
    options: Options | None = None,
    sample_s: float = 1.0,
) -> Run:
    """Return a run of sections on a volume; without sections, one called ``j``."""
    volume = Volume(role="data", kind=kind, target=str(target))
    return planned_run(volume, *sections, seed=42, options=options or {}, sample_s=sample_s)


def section(name: str = "j", /, **options: str | int) -> Section:
    """Return a section with options."""
    return Section(name=name, options={key: str(value) for key, value in options.items()})


def fio(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed fio to its end."""
    return subprocess.run(
        [*FIO, *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": str(cwd)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def accepted(text: str, folder: Path) -> str:
    """Return what fio says against a job file; empty when it takes it."""
    job_file = folder / "parse.fio"
    job_file.write_text(text, encoding="utf-8")
    done = fio("--parse-only", job_file, cwd=folder)
    return done.stdout + done.stderr if done.returncode else ""


def really_run(run: Run, folder: Path, *, measuring: bool = True) -> RunOutput:
    """Run fio on the rendered job file and return what it reported; it must succeed."""
    (folder / "job.fio").write_text(render(run, measuring=measuring), encoding="utf-8")
    done = fio("--output-format=json+", "--output=out.json", "job.fio", cwd=folder)
    text = (folder / "out.json").read_text()
    assert done.returncode == 0, done.stderr + text[:2000]
    return parse_output(text)
