"""Access to optional parts: slices, imported when they are used, and the packages of extras."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from volbench.errors import InputError


def load(reference: str, *, default: str = "") -> Any:  # noqa: ANN401 - whatever is named
    """Return what ``module:name`` names, the module below `volbench`.

    Args:
        default: name where the reference has none.

    Raises:
        InputError: the folder of a slice is absent.
    """
    module, _, name = reference.partition(":")
    if not is_present(reference):
        raise InputError(
            f"this installation lacks the package volbench.{_package(module)}",
            hint="install volbench again, with all of its packages",
        )
    return getattr(import_module(f"volbench.{module}"), name or default)


def is_present(reference: str) -> bool:
    """Return whether the folder that a reference names is installed."""
    try:
        return find_spec(f"volbench.{_package(reference)}") is not None
    except ModuleNotFoundError:  # there are no extensions at all
        return False


def _package(reference: str) -> str:
    """Return the package or the extension of a reference."""
    parts = reference.partition(":")[0].split(".")
    return ".".join(parts[:2] if parts[0] == "extensions" else parts[:1])


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
