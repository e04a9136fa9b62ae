"""Plain fio for tests: job files in, what fio did out."""

import json
import re
import subprocess
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
        timeout=60,
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
