"""Files of a host as its executor reports them, for tests that look at one at a time."""

from volbench.engine.hosts.described_volumes import describe_files
from volbench.execute.agent.files import FileStat, read_files, write_files
from volbench.execute.agent.volumes import folder_contents
from volbench.execute.protocol import Executor


def stat_of(executor: Executor, path: str) -> FileStat | None:
    """Return the stat result of a path; None if it does not exist."""
    (file,) = describe_files(executor, [path])
    return file.stat


def text_of(executor: Executor, path: str) -> str | None:
    """Return the text of a file; None if it is unreadable."""
    return executor.ask(read_files, [path])[0]


def write(executor: Executor, path: str, text: str = "") -> None:
    """Write a small file, or make a folder whose path ends with a slash."""
    executor.ask(write_files, {path: text})


def names_in(executor: Executor, path: str) -> tuple[str, ...]:
    """Return the names in a folder, in the order of its host."""
    return tuple(file.path.rpartition("/")[2] for file in executor.ask(folder_contents, path))
