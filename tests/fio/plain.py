"""Plain fio for tests: job files in, what fio did out."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

FIO = ("fio", "--clocksource=clock_gettime")
"""Without a clock of its own fio compares the clocks of all CPUs first: 60 ms of CPU each."""


def fio_jobs(folder: Path, text: str) -> list[dict[str, object]]:
    """Run a job file in a folder and return the entries of fio's report.

    Args:
        folder: becomes the working directory.
        text: of the job file.
    """
    (folder / "job.fio").write_bytes(text.encode())
    done = subprocess.run(
        [*FIO, "--output-format=json", "job.fio"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    (folder / "job.fio").unlink()
    _, brace, rest = ("\n" + done.stdout).partition("\n{\n")
    jobs: list[dict[str, object]] = json.loads(brace + rest)["jobs"]
    return jobs


def amount(job: dict[str, object], field: str) -> int:
    """Return the sum of a number over the directions of one entry."""
    total = 0
    for direction in ("read", "write", "trim"):
        values = job[direction]
        assert isinstance(values, dict)
        total += int(values[field])
    return total


def shown_options(folder: Path, text: str) -> list[list[tuple[str, str | None]]]:
    """Return name and value of all options of each section, as ``fio --showcmd`` tells them."""
    path = folder / "shown.fio"
    blocks = re.split(r"^[ \t]*(?=\[)", text, flags=re.MULTILINE)
    found = []
    for number, block in enumerate(blocks):
        name = block.partition("]")[0].removeprefix("[")
        if block.startswith("[") and not name.startswith("global"):
            # Cut behind the section, for fio also shows the globals that follow it.
            path.write_bytes("".join(blocks[: number + 1]).encode())
            argv = [*FIO, "--showcmd", f"--section={name}", str(path)]
            line = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
            shared, *own = re.split(r" --name=", line.removeprefix("fio"))
            found.append(_pairs(shared) + _pairs(own[-1]))
    path.unlink()
    return found


def _pairs(line: str) -> list[tuple[str, str | None]]:
    pairs = []
    for word in re.split(r"(?:^|\s)--", line)[1:]:
        name, sign, value = word.partition("=")
        pairs.append((name, value.rstrip() if sign else None))
    return pairs


@dataclass
class ParsedJob:
    """A job as fio reads it."""

    name: str
    # option to its value: what fio says it has read, else its text; all texts of filename
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)


def parsed_jobs(*arguments: str, folder: Path) -> list[ParsedJob] | None:
    """Return the jobs that fio finds in a command line or a job file; None if it refuses them."""
    done = subprocess.run(
        [*FIO, "--parse-only", "--debug=parse", *arguments],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        return None
    jobs: list[ParsedJob] = []
    shared = job = ParsedJob("global")
    name = ""
    for line in done.stdout.splitlines():
        if section := re.search(r"Parsing section \[(.*)\]|handle_option=name, ptr=(.*)", line):
            title = section[1] or section[2]
            if title.startswith("global"):
                job = shared
            else:
                job = ParsedJob(title, dict(shared.options))
                jobs.append(job)
            name = ""
        elif line.endswith("free options") and name != "ioengine":  # else those of the engine
            job = shared
        elif found := re.search(r" handle_option=([\w-]+), ptr=(.*)", line):
            name, text = found.groups()
            before = job.options.get(name, ()) if name == "filename" else ()
            job.options[name] = (*before, text)
            for pair in ({"direct", "buffered"}, {"rwmixread", "rwmixwrite"}):
                for rival in pair - {name} if name in pair else ():
                    job.options.pop(rival, None)
        elif name and (out := re.search(r"  ret=0, out=(.*)", line)):
            before = job.options[name] if job.options[name][0].startswith("=") else ()
            job.options[name] = (*before, f"={out[1]}")
    return jobs
