"""Commands of the tutorial, run as they stand there, those of the simulated volumes included."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.held_fio import HeldFio
from tests.waiting import Started, until

pytestmark = pytest.mark.slow

_FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^\n]+?) -->\n)?```(?P<kind>sh|python)\n(?P<code>.*?)```", re.DOTALL
)
_STOPPED, _REFUSED = "stopped by Ctrl-C", "ends with exit code 3"
_BESIDE, _OF_LAB = "runs in a second terminal", "the address is that of the lab"
_MARKS = {None, _STOPPED, _REFUSED, _BESIDE, _OF_LAB}


@dataclass(frozen=True)
class Block:
    """A block of commands, with the comment above it."""

    mark: str | None
    kind: str
    code: str


@pytest.fixture(scope="module")
def blocks(root: Path) -> list[Block]:
    """Return the blocks of the tutorial in order."""
    text = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    return [Block(found["mark"], found["kind"], found["code"]) for found in _FENCE.finditer(text)]


def test_every_mark_is_known(blocks: list[Block]) -> None:
    """No block is left out by a comment that the next test does not know."""
    assert {block.mark for block in blocks} == _MARKS


def test_the_tutorial_runs(root: Path, blocks: list[Block], tmp_path: Path) -> None:
    """The blocks run in one folder, those of the lab beside the others, and print the example."""
    program = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": program, "TMPDIR": str(tmp_path)}
    lab = [block for block in blocks if block.mark in {_BESIDE, _OF_LAB}]
    with ThreadPoolExecutor() as beside:
        simulated = [
            beside.submit(_run_in_lab, served, used, tmp_path, environment)
            for served, used in zip(lab[::2], lab[1::2], strict=True)
        ]
        for block in blocks:
            if block.mark in {None, _STOPPED, _REFUSED}:
                _run(block, tmp_path, environment)
        for volume in simulated:
            volume.result()
    iops = {
        name: volbench.open_campaign(tmp_path / name).summary().set_index("job")["iops"]
        for name in ("first", "second", "p15")
    }
    assert len(iops["second"]) == len(iops["first"])
    assert 0 < iops["p15"]["randwrite-qd1"] < 1.1 * 400  # less on a busy machine
    assert not (tmp_path / "third").exists()
    page = (root / "docs/tutorial.md").read_text().partition("Run it")[2]
    example = page.partition("```text\n")[2].partition("```")[0]
    assert _forms(example) <= {*_forms(call("show", tmp_path / "first").stdout), "..."}


def _forms(text: str) -> set[str]:
    """Return the lines of results without numbers, folders, remarks and patterns, mixed or not."""
    mixed = r", p99 [^(]*?(?= \()|, reads and writes together"
    plain = r"\S*/data|(rand)?(read|write|rw)s?\b|─|\d warnings?|invalid|remarks"
    text = re.sub(f"{mixed}|{plain}", "", text)
    numbers = re.compile(r"\d[\d.]* ?(?:[kM]\b ?)?(?:[kMG]B/s|[mu]?s\b)?")
    return {" ".join(numbers.sub("#", line).split()) for line in text.splitlines()}


def test_the_page_of_comparisons_runs(root: Path, tmp_path: Path) -> None:
    """It measures two folders, and compares them and two campaigns, in Python, too."""
    text = (root / "docs/how-to/compare-results.md").read_text(encoding="utf-8")
    program = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for found in _FENCE.finditer(text):
        _run(Block(None, found["kind"], found["code"]), tmp_path, os.environ | {"PATH": program})
    assert (tmp_path / "ratios.svg").exists()


def test_pages_for_strangers_are_short(root: Path) -> None:
    """Each of the three that carry a stranger is read in three minutes."""
    for page in ("tutorial", "how-to/compare-results", "how-to/measure-many-machines"):
        assert len((root / f"docs/{page}.md").read_text(encoding="utf-8").split()) < 600


def _run(block: Block, folder: Path, environment: dict[str, str], *, uri: str = "") -> None:
    code = re.sub(r"^URI='.*'$", f"URI='{uri}'", block.code, flags=re.MULTILINE)
    argv = ["bash", "-euo", "pipefail", "-c", code]
    if block.mark == _STOPPED:
        held = HeldFio(folder, "^rw=randread")
        environment = environment | {"PATH": f"{held.folder}:{environment['PATH']}"}
    if block.kind == "python":
        argv = [sys.executable, "-c", code]
    with Started(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        if block.mark == _STOPPED:
            statuses = folder / "second" / "runs"
            until(lambda: any(statuses.glob("*/status.json")), patience_s=120)
            os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    expected = {_STOPPED: 130, _REFUSED: 3}.get(block.mark or "", 0)
    assert process.returncode == expected, block.code + output


def _run_in_lab(served: Block, used: Block, folder: Path, environment: dict[str, str]) -> None:
    with _served(served, folder, environment) as uri:
        _run(used, folder, environment | {"URI": uri}, uri=uri)


@contextmanager
def _served(block: Block, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    with Started(
        ["bash", "-c", f"exec {block.code}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as lab:
        try:
            assert lab.stdout is not None
            uri = lab.stdout.readline().strip()
            assert uri.startswith("nbd+unix://")
            yield uri
        finally:
            lab.send_signal(signal.SIGINT)
    assert lab.returncode == 0
