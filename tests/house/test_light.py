"""Starting volbench is quick because it leaves the heavy libraries alone until they are needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "jinja2",
    "kubernetes",
    "matplotlib",
    "numpy",
    "pandas",
    "paramiko",
    "pyarrow",
    "pydantic",
    "rich",
    "ruamel.yaml",
}
HELP = """
from volbench.cli.main import cli
cli.main({arguments}, standalone_mode=False)
"""


def heavy_after(code: str) -> set[str]:
    """Return the heavy libraries that a new interpreter holds after running some code."""
    tail = "\nimport sys, json\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], check=True, capture_output=True, text=True
    )
    return HEAVY & set(json.loads(done.stderr.splitlines()[-1]))


def test_import_is_light() -> None:
    """``import volbench`` imports no heavy library."""
    assert heavy_after("import volbench") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_is_light(arguments: list[str]) -> None:
    """Asking for help imports no heavy library."""
    assert heavy_after(HELP.format(arguments=arguments)) == set()


def test_a_heavy_import_is_found() -> None:
    """The check sees a library that really was imported."""
    assert "numpy" in heavy_after("import numpy")
