"""fio's log files at rest: compressed when a Run ends, read back as text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from volbench.errors import ArchiveError
from volbench.store.layout import COMPRESSED

_CHUNK_BYTES = 1 << 20


def compress(path: Path) -> Path:
    """Replace a file by its zstd-compressed twin ``<name>.zst`` and return that path.

    Raises:
        ArchiveError: the filesystem refused; the plain file is kept.
    """
    target = path.with_name(path.name + COMPRESSED)
    aside = path.with_name(f".{target.name}.tmp")
    try:
        with path.open("rb") as source, pa.CompressedOutputStream(str(aside), "zstd") as sink:
            while chunk := source.read(_CHUNK_BYTES):
                sink.write(chunk)
        aside.replace(target)
        path.unlink()
    except (OSError, pa.ArrowException) as error:
        aside.unlink(missing_ok=True)
        raise ArchiveError(
            f"{path} can't be compressed: {error}",
            hint="check free space; the plain file is kept",
            context={"path": str(path)},
        ) from error
    return target


def read_log(path: Path) -> str:
    """Return the text of a log file, compressed or plain.

    Raises:
        ArchiveError: it is missing or damaged.
    """
    try:
        if path.name.endswith(COMPRESSED):
            with pa.CompressedInputStream(str(path), "zstd") as stream:
                return bytes(stream.read()).decode("utf-8", errors="replace")
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"{path} can't be read: {error}",
            hint="restore it from a copy",
            context={"path": str(path)},
        ) from error
