"""Readers of small text and JSON files of a campaign folder, which may be missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from volbench.errors import OutputError
from volbench.model.base import Frozen

Model = TypeVar("Model", bound=Frozen)

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_json(content: bytes) -> object:
    """Parse JSON of a stored file."""
    try:
        value: object = json.loads(content.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE.search(content):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it contains lone surrogates, which are not text") from None
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def first_error(error: ValidationError) -> str:
    """Return the first error of a model in one line, with the key."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def read_text(path: Path) -> str:
    """Return the text of a file; "" if missing. Invalid UTF-8 is replaced."""
    return read_bytes(path).decode("utf-8", errors="replace")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; b"" if missing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise OutputError(
            f"{path} cannot be read: {error.strerror or error}",
            hint="check permissions",
            path=str(path),
        ) from error


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return the model in a JSON file; None if missing."""
    content = read_bytes(path)
    if not content and not path.exists():
        return None
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise damaged_file(path, first_error(error)) from error


def damaged_file(path: Path, reason: object) -> OutputError:
    """Return the error of a file whose content is not what volbench wrote."""
    return OutputError(
        f"{path} is damaged: {reason}",
        hint="restore it from a backup",
        path=str(path),
    )
