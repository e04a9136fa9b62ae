"""Files that appear whole or not at all: written beside their place, synced and renamed."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from volbench.errors import ArchiveError, InputError, OutputError, RefusedError, unwritten
from volbench.store.held_folder import refuse_foreign_links, refuse_link
from volbench.store.layout import JOB_FILE, RAW, STDERR, Layout, key_file
from volbench.units import format_capacity

if TYPE_CHECKING:
    from pydantic import ValidationError

    from volbench.model.frozen_model import Frozen

# Of a file's name that are kept in that of its temporary file: names are bounded (NAME_MAX)
_NAME_CHARACTERS = 50
# Places in a campaign folder where volbench writes; below report/ are files of users
_WRITTEN = (".*", "hosts/.*", "inputs/.*", "probe/**/.*", "report/.*", "runs/**/.*", "tables/.*")
# Looks for the reader of a pipe, without which it cannot be opened: shorter than a user notices
_READER_POLL_S, _SILENT_LOOKS = 0.1, 20

# Last line of a text that volbench wrote, by the ending of its name, with a CRC-32 of the rest
_COMMENTS = {
    **dict.fromkeys((".txt", ".yaml", ".fio"), b"# volbench %08x\n"),
    **dict.fromkeys((".tex", ".pdf"), b"%% volbench %08x\n"),
    **dict.fromkeys((".md", ".html", ".svg", ".xml"), b"<!-- volbench %08x -->\n"),
}
_COMMENT = re.compile(rb"(?:#|%|<!--) volbench ([0-9a-f]{8})(?: -->)?\n\Z")
_MAX_COMMENT, _HEAD_BYTES = 40, 1 << 24
# Author in PNG, workbooks and Parquet
_AUTHOR = re.compile(
    rb"(?s)\x89PNG\r\n\x1a\n.{29}tEXtSoftware\x00volbench"
    rb"|PK\x03\x04.{,9000}?docProps/core\.xml<[^>]*><dc:creator>volbench<"
    rb"|PAR1.*\x18\x07creator\x18\x08volbench.*PAR1\Z"
)
_TABLES = {".csv", ".json", ".prom"}
# Names of columns and keys that frames lack; labels have none
_OF_CHARTS = {"", "by", "invalid", "label", "repeats", "share", "source", "value"}
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


def write_output(path: Path, content: bytes, kind: str = "", names: Collection[str] = ()) -> None:
    """Write a file of the user; a pipe or device, as /dev/stdout, is written to.

    For `kind` and `names` see `check_output`. A symbolic link of another user is replaced, not
    followed: it may lead to any file of root.
    """
    try:
        real = check_output(path, content, kind, names)
        if path.exists() and not path.is_file() and not real.is_symlink():
            with _open_pipe(path) as pipe:
                pipe.write(content)
            return
        if kind in _COMMENTS:
            content += _COMMENTS[kind] % zlib.crc32(content)
        with replaced_file(real) as file:
            file.write(content)
    except OSError as error:
        unusable = unwritable(path, error)
        raise InputError(unusable.message, hint=unusable.hint) from error


def check_output(path: Path, new: bytes = b"", kind: str = "", names: Collection[str] = ()) -> Path:
    """Refuse to replace a file that volbench did not write, or that it needs; return its path.

    That of a symbolic link is the file it leads to, or the link if another user owns it.

    Args:
        kind: ending of the format, such as ``.csv``: a table is known by its columns or keys.
        names: of columns and keys that the file may have beside those of its new content.
    """
    refuse_foreign_links(path)
    real = Path(os.path.realpath(path))
    if path.is_symlink() and path.lstat().st_uid not in {0, os.geteuid()}:
        real = Path(os.path.realpath(path.parent), path.name)
    elif path.is_symlink():
        refuse_foreign_links(path.parent / path.readlink())
    reason = next(filter(None, (_need_of(real, folder) for folder in real.parents)), "")
    now = {*names} | (_names_in(new) if kind in _TABLES else set())
    is_kept = real.is_dir() or (real.is_file() and not _is_own(real, new, now))
    if is_kept and not reason and not real.is_symlink():
        reason = "it is not known as a file of volbench"
    if reason:
        message = f"{path} is not replaced: {reason}"
        raise RefusedError(message, hint="remove it, or choose another name")
    return real


def _need_of(path: Path, folder: Path) -> str:
    is_run = all(os.access(folder / name, os.F_OK) for name in (JOB_FILE, STDERR))
    is_raw = path.relative_to(folder).parts[0] in RAW
    if is_run or (is_raw and os.access(Layout(folder).campaign, os.F_OK)):
        return f"the campaign in {folder} needs it"
    with suppress(OSError, RuntimeError):  # without a key or a home
        if folder.samefile(key_file().parent):
            return "volbench keeps keys and locks there"
    return ""


def _is_own(path: Path, new: bytes, names: set[str]) -> bool:
    """Return whether volbench wrote a file: by its mark, or by the names of columns or keys now."""
    from volbench.model.frames.columns import FRAMES  # noqa: PLC0415 - only where a file exists

    with path.open("rb") as file:
        old = file.read(MAX_FILE_BYTES)
    if mark := _COMMENT.search(old, max(0, len(old) - _MAX_COMMENT)):
        return int(mark[1], 16) == zlib.crc32(memoryview(old)[: mark.start()])
    if old in {b"", b"\n", b"\r\n", b"[]\n", new} or _AUTHOR.match(old):
        return True
    before = _names_in(old)
    known = names.union(_OF_CHARTS, *({own.name for own in frame} for frame in FRAMES.values()))
    is_part = len(before) > 1 and before <= known and not before.isdisjoint(names or known)
    return is_part or (bool(before) and before == names)


def _names_in(content: bytes) -> set[str]:
    """Return columns of CSV, keys of a JSON document or of the first of a list."""
    found: set[str] = set()
    with suppress(ValueError, RecursionError, csv.Error):
        if content[:1] in {b"{", b"["}:
            text = content[:_HEAD_BYTES].decode(errors="replace")
            found.update(json.JSONDecoder().raw_decode(text, text.index("{"))[0])
        else:
            found.update(*csv.reader([content.partition(b"\n")[0].decode().rstrip("\r")]))
    return {re.sub("^label_.*|_(low|high)$", "", name) for name in found}


def _open_pipe(path: Path) -> BinaryIO:
    """Open a pipe or character device; wait for its reader only if no other user owns it.

    It is judged once it is open: another user may have put a link to a file or disk in its place.
    """
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    for look in count():
        try:
            descriptor = os.open(path, flags)
            break
        except OSError as error:
            if error.errno != errno.ENXIO or path.lstat().st_uid not in {0, os.geteuid()}:
                raise
        if look == _SILENT_LOOKS:
            sys.stderr.write(f"waiting for a program that reads {path}; Ctrl-C ends this\n")
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
    for write in (check_output, write_output):
        for name, content in files.items():
            write(folder / name, content, Path(name).suffix)


def make_output_folder(path: Path) -> None:
    """Create a folder that the user named, and its parents, if they are missing."""
    try:
        check_output(path / ".volbench.tmp")
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


def unwritable(path: Path, error: Exception) -> ArchiveError:
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
