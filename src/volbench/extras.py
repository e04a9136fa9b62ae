"""Packages of the extras of volbench, such as ``volbench[metrics]``."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that adds the packages of an extra to this installation."""
    try:
        requirements = metadata.requires("volbench") or []
    except metadata.PackageNotFoundError:  # a copy of the sources that was never installed
        requirements = []
    needs = re.compile(rf"(.+?) *; *extra *== *['\"]{extra}['\"]")
    packages = [match[1] for text in requirements if (match := needs.fullmatch(text))]
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        command = ["pipx", "inject", "volbench"]
    elif find_spec("pip") is None:  # an environment that uv made
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        command = [sys.executable, "-m", "pip", "install"]
    return shlex.join([*command, *(packages or [f"volbench[{extra}]"])])
