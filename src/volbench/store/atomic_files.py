"""Files that appear whole or not at all: written beside their place, synced and renamed."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from volbench.errors import ArchiveError, InputError, OutputError, RefusedError, quoted, unwritten
from volbench.store.held_folder import refuse_foreign_links, refuse_link
from volbench.store.layout import RAW, Layout, key_file
from volbench.units import format_capacity

if TYPE_CHECKING:
    from pydantic import ValidationError

    from volbench.model.frozen_model import Frozen

# Of a file's name that are kept in that of its temporary file: names are bounded (NAME_MAX)
_NAME_CHARACTERS = 50
# Places in a campaign folder where volbench writes; below report/ are files of users
_WRITTEN = (".*", "hosts/.*", "inputs/.*", "probe/**/.*", "report/.*", "runs/**/.*", "tables/.*")
_READER_POLL_S = 0.1
"""Shorter than a user notices; a pipe without a reader cannot be opened without blocking."""

# In job files, pages, pictures, LaTeX, workbooks and Parquet that volbench wrote
_OF_VOLBENCH = re.compile(
    rb'\A[#%] volbench |content="volbench |<dc:title>volbench<|/Creator \(volbench\)'
    rb"|tEXtSoftware\0volbench|creator[\0-\x1f>]{1,3}volbench"
)
_KEY = re.compile(rb"\A[0-9a-f]{64}\s*\Z|\A-----BEGIN [A-Z ]*PRIVATE KEY-----")
# Results, logs and job files of fio, except pages that quote one
_OF_FIO = re.compile(
    rb'"fio version"|^\d+;fio-\d|^fio-\d[\w.-]*\s*$|\A\d+, *\d+, *[0-2],|\Afio version \d'
    rb"|\A(?!\s*<)(?s:.*^)\[[\w .-]+\]\s*$",
    re.MULTILINE,
)
# XFS, LUKS, partition tables and FAT, ext, swap, btrfs
_IMAGE = re.compile(rb"(?s)XFSB|LUKS|.{510}\x55\xaa|.{1080}\x53\xef|.{4086}SWAPSP|.{65600}_BHRfS_M")
_UNKNOWN = "its name was not typed, and it is not known as a file of volbench"
_READ_BYTES = 1 << 17
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# Upper bound of the files that are read whole: the plan of 20,000 runs, a result of 1,000 jobs.
# Noticed by: tests/store/test_oversized_files.py
MAX_FILE_BYTES = 256 << 20


@contextmanager
def replaced_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that replaces a file when the block ends without an error.

    Until then, and after an error, the old file is unchanged. An existing file keeps its mode.

    Args:
        durable: whether to fsync file and directory; if not, call `sync_files` later.
    """
    temporary = path.with_name(f".{path.name[:_NAME_CHARACTERS]}.{os.getpid()}.volbench.tmp")
    try:
        temporary.unlink(missing_ok=True)  # of a process that had this number before
        with temporary.open("xb") as file:  # never through a link that another user planted
            if path.is_file() and not path.is_symlink():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the error that led here says more
            temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def remove_half_written(folder: Path) -> None:
    """Remove the temporary files of killed processes from a campaign folder, or one of tables."""
    for path in chain.from_iterable(map(folder.glob, _WRITTEN)):
        if is_half_written(path):
            path.unlink(missing_ok=True)


def is_half_written(path: Path) -> bool:
    """Return whether a file is the temporary one of a killed process."""
    named = re.fullmatch(r"\..+\.(\d+)\.volbench\.tmp", path.name)
    return named is not None and not Path("/proc", named[1]).exists()


def write_output(path: Path, content: bytes, *, is_named: bool = True) -> None:
    """Write a file whose name the user typed; a pipe or device, as /dev/stdout, is written to.

    A symbolic link of another user is replaced, not followed: it may lead to any file of root. For
    a name that was not typed, see `check_output`.
    """
    try:
        check_output(path, None if is_named else content)
        is_link = path.is_symlink()
        is_own_link = is_link and path.lstat().st_uid in {0, os.geteuid()}
        if is_own_link:
            refuse_foreign_links(path.parent / path.readlink())
        if (is_own_link or not is_link) and path.exists() and not path.is_file():
            with _open_pipe(path) as pipe:
                pipe.write(content)
            return
        with replaced_file(path.resolve() if is_own_link else path) as file:
            file.write(content)
    except OSError as error:
        unusable = unwritable(path, error)
        raise InputError(unusable.message, hint=unusable.hint) from error


def check_output(path: Path, unnamed: bytes | None = None) -> None:
    """Refuse to replace what cannot be derived again: files of campaigns and of fio, and keys.

    Args:
        unnamed: content for a file whose name the user did not type: another that volbench did not
            write is not replaced. A table of volbench is known by its columns.
    """
    refuse_foreign_links(path)
    real = Path(os.path.realpath(path))
    campaigns = (each for each in real.parents if os.access(Layout(each).campaign, os.F_OK))
    root = next((each for each in campaigns if real.relative_to(each).parts[0] in RAW), None)
    reason = f"the campaign in {root} needs it" if root else ""
    if "volbench" in real.parts and key_file().parent in real.parents:
        reason = "volbench keeps keys and locks there"
    if not reason and real.is_file():
        with real.open("rb") as file:
            old = file.read(_READ_BYTES)
            file.seek(max(len(old), real.stat().st_size - _READ_BYTES))
            old += file.read()
        reason = "" if old == unnamed else _reason_to_keep(old, unnamed)
    elif unnamed is not None and real.exists():
        reason = reason or _UNKNOWN
    if reason:
        hint = "move it away, or choose another --output"
        if reason == _UNKNOWN:
            hint = f"to replace it, name the file: {quoted(path)}; or choose another folder"
        raise RefusedError(f"{path} is not replaced: {reason}", hint=hint)


def _reason_to_keep(old: bytes, unnamed: bytes | None) -> str:
    if _KEY.search(old):
        return "it is a key"
    if not old or (old[:1] in b"<#%\x89P" and _OF_VOLBENCH.search(old)):
        return ""
    if _IMAGE.match(old):
        return "it holds a filesystem or swap, which may be in use"
    with suppress(zlib.error):
        old = zlib.decompressobj(31).decompress(old, _READ_BYTES)
    if _OF_FIO.search(old):
        return "it is a result, log or job file of fio"
    before, now = _columns_of(old), _columns_of(unnamed or b"")
    is_table = len(before & now) > 1 and (before <= now or now <= before)  # --columns
    return "" if unnamed is None or is_table else _UNKNOWN


def _columns_of(content: bytes) -> set[bytes]:
    """Return the columns of a table in CSV or Markdown, or the keys of a list in JSON."""
    record = re.match(rb'\s*\[\s*\{([^}]*"[^}]*)\}', content)
    line = b",".join(re.findall(rb'"\w+":', record[1])) if record else content.split(b"\n", 1)[0]
    is_table = re.match(rb"[^<\0]*[,|][^\0]*\Z", line)
    return {cell.strip() for cell in re.split(rb"[,|]", line.strip())} if is_table else set()


def _open_pipe(path: Path) -> BinaryIO:
    """Open a pipe or character device; wait for its reader only if no other user owns it.

    It is judged once it is open: another user may have put a link to a file or disk in its place.
    """
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    while True:
        try:
            descriptor = os.open(path, flags)
            break
        except OSError as error:
            if error.errno != errno.ENXIO or path.lstat().st_uid not in {0, os.geteuid()}:
                raise
        time.sleep(_READER_POLL_S)
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file, a pipe or a character device")
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def write_outputs(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that the user named, or none of them."""
    make_output_folder(folder)
    for name, content in files.items():
        check_output(folder / name, content)
    for name, content in files.items():
        write_output(folder / name, content, is_named=False)


def make_output_folder(path: Path) -> None:
    """Create a folder that the user named, and its parents, if they are missing."""
    try:
        check_output(path / "file")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse_link(path)  # it leads nowhere
        unusable = unwritable(path, error)
        raise InputError(unusable.message, hint=unusable.hint) from error


def write_atomic(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file of a campaign atomically: readers and crashes see the old or the new content.

    Args:
        durable: whether to fsync file and directory; if not, call `sync_files` later.
    """
    try:
        with replaced_file(path, durable=durable) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise unwritable(path, error) from error


def sync_files(paths: Iterable[Path]) -> None:
    """Fsync files that were written without `durable`, and their directories."""
    for path in paths:
        try:
            sync_folder(path)
            sync_folder(path.parent)
        except OSError as error:
            raise unwritable(path, error) from error


def sync_folder(path: Path) -> None:
    """Fsync a directory, or a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> ArchiveError:
    """Return the error of a campaign's file that cannot be written."""
    hint = "check permissions, or choose another folder with --output"
    message, hint = unwritten(path, error, hint=hint)
    return ArchiveError(message, hint=hint, path=str(path))


Model = TypeVar("Model", bound="Frozen")


def parse_json(content: bytes) -> object:
    """Parse JSON of a stored file."""
    try:
        value: object = json.loads(content.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"it is not valid JSON from {position} on") from None
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
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def open_regular(path: Path, *, max_bytes: int) -> BufferedReader:
    """Open a regular file; raise OSError for larger files, and pipes and devices without an end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    reason = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if status.st_size > max_bytes:
        size, limit = map(format_capacity, (status.st_size, max_bytes))
        reason = f"its size of {size} exceeds the maximum of {limit}"
    if reason:
        file.close()
        raise OSError(errno.EFBIG, reason)
    return file


def content_of(path: Path) -> bytes:
    """Return the content of a regular file that fits into memory; raise OSError for others."""
    with open_regular(path, max_bytes=MAX_FILE_BYTES) as file:
        return file.read()


def read_text(path: Path) -> str:
    """Return the text of a file; "" if missing. Invalid UTF-8 is replaced."""
    return read_bytes(path).decode("utf-8", errors="replace")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; b"" if missing."""
    try:
        return content_of(path)
    except FileNotFoundError:
        return b""
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise OutputError(message, hint="check permissions", path=str(path)) from error


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return the model in a JSON file; None if missing."""
    from pydantic import ValidationError  # noqa: PLC0415 - slow to import, and not all files need it

    content = read_bytes(path)
    if not content and not path.exists():
        return None
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise damaged_file(path, first_error(error)) from error


def damaged_file(path: Path, reason: object) -> OutputError:
    """Return the error of a file with content that volbench did not write."""
    message = f"{path} is damaged: {reason}"
    return OutputError(message, hint="restore it from a backup", path=str(path))
