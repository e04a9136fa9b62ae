"""Readers of small text and JSON files of a campaign folder, which may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from volbench.errors import OutputError
from volbench.model.base import Frozen

Model = TypeVar("Model", bound=Frozen)


def read_text(path: Path) -> str:
    """Return the text of a file; "" if missing. Invalid UTF-8 is replaced.

    Raises:
        OutputError: the file cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error}", hint="check permissions") from error


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return the model in a JSON file; None if missing or empty.

    Raises:
        OutputError: the file cannot be read, or is damaged.
    """
    text = read_text(path)
    try:
        return model.model_validate_json(text) if text else None
    except ValueError as error:
        raise OutputError(f"{path} is damaged: {error}", hint="restore it from a backup") from error
