"""Bundled profiles and profile files: names, index and text."""

from __future__ import annotations

import json
from pathlib import Path

from volbench.errors import InputError, did_you_mean

_SUFFIXES = (".yaml", ".yml")
_SIZE_LIMIT = 1 << 20


def bundled_folder(name: str) -> Path:
    """Return where bundled files are: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / name
    return installed if installed.is_dir() else package.parents[1] / name


def _folder() -> Path:
    return bundled_folder("profiles")


def profile_names() -> tuple[str, ...]:
    """Return the names of the bundled profiles, sorted."""
    entries = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in entries if name.endswith(".yaml")))


def profile_index() -> list[dict[str, object]]:
    """Return name, number of jobs and description of each bundled profile.

    They are kept in a file of their own, so that a list needs no YAML parser.
    """
    index: list[dict[str, object]] = json.loads((_folder() / "index.json").read_text("utf-8"))
    return index


def read_profile(name_or_path: str) -> tuple[str, str]:
    """Return text and displayed path of a profile: a bundled one by name, or a file.

    Raises:
        InputError: there is neither.
    """
    names = profile_names()
    if name_or_path in names:
        return (_folder() / f"{name_or_path}.yaml").read_text("utf-8"), f"{name_or_path}.yaml"
    path = Path(name_or_path)
    try:
        if not path.is_file():
            raise _unknown(name_or_path, names)
        if path.stat().st_size > _SIZE_LIMIT:
            raise InputError(f"{path} is larger than 1 MiB", hint="a profile is a short text")
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} can't be read: {_reason(error)}",
            hint="a profile is a YAML file in UTF-8",
            context={"path": str(path)},
        ) from error


def _unknown(name: str, names: tuple[str, ...]) -> InputError:

    return InputError(
        f"there is no profile {name!r}, neither bundled nor a file",
        hint=did_you_mean(name, names, f"bundled are {', '.join(names)}"),
        context={"profile": name},
    )


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return str(error) if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)
