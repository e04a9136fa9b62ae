"""Seams of the core: what a slice offers is named by text and imported when it is used."""

from __future__ import annotations

from importlib import import_module
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
    try:
        imported = import_module(f"volbench.{module}")
    except ModuleNotFoundError as error:
        folder = f"volbench.{module.partition('.')[0]}"
        if error.name != folder:
            raise
        raise InputError(
            f"this installation lacks the package {folder}",
            hint="install volbench again, with all of its packages",
        ) from error
    return getattr(imported, name or default)
