"""Files of a host as its executor reports them, for tests that look at one at a time."""

from __future__ import annotations

from typing import cast

from volbench.engine.hosts.described_volumes import describe_files
from volbench.execute.protocol import Executor, FileStat


def stat_of(executor: Executor, path: str) -> FileStat | None:
    """Return the stat result of a path; None if it does not exist."""
    (file,) = describe_files(executor, [path])
    return file.stat


def text_of(executor: Executor, path: str) -> str | None:
    """Return the text of a file; None if it is unreadable."""
    return executor.read_files([path])[0]


def names_in(executor: Executor, path: str) -> tuple[str, ...]:
    """Return the names in a folder, in the order of its host."""
    contents = cast("list[list[object]]", executor.ask("folder_contents", path=path))
    return tuple(str(entry[0]).rpartition("/")[2] for entry in contents)
