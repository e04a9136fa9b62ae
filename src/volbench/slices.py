"""Seams of the core: what a slice offers is named by text and imported when it is used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
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
            f"this installation lacks the package volbench.{module.partition('.')[0]}",
            hint="install volbench again, with all of its packages",
        )
    return getattr(import_module(f"volbench.{module}"), name or default)


def is_present(reference: str) -> bool:
    """Return whether the folder that a reference names is installed."""
    return find_spec(f"volbench.{reference.partition('.')[0]}") is not None
