"""Scan of folders for fio's results and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath

from volbench.errors import InputError, OutputError, Problem
from volbench.fio.results.decode_text import decode, is_binary
from volbench.fio.results.embedded_results import find_results
from volbench.model.profile.secret_values import mask_text
from volbench.model.results.result import RunOutput
from volbench.store.layout import Layout, walk
from volbench.store.log_files import EXTENSIONS, MAX_BYTES, is_packed, unpack
from volbench.store.worker_processes import NOBODY, Tell
from volbench.units import natural_order

_LOG = re.compile(
    r"(?P<prefix>.*)_(?P<kind>clat_hist|bw|iops|lat|clat|slat)(?:\.(?P<job_number>[1-9]\d{0,5}))?\.log"
    r"(?P<packed>\.gz|\.zst|\.xz)?(?:\.(?P<host>.+))?",
    re.DOTALL,
)
# Names of files that are reported when they are empty
_RESULT_NAMES = re.compile(r"\.json|\.out$|^stdout|fio[^/]*\.txt$")
# Suffixes of pages and programs: below a folder, a result in them is an example
_TEXT_SUFFIXES = frozenset(
    {".md", ".rst", ".adoc", ".html", ".htm", ".xml", ".svg", ".ipynb"}
    | {".py", ".sh", ".ps1", ".bat", ".go", ".c", ".h", ".js", ".yaml", ".yml", ".ini"}
)
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True)
class Source:
    """A file below one of the paths."""

    path: Path  # of the file
    root: str  # name of the scanned path that contains it
    inside: PurePosixPath  # its path relative to that one
    is_named: bool = False  # whether the scanned path is that of the file itself

    @cached_property
    def shown(self) -> str:
        """Path as recorded: relative, never an absolute path of this machine, and on one line."""
        alone = len(self.inside.parts) == 1 and self.root == self.inside.name
        path = self.root if alone else str(PurePosixPath(self.root) / self.inside)
        return "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in path
        )

    @property
    def stem(self) -> str:
        """Name without endings such as ``.json.gz``."""
        name = self.inside.name
        for ending in (*EXTENSIONS, ".json", ".txt", ".out", ".log"):
            shorter = name.removesuffix(ending)
            name = shorter or name
        return name


@dataclass(frozen=True)
class ResultFile:
    """A file with at least one result."""

    source: Source  # the file
    digest: str  # SHA-256 of its content, or of `masked`
    results: tuple[RunOutput, ...]  # in the order of the file
    masked: bytes | None = None  # its text without the secrets in it, in UTF-8; None if it has none


@dataclass(frozen=True)
class LogFile:
    """File with the name of a log of fio."""

    source: Source  # the file
    prefix: str  # name in front of the kind
    kind: str  # such as ``bw``
    job_number: int  # of the job in its process, from 1; 0 if all jobs share the log
    hostname: str  # of the client that wrote it; empty for none
    packed: str  # ending of its compression

    @property
    def name(self) -> str:
        """Name in the folder of its run."""
        return f"{self.prefix}_{self.kind}.{self.job_number or 1}.log{self.packed}"


@dataclass
class ScanResult:
    """Files by kind."""

    # files with results, in the order of their paths
    results: list[ResultFile] = field(default_factory=list)
    logs: list[LogFile] = field(default_factory=list)  # files with names of fio's logs
    # files that were expected to contain a result and do not, with the reason
    malformed: list[Problem] = field(default_factory=list)
    others: int = 0  # number of other files

    def note_unreadable(self, error: OSError) -> None:
        """Record a folder that cannot be read."""
        name = Path(str(error.filename)).name
        self.malformed.append(Problem(f"it cannot be read: {error.strerror}", _readable(name)))


def scan(
    paths: Sequence[Path], *, leave_out: Path | None = None, tell: Tell = NOBODY
) -> ScanResult:
    """Classify every file at and below some paths, without changing anything."""
    scanned = ScanResult()
    sources: dict[Path, Source] = {}
    folders: dict[Path, Path] = {}
    for path in paths:
        for source in sources_below(path, scanned, leave_out):
            sources.setdefault(_real_path(source.path, folders), source)
    for number, source in enumerate(sources.values(), start=1):
        _classify(source, scanned)
        tell("scanning", number, len(sources))
    return scanned


def _real_path(path: Path, folders: dict[Path, Path]) -> Path:
    """Return the path of a file without symbolic links; those of folders are kept in `folders`."""
    if path.is_symlink():
        return path.resolve()
    folder = path.parent
    if folder not in folders:
        folders[folder] = folder.resolve()
    return folders[folder] / path.name


def sources_below(
    path: Path, scanned: ScanResult, leave_out: Path | None = None
) -> Iterator[Source]:
    """Yield the files at and below a path, hidden files and campaigns excepted."""
    if path.is_file():
        yield Source(path, path.name, PurePosixPath(path.name), is_named=True)
        return
    if not path.is_dir():
        what = "is neither a file nor a folder" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}", hint="name files or folders with fio's results")
    root = path.resolve().name or "root"
    for folder, below, files in walk(path, onerror=scanned.note_unreadable):
        here = Path(folder)
        inside = PurePosixPath(_readable(str(here.relative_to(path))))
        if leave_out is not None and here.resolve() == leave_out.resolve():
            below.clear()
            continue
        if Layout(here).campaign.name in files and Layout(here).runs.name in below:
            below.clear()
            path_shown = str(PurePosixPath(root) / inside)
            hint = "pass the folder itself to volbench show"
            scanned.malformed.append(
                Problem("already a campaign of volbench", path_shown, hint=hint)
            )
            continue
        below[:] = sorted((name for name in below if not name.startswith(".")), key=natural_order)
        for name in sorted(files, key=natural_order):
            if not name.startswith("."):
                yield Source(here / name, root, inside / _readable(name))


def _readable(name: str) -> str:
    """Return a name as valid UTF-8, whatever bytes it has."""
    return name.encode("utf-8", errors="replace").decode()


def _classify(source: Source, scanned: ScanResult) -> None:
    log = _log_of(source)
    if log is not None:
        scanned.logs.append(log)
        return
    try:
        result = _result_of(source)
    except OutputError as error:
        scanned.malformed.append(
            Problem(error.message, source.shown, error.line, error.column, error.key, error.hint)
        )
        return
    if result is not None:
        scanned.results.append(result)
    else:
        scanned.others += 1


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
    """Return the results in a file; None if it is another kind of file."""
    content = _content(source.path, is_named=source.is_named)
    if content is None:
        return None
    plain = unpack(content)
    if not plain.strip():
        if _RESULT_NAMES.search(source.inside.name):
            raise OutputError("it is empty", hint="see the messages of fio on stderr")
        return None
    text = decode(plain)
    results = () if is_binary(plain) else find_results(text).results
    if not results:
        return None
    masked = mask_text(text)
    kept = None if masked == text else masked.encode()
    return ResultFile(source, sha256(kept or content).hexdigest(), results, kept)


def _content(path: Path, *, is_named: bool) -> bytes | None:
    """Return the content of a file that may contain a result, else None."""
    if path.suffix.lower() in _TEXT_SUFFIXES and not is_named:
        return None
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
            if is_binary(head) and not is_packed(head):
                return None
            return head + stream.read()
    except OSError as error:
        raise OutputError(f"it cannot be read: {error.strerror}") from error
