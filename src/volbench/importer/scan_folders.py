"""What lies below some paths: folders go in; results, logs, and what can't be read come out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from volbench.errors import InputError, OutputError, Problem
from volbench.fio.results.embedded_results import find_results
from volbench.model.results.result import RunOutput
from volbench.store.compressed_text import ENDINGS, MOST_BYTES, decode, is_binary, is_packed, unpack
from volbench.store.layout import Layout

_LOG = re.compile(
    r"(?P<prefix>.*)_(?P<kind>clat_hist|bw|iops|lat|clat|slat)(?:\.(?P<job_number>[1-9]\d{0,5}))?\.log"
    r"(?P<packed>\.gz|\.zst|\.xz)?(?:\.(?P<host>.+))?",
    re.DOTALL,
)
_SHOULD_HOLD_ONE = re.compile(r"\.json|\.out$|^stdout|fio[^/]*\.txt$")
"""Names of files of which it is told when they are empty."""
_WRITINGS = frozenset(
    {".md", ".rst", ".adoc", ".html", ".htm", ".xml", ".svg", ".ipynb", ".csv", ".tsv"}
    | {".py", ".sh", ".ps1", ".bat", ".go", ".c", ".h", ".js", ".yaml", ".yml", ".ini"}
)
"""Endings of pages and programs, in which a result is an example."""
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True)
class Source:
    """A file below one of the paths.

    Attributes:
        path: where it is.
        root: name of the path that it was found below.
        inside: its place below that path.
    """

    path: Path
    root: str
    inside: PurePosixPath

    @property
    def shown(self) -> str:
        """Its place as it is recorded: never a whole path of this machine."""
        alone = len(self.inside.parts) == 1 and self.root == self.inside.name
        return self.root if alone else str(PurePosixPath(self.root) / self.inside)

    @property
    def stem(self) -> str:
        """Its name without endings such as ``.json.gz``."""
        name = self.inside.name
        for ending in (*ENDINGS, ".json", ".txt", ".out", ".log"):
            shorter = name.removesuffix(ending)
            name = shorter or name
        return name


@dataclass(frozen=True)
class ResultFile:
    """A file with at least one result."""

    source: Source
    digest: str
    results: tuple[RunOutput, ...]


@dataclass(frozen=True)
class LogFile:
    """A file that is named like a log of fio.

    Attributes:
        source: the file.
        prefix: what stands before the kind.
        kind: such as ``bw``.
        job_number: of the job in its section, from 1; 0 where all jobs share the log.
        hostname: of the client that wrote it; empty for none.
        packed: ending that tells its compression.
    """

    source: Source
    prefix: str
    kind: str
    job_number: int
    hostname: str
    packed: str

    @property
    def name(self) -> str:
        """What it is called in the folder of its run."""
        return f"{self.prefix}_{self.kind}.{self.job_number or 1}.log{self.packed}"


@dataclass
class Found:
    """Everything that was found.

    Attributes:
        results: files with results, in the order of their paths.
        logs: files named like fio's logs.
        malformed: files that should hold a result and do not, with the reason.
        others: how many files are something else.
    """

    results: list[ResultFile] = field(default_factory=list)
    logs: list[LogFile] = field(default_factory=list)
    malformed: list[Problem] = field(default_factory=list)
    others: int = 0

    def tell(self, error: OSError) -> None:
        """Note a folder that can't be looked into."""
        name = Path(str(error.filename)).name
        self.malformed.append(Problem(f"it can't be read: {error.strerror}", _readable(name)))


def scan(paths: Sequence[Path], *, leave_out: Path | None = None) -> Found:
    """Look at every file at and below some paths; nothing there is changed.

    Args:
        paths: files and folders.
        leave_out: a folder that is not looked into, where results are to be written.

    Raises:
        InputError: a path does not exist.
    """
    found = Found()
    seen: set[Path] = set()
    for path in paths:
        for source in _sources(path, found, leave_out):
            real = source.path.resolve()
            if real not in seen:
                seen.add(real)
                _sort(source, found)
    return found


def _sources(path: Path, found: Found, leave_out: Path | None) -> Iterator[Source]:
    if path.is_file():
        yield Source(path, path.name, PurePosixPath(path.name))
        return
    if not path.is_dir():
        raise InputError(
            f"{path} does not exist",
            hint="name files or folders with fio's results",
            context={"path": str(path)},
        )
    root = path.resolve().name or "root"
    for folder, below, files in os.walk(path, onerror=found.tell):
        here = Path(folder)
        inside = PurePosixPath(_readable(str(here.relative_to(path))))
        if leave_out is not None and here.resolve() == leave_out.resolve():
            below.clear()
            continue
        if Layout(here).campaign.name in files and Layout(here).runs.name in below:
            below.clear()
            place = str(PurePosixPath(root) / inside)
            hint = "give the folder itself to volbench show"
            found.malformed.append(Problem("a campaign of volbench already", place, hint=hint))
            continue
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Source(here / name, root, inside / _readable(name))


def _readable(name: str) -> str:
    """Return a name that can be written down, whatever bytes it has."""
    return name.encode("utf-8", errors="replace").decode()


def _sort(source: Source, found: Found) -> None:
    """Put a file where it belongs."""
    log = _log_of(source)
    if log is not None:
        found.logs.append(log)
        return
    try:
        result = _result_of(source)
    except OutputError as error:
        found.malformed.append(_problem(source, error))
        return
    if result is not None:
        found.results.append(result)
    else:
        found.others += 1


def _log_of(source: Source) -> LogFile | None:
    match = _LOG.fullmatch(source.inside.name)
    if match is None:
        return None
    return LogFile(
        source,
        match["prefix"],
        match["kind"],
        int(match["job_number"] or 0),
        match["host"] or "",
        match["packed"] or "",
    )


def _result_of(source: Source) -> ResultFile | None:
    """Return the results in a file; None where it is something else.

    Raises:
        OutputError: it should hold one, and does not.
    """
    content = _content(source.path)
    if content is None:
        return None
    plain = unpack(content)
    if is_binary(plain):
        return None
    if not plain.strip():
        if _SHOULD_HOLD_ONE.search(source.inside.name):
            raise OutputError("it is empty", hint="what fio wrote to stderr says why")
        return None
    results = find_results(decode(plain)).results
    return ResultFile(source, sha256(content).hexdigest(), results) if results else None


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file that may hold a result; None for any other.

    Raises:
        OutputError: it can't be read.
    """
    if path.suffix.lower() in _WRITINGS:
        return None
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
            if is_binary(head) and not is_packed(head):
                return None
            return head + stream.read()
    except OSError as error:
        raise OutputError(f"it can't be read: {error.strerror}") from error


def _problem(source: Source, error: OutputError) -> Problem:
    line, column = (error.context.get(name) for name in ("line", "column"))
    return Problem(
        error.message,
        source.shown,
        line if isinstance(line, int) else 0,
        column if isinstance(column, int) else 0,
        str(error.context.get("key", "")),
        error.hint,
    )
