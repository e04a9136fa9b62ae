"""What README.md tells people to type works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FENCE = re.compile(
    r"(<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>sh|python)\n(?P<code>.*?)```", re.DOTALL
)
SMALL = " --set size=4m --set runtime=300ms"


def blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of one kind that are not marked as left out."""
    found = [m for m in FENCE.finditer(text) if m["kind"] == kind]
    return [m["code"] for m in found if not m["why"]]


def shrink(code: str, folder: Path) -> str:
    """Return commands with small sizes, on folders of their own."""
    one_cpu = " --set cpus_allowed=0" if os.cpu_count() == 1 else ""
    code = re.sub(r"^(volbench run .*)$", rf"\1{SMALL}{one_cpu}", code, flags=re.MULTILINE)
    code = re.sub(
        r"^(volbench measure.*)$",
        r"\1 --size 4m --runtime 1s --repeat 1",
        code,
        flags=re.MULTILINE,
    )
    return code.replace("=$HOME", f"={folder}/os")


@pytest.fixture
def readme(root: Path) -> str:
    """Return the text of README.md."""
    return (root / "README.md").read_text(encoding="utf-8")


def test_every_command_runs(readme: str, tmp_path: Path) -> None:
    """The shell blocks run one after another in one folder, then the Python blocks."""
    (tmp_path / "os").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = "\n".join(shrink(code, tmp_path) for code in blocks(readme, "sh"))
    python = "\n".join(blocks(readme, "python"))
    assert "volbench run" in shell
    assert "open_campaign" in python
    for command in (["bash", "-euo", "pipefail", "-c", shell], [sys.executable, "-c", python]):
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_verb_of_the_readme_is_run_or_excused(readme: str) -> None:
    """Each fenced command is either run above or says why not; console blocks hide nothing."""
    assert "```console" not in readme
    assert "```bash" not in readme


def test_marked_blocks_are_left_out() -> None:
    """The extraction keeps plain blocks and drops the marked ones."""
    text = "```sh\na\n```\n<!-- not run: slow -->\n```sh\nb\n```\n```python\nc\n```\n"
    assert blocks(text, "sh") == ["a\n"]
    assert blocks(text, "python") == ["c\n"]
