"""Processes that have to do with a case."""

from pathlib import Path


def processes_in(folder: Path) -> dict[int, str]:
    """Return the command lines of the processes that name a folder or work in it, by pid."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            works_in = str((place / "cwd").readlink())
        except OSError:
            continue
        if any(str(folder) in word for word in (*words, works_in)):
            found[int(place.name)] = " ".join(words)
    return found
