"""Files of a Parquet dataset, on this machine or in object storage.

The layout is that of ``volbench export --format dataset``: ``DATASET/<frame>/<campaign>.parquet``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from volbench.object_storage.object_storage import ObjectStorage

# URL scheme of paths in object storage, so that DuckDB uses our filesystem, not its extension
_PROTOCOL = "volbench"

_HINT = "write one with: volbench export DIR... --format dataset --output DATASET"


@dataclass(frozen=True)
class Parts:
    """The files of a dataset."""

    files: Mapping[str, list[str]]  # frame name to paths, as passed to DuckDB
    filesystem: AbstractFileSystem | None = None  # filesystem of the paths; None for local files


def local_parts(folder: Path) -> Parts:
    """Return the files of a local dataset; empty if the folder is not a dataset."""
    paths = (
        path for name in FRAMES for path in sorted((folder.absolute() / name).glob("*.parquet"))
    )
    return Parts(_by_frame(map(str, paths)))


def remote_parts(storage: ObjectStorage, names: Iterable[str]) -> Parts:
    """Return the files of a dataset in object storage."""
    try:
        from fsspec.implementations.arrow import ArrowFSWrapper
    except ImportError as error:
        raise InputError(
            "queries in object storage need fsspec, which is not installed",
            hint="pip install 'volbench[sql]'",
        ) from error
    paths = sorted(name for name in names if name.endswith(".parquet"))
    files = _by_frame(f"{_PROTOCOL}://{storage.prefix}/{path}" for path in paths)
    if not files:
        raise InputError(f"there is no dataset and no campaign at {storage.address}", hint=_HINT)
    bucket = type(
        "Bucket",
        (ArrowFSWrapper,),
        {"protocol": _PROTOCOL, "_strip_protocol": staticmethod(_path_of), "root_marker": ""},
    )
    return Parts(files, bucket(storage.filesystem))


def _path_of(address: str) -> str:
    """Return the path with its bucket, which fsspec would parse as a host name."""
    return address.removeprefix(f"{_PROTOCOL}://").rstrip("/")


def _by_frame(paths: Iterable[str]) -> dict[str, list[str]]:
    """Group paths by frame, the name of their directory."""
    found: dict[str, list[str]] = {}
    for path in paths:
        name = PurePosixPath(path).parent.name
        if name in FRAMES:
            found.setdefault(name, []).append(path)
    return found
