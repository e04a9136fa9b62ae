"""Files of a Parquet dataset, on this machine or in object storage.

The layout is that of ``volbench export --format dataset``: ``DATASET/<frame>/<campaign>.parquet``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from volbench.errors import InputError, TransportError
from volbench.model.frames.columns import FRAMES

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PROTOCOL = "volbench"
"""URL scheme of paths in object storage, so that DuckDB uses our filesystem, not its extension."""

_HINT = "write one with: volbench export DIR... --format dataset --output DATASET"


@dataclass(frozen=True)
class Parts:
    """The files of a dataset.

    Attributes:
        files: frame name to paths, as passed to DuckDB.
        filesystem: filesystem of the paths; None for local files.
    """

    files: Mapping[str, list[str]]
    filesystem: AbstractFileSystem | None = None


def local_parts(folder: Path) -> Parts:
    """Return the files of a local dataset; empty if the folder is not a dataset."""
    paths = (
        path for name in FRAMES for path in sorted((folder.absolute() / name).glob("*.parquet"))
    )
    return Parts(_by_frame(map(str, paths)))


def remote_parts(address: str, *, endpoint: str = "") -> Parts:
    """Return the files of a dataset in object storage.

    Args:
        address: URL such as ``s3://bucket/prefix`` or ``gs://bucket/prefix``. Credentials come from
            the environment or the cloud provider's configuration files.
        endpoint: URL of an S3-compatible storage, such as ``https://minio.example:9000``.

    Raises:
        InputError: the address is invalid, fsspec is missing, or the dataset does not exist.
        TransportError: the storage is unreachable or denied access.
    """
    try:
        from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(
            "reading object storage needs fsspec, which is not installed",
            hint="pip install 'volbench[sql]'",
        ) from error
    try:
        storage, prefix = _connect(address, endpoint=endpoint)
        found = storage.get_file_info(fs.FileSelector(prefix, recursive=True))
    except FileNotFoundError as error:
        raise InputError(f"there is nothing at {address}", hint=_HINT) from error
    except (OSError, pa.ArrowException) as error:
        raise TransportError(
            f"{address} cannot be read: {error}",
            hint="check the address, the credentials and --endpoint",
        ) from error
    paths = sorted(file.path for file in found if file.path.endswith(".parquet"))
    files = _by_frame(f"{_PROTOCOL}://{path}" for path in paths)
    if not files:
        raise InputError(f"there is no dataset at {address}", hint=_HINT)
    bucket = type(
        "Bucket",
        (ArrowFSWrapper,),
        {"protocol": _PROTOCOL, "_strip_protocol": staticmethod(_path_of), "root_marker": ""},
    )
    return Parts(files, bucket(storage))


def _connect(address: str, *, endpoint: str) -> tuple[fs.FileSystem, str]:
    """Return the storage and the path within it."""
    parts = urlsplit(address)
    if endpoint:
        at = urlsplit(endpoint)
        if parts.scheme != "s3" or not at.netloc or at.scheme not in {"http", "https"}:
            raise InputError(
                f"--endpoint {endpoint!r} cannot be used for {address}",
                hint="use a URL such as https://minio.example:9000, with an s3:// address",
            )
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        storage = fs.S3FileSystem(
            endpoint_override=at.netloc, scheme=at.scheme, region=region or "us-east-1"
        )
        return storage, f"{parts.netloc}{parts.path}".rstrip("/")
    try:
        storage, path = fs.FileSystem.from_uri(address)
    except (ValueError, pa.ArrowException) as error:
        raise InputError(
            f"{address} is not an address of object storage: {error}",
            hint="use a URL such as s3://bucket/prefix or gs://bucket/prefix",
        ) from error
    return storage, str(path).rstrip("/")


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
