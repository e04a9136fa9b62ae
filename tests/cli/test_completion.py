"""Completion in real shells, by the lines that the documentation shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "shell.md"
ASK = {
    "bash": "{line}\nCOMP_WORDS=(volbench {typed}) COMP_CWORD={place}\n"
    '_volbench_completion volbench\nprintf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "autoload -Uz compinit\ncompinit -u -D\n_path_files() {{ : }}\n"
    "compadd() {{ print -rl -- ${{(P)@[-1]}} }}\n"
    '_describe() {{ print -rl -- "${{(@P)3}}" }}\n{line}\n'
    "words=(volbench {typed}) CURRENT={place}+1\n_volbench_completion",
    "fish": "{line}\ncomplete -C 'volbench {typed}'",
}
"""Shell to a script that completes what was typed, and prints the candidates."""


def documented(shell: str) -> str:
    """Return the line of the page for a shell."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^\| {shell}\b[^|]*\| `(.*?)` \|", page, re.MULTILINE)
    assert found is not None
    return found[1].replace("\\|", "|")


CASES = [
    ("meas", "measure", "run"),
    ("run --wip", "--wipe", "--on"),
    ("run iodepth", "iodepth-sweep", "quick"),
    ("plot hist", "histogram", "iops"),
    ("lab show p1", "p15", "cold"),
    ("check --rule page", "page-cache", "stall"),
    ("audit --type azure/P1", "azure/P15", "aws/"),
    ("price --prices kama", "kamatera-azure", "azure"),
]


@pytest.mark.parametrize(
    ("shell", "typed", "candidate", "other"),
    [(shell, *case) for shell in ASK for case in (CASES if shell == "bash" else CASES[1:2])],
)
def test_each_shell_completes(
    shell: str, typed: str, candidate: str, other: str, tmp_path: Path
) -> None:
    """Verbs, values and options that begin with what was typed are offered, and no others."""
    program = shutil.which(shell)
    assert program is not None, f"{shell} is missing: run scripts/setup dev"
    script = ASK[shell].format(line=documented(shell), typed=typed, place=len(typed.split()))
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [program, *flags, "-c", script],
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    offered = done.stdout.split()
    assert any(word.startswith(candidate) for word in offered), done.stdout + done.stderr
    assert not any(word.startswith(other) for word in offered)
