"""Small files of a campaign folder: a path in, text or a model out; nothing when it is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from volbench.errors import OutputError
from volbench.model.base import Frozen

Model = TypeVar("Model", bound=Frozen)


def read_text(path: Path) -> str:
    """Return what a file holds; "" when it is missing. Bytes that are not UTF-8 are replaced.

    Raises:
        OutputError: it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error}", hint="check permissions") from error


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return what a JSON file holds; None when it is missing or empty.

    Raises:
        OutputError: it cannot be read, or is damaged.
    """
    text = read_text(path)
    try:
        return model.model_validate_json(text) if text else None
    except ValueError as error:
        raise OutputError(f"{path} is damaged: {error}", hint="restore a copy") from error
