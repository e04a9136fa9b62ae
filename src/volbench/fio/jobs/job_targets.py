"""Target volume of a job file's section, from its ``filename``, ``directory`` or ``uri=``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from volbench.errors import InputError

_ENGINES_WITHOUT_FILES = frozenset({"null", "cpuio"})


@dataclass(frozen=True)
class Place:
    """Target of a section."""

    target: str  # of the volume; empty when the engine touches none
    # plain names inside a directory volume; None for fio's own names or a device
    filename: str | None = None


def find_place(options: dict[str, str]) -> Place:
    """Return the volume of a section.

    Args:
        options: as fio reads them; ``filename``, ``directory`` and ``uri`` are used.
    """
    if options.get("ioengine") == "nbd" and "uri" in options:
        return Place(options["uri"])
    if options.get("ioengine") in _ENGINES_WITHOUT_FILES:
        return Place("")
    folders = _parts(options.get("directory", ""))
    if len(folders) > 1:
        raise InputError("several directories are several volumes", hint="make a job for each")
    folder = folders[0] if folders else ""
    if "filename" not in options:
        return Place(_as_folder(folder or "."))
    # fio puts a directory before any filename, even an absolute one.
    paths = [f"{folder}/{name}" if folder else name for name in _parts(options["filename"])]
    if any(is_device(path) for path in paths):
        if len(paths) > 1:
            raise InputError("several devices are several volumes", hint="make a job for each")
        return Place(paths[0])
    parents = {str(PurePosixPath(path).parent) for path in paths}
    if len(parents) > 1:
        raise InputError("files in several folders are several volumes", hint="use one folder")
    names = [PurePosixPath(path).name for path in paths]
    if any(":" in name for name in names):
        raise InputError("a file name with a colon cannot be kept", hint="rename the file")
    if {"..", "-"} & {*names}:  # fio takes - as standard input or output
        raise InputError("a file cannot be called .. or -", hint="name a file")
    return Place(_as_folder(parents.pop()), ":".join(names))


def _as_folder(path: str) -> str:
    """Return a folder with a slash at its end, so that it is not taken for a file."""
    return path if path == "." else f"{path.rstrip('/')}/"


def _parts(text: str) -> list[str]:
    r"""Split at colons as fio does: ``\:`` stands for a colon itself."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text) if part]


def is_device(path: str) -> bool:
    """Return whether a path means a device: everything in /dev except shared memory."""
    place = PurePosixPath(path)
    return place.is_relative_to("/dev") and not place.is_relative_to("/dev/shm")  # noqa: S108 - only compared
