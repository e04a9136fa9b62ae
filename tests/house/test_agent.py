"""The agent runs on hosts: it needs the standard library of Python 3.6 and nothing else."""

import ast
import sys
from pathlib import Path

from tests.house.project import run

AGENT = "volbench.execute.agent"


def test_the_agent_runs_on_python_3_6(root: Path) -> None:
    """No module of the agent uses syntax or a function that is newer than Python 3.6."""
    folder = root / "src" / "volbench" / "execute" / "agent"
    vermin = Path(sys.executable).with_name("vermin")
    done = run(vermin, "--target=3.6-", "--violations", folder)
    assert list(folder.glob("*.py"))
    assert done.returncode == 0, done.stdout


def test_the_agent_imports_the_standard_library_only(sources: dict[str, ast.Module]) -> None:
    """The program that is sent to a host finds every module that it imports there."""
    outside = []
    for name, tree in sources.items():
        if not name.startswith(f"{AGENT}."):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                outside += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(AGENT):
                outside.append(str(node.module))
    assert {each.partition(".")[0] for each in outside} - sys.stdlib_module_names == set()
