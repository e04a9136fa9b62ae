"""Commands and Python of README.md work as they stand there."""

import os
import re
import shlex
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest

from tests.command_line import call

FENCE = re.compile(
    r"(<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>sh|python)\n(?P<code>.*?)```", re.DOTALL
)
SMALL = {"run": "--set size=4m --set runtime=300ms", "measure": "--size 4m --runtime 1s --repeat 1"}
MAX_LINES = 150


def blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of one kind that are not marked as left out."""
    found = [m for m in FENCE.finditer(text) if m["kind"] == kind]
    return [m["code"] for m in found if not m["why"]]


def run_line(line: str, folder: Path) -> None:
    """Run a line of a shell block: volbench in this process, small, and anything else by bash."""
    if not line.startswith("volbench "):
        subprocess.run(["bash", "-euc", line], check=True, cwd=folder)
        return
    _, *words = shlex.split(line.replace("=$HOME", f"={folder}/os"), comments=True)
    words, into = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
    small = SMALL.get(words[0], "").split()
    one_cpu = ["--set", "cpus_allowed=0"] if words[0] == "run" and os.cpu_count() == 1 else []
    done = call(*words, *small, *one_cpu, cwd=folder)
    assert done.returncode == 0, line + done.stdout + done.stderr
    if into:
        (folder / into).write_text(done.stdout, encoding="utf-8")


@pytest.fixture
def readme(root: Path) -> str:
    """Return the text of README.md."""
    return (root / "README.md").read_text(encoding="utf-8")


def test_every_command_runs(readme: str, tmp_path: Path) -> None:
    """The shell blocks run one after another in one folder, then the Python blocks."""
    (tmp_path / "os").mkdir()
    lines = "".join(blocks(readme, "sh")).splitlines()
    python = "\n".join(blocks(readme, "python"))
    assert any(line.startswith("volbench run") for line in lines)
    assert "open_campaign" in python
    for line in lines:
        run_line(line, tmp_path)
    with chdir(tmp_path):
        exec(compile(python, "README.md", "exec"), {})  # noqa: S102 - what readers paste


def test_the_readme_is_short_and_hides_no_command(readme: str) -> None:
    """Each fenced command is either run above or says why not, and the page can be read at once."""
    assert "```console" not in readme
    assert "```bash" not in readme
    assert len(readme.splitlines()) <= MAX_LINES


def test_marked_blocks_are_left_out() -> None:
    """The extraction keeps plain blocks and drops the marked ones."""
    text = "```sh\na\n```\n<!-- not run: slow -->\n```sh\nb\n```\n```python\nc\n```\n"
    assert blocks(text, "sh") == ["a\n"]
    assert blocks(text, "python") == ["c\n"]
