"""Lookup of profiles, price lists and volume types: bundled by name, or the user's by path."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from volbench.errors import InputError, did_you_mean, nearest, quoted, unread

# Text that a person writes; more is another kind of file. Noticed by:
# tests/plan/test_bundled_files.py::test_files_that_are_not_profiles_are_refused
_MAX_BYTES = 1 << 20
_ENDINGS = (".yaml", ".yml", ".fio")
_MAX_NAMES = 8  # Bundled files that a hint names, so that it fits a screen
_PROFILES = "profiles"


def bundled_folder(name: str) -> Path:
    """Return the folder of bundled files: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / name
    return installed if installed.is_dir() else package.parents[1] / name


def bundled_names(folder: str) -> tuple[str, ...]:
    """Return the names of the bundled files of a folder, sorted."""
    return tuple(sorted(path.stem for path in bundled_folder(folder).glob("*.yaml")))


def profile_names() -> tuple[str, ...]:
    """Return the names of the bundled profiles, sorted."""
    return bundled_names(_PROFILES)


def profile_index() -> list[dict[str, object]]:
    """Return name, number of jobs and description of each bundled profile.

    They are stored in a separate index file, so that a listing needs no YAML parser.
    """
    index = bundled_folder(_PROFILES) / "index.json"
    profiles: list[dict[str, object]] = json.loads(index.read_text("utf-8"))
    return profiles


def read_profile(name_or_path: str) -> tuple[str, str]:
    """Return text and displayed path of a profile: a bundled one by name, or a file."""
    return read_named(name_or_path, folder=_PROFILES, what="profile")


def read_named(name_or_path: str, *, folder: str, what: str) -> tuple[str, str]:
    """Return text and displayed path of a bundled file, by name or its beginning, or of a file."""
    names = bundled_names(folder)
    path = Path(name_or_path)
    begun = [name for name in names if name.startswith(name_or_path)]
    if name_or_path in names or (len(begun) == 1 and not path.is_file()):
        name = name_or_path if name_or_path in names else begun[0]
        bundled = bundled_folder(folder) / f"{name}.yaml"
        return bundled.read_text("utf-8"), bundled.name
    try:
        is_file = path.is_file()
    except OSError as error:  # the name is too long
        raise _bundled_file_error(path, error, what=what) from error
    if not is_file:
        raise InputError(
            f"there is no {what} {name_or_path!r}, neither bundled nor a file",
            hint=_hint(path, names),
        )
    return read_text(path, what=what), str(path)


def _hint(path: Path, names: Sequence[str]) -> str:
    """Return what may be meant by a path that is no file, or some bundled names."""
    if path.is_dir() or (path.is_absolute() and not path.suffix):
        return f"to measure {path}, write --on {quoted(path)}"
    if path.name != str(path) or path.suffix:
        endings = {path.suffix, *_ENDINGS}
        files = (file for file in path.parent.glob("*") if file.suffix in endings)
        beside = {file.stem: file.name for file in files if file.is_file()}
        if near := nearest(path.stem, beside):
            return f"did you mean `{path.with_name(beside[near])}`?"
        return f"look at: ls {quoted(path.parent)}"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return did_you_mean(str(path), names, f"bundled are {', '.join(names[:_MAX_NAMES])}{more}")


def read_text(path: Path, *, what: str, max_bytes: int = _MAX_BYTES, form: str = "YAML") -> str:
    """Return the text of a user's file."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(max_bytes + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise _bundled_file_error(path, error, what=what, form=form) from error
    if len(text) > max_bytes:
        limit = f"{path} is larger than {max_bytes >> 20} MiB"
        raise InputError(limit, hint=f"a {what} is a short text")
    return text


def _bundled_file_error(
    path: Path, error: OSError | UnicodeDecodeError, *, what: str, form: str = "YAML"
) -> InputError:
    return InputError(
        f"{path} cannot be read: {unread(error)}", hint=f"a {what} is a {form} file in UTF-8"
    )
