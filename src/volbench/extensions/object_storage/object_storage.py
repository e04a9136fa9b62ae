"""Object storage at an address such as ``s3://bucket/prefix``, and campaigns copied from it.

Credentials, region and endpoint come from where the provider's own tools take them, such as
``AWS_ACCESS_KEY_ID``, ``AWS_REGION`` and ``AWS_ENDPOINT_URL``. They are in no message and no file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from volbench.api.one_campaign import CampaignData
from volbench.errors import ArchiveError, AuthError, InputError, TransferError, TransportError
from volbench.execute.local import temporary_folder
from volbench.store.archive import read_campaign
from volbench.store.atomic_files import unwritable

_THREADS = 16  # That transfer the objects of a campaign
_CAMPAIGNS_AT_ONCE = 8
_CHUNK_BYTES = 1 << 20
_HINT = (
    "use a URL such as s3://bucket/prefix, gs://bucket/prefix or abfs://container@account/prefix"
)
_DENIED = ("ACCESS_DENIED", "status 403", "HTTP status 403", "SIGNATURE", "INVALID_ACCESS_KEY")
_MISSING = ("NO_SUCH_BUCKET", "NO_SUCH_KEY", "Path does not exist", "NOT_FOUND")
_MAX_CAUSE = 200
_CHECK = ".volbench-check"  # Object that is written to see whether writing is allowed


@dataclass(frozen=True)
class ObjectStorage:
    """A prefix in object storage."""

    address: str  # as given, without a slash at its end
    filesystem: fs.FileSystem  # its connection
    prefix: str  # bucket and prefix, as the connection names them

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each object, by its name below the prefix."""
        with _reported(self.address):
            selector = fs.FileSelector(self.prefix, recursive=True)
            files = [file for file in self.filesystem.get_file_info(selector) if file.is_file]
        start = len(self.prefix) + 1
        return {_checked(self.address, file.path[start:]): file.size for file in files}

    def has(self, name: str) -> bool:
        """Return whether there is an object of that name below the prefix."""
        with _reported(self.address):
            info = self.filesystem.get_file_info(f"{self.prefix}/{name}")
        return bool(info.is_file)

    def below(self, name: str) -> ObjectStorage:
        """Return the storage of a folder below the prefix; an empty name is the prefix itself."""
        tail = f"/{name}" if name else ""
        return replace(self, address=self.address + tail, prefix=self.prefix + tail)

    def download(self, sizes: Mapping[str, int], into: Path) -> None:
        """Fetch objects into a folder, each whole or not at all."""
        fetch = partial(self._fetch, into=into)
        with ThreadPoolExecutor(min(_THREADS, max(1, len(sizes)))) as pool:
            for _ in pool.map(fetch, sizes.items()):
                pass

    def _fetch(self, entry: tuple[str, int], *, into: Path) -> None:
        name, size_bytes = entry
        path = into / name
        partial_file = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial_file.open("wb") as sink:
                written = sum(sink.write(chunk) for chunk in self._chunks(name))
            partial_file.rename(path)
        except OSError as error:
            raise unwritable(path, error) from error
        if written != size_bytes:
            path.unlink()
            raise TransferError(
                f"{self.address}/{name} has {written} bytes, not {size_bytes} as listed",
                hint="it was still being written: try again when the upload has ended",
            )

    def _chunks(self, name: str) -> Iterator[bytes]:
        with _reported(f"{self.address}/{name}", listed=True):
            path = f"{self.prefix}/{name}"
            source = self.filesystem.open_input_stream(path, compression=None)
            with source:
                while chunk := source.read(_CHUNK_BYTES):
                    yield chunk

    def upload(self, folder: Path, names: Iterable[str]) -> None:
        """Write files of a folder to the storage, in this order."""
        for name in names:
            target = f"{self.prefix}/{name}"
            with (
                _reported(f"{self.address}/{name}"),
                (folder / name).open("rb") as source,
                self.filesystem.open_output_stream(target, compression=None) as sink,
            ):
                shutil.copyfileobj(source, sink, _CHUNK_BYTES)

    def require_writable(self) -> None:
        """Write a small object below the prefix and remove it, if removing is allowed.

        PyArrow leaves the empty object ``prefix/``, by which S3 consoles show a folder.

        Raises:
            InputError: the bucket does not exist.
            AuthError: writing is denied.
            TransportError: the storage does not answer.
        """
        target = f"{self.prefix}/{_CHECK}"
        try:
            with (
                _reported(self.address),
                self.filesystem.open_output_stream(target, compression=None) as sink,
            ):
                sink.write(b"volbench tests whether it can write here\n")
        except InputError as error:
            raise InputError(
                f"nothing can be written to {self.address}: its bucket does not exist",
                hint="create the bucket, or correct the address, the region or AWS_ENDPOINT_URL",
            ) from error
        # an upload needs no right to remove, and another controller may have removed it
        with suppress(AuthError, InputError), _reported(self.address):
            self.filesystem.delete_file(target)


def open_storage(address: str) -> ObjectStorage:
    """Connect to the storage of an address; nothing is read yet.

    Args:
        address: URL such as ``s3://bucket/prefix``, ``gs://bucket/prefix`` or
            ``abfs://container@account/prefix``.
    """
    parts = urlsplit(address)
    if parts.password is not None or (parts.username and parts.scheme in {"s3", "gs"}):
        raise InputError(
            f"the address of {parts.scheme}://{parts.hostname}{parts.path} contains credentials",
            hint="put them where the provider's tools find them, such as AWS_ACCESS_KEY_ID",
        )
    if parts.scheme not in {"s3", "gs", "gcs", "abfs", "abfss"} or not parts.netloc:
        raise InputError(f"{address} is not an address of object storage", hint=_HINT)
    plain_address = parts._replace(query="", fragment="").geturl().rstrip("/")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    with _reported(plain_address):
        if parts.scheme == "s3" and endpoint:
            prefix = f"{parts.netloc}{parts.path}".rstrip("/")
            return ObjectStorage(plain_address, _s3_at(endpoint), prefix)
        try:
            filesystem, prefix = fs.FileSystem.from_uri(address)
        except (ValueError, pa.ArrowInvalid) as error:
            raise InputError(
                f"{plain_address} is not an address of object storage: {error}", hint=_HINT
            ) from error
    return ObjectStorage(plain_address, filesystem, str(prefix).rstrip("/"))


def _s3_at(endpoint: str) -> fs.S3FileSystem:
    """Connect to S3-compatible storage."""
    at = urlsplit(endpoint)
    if not at.netloc or at.scheme not in {"http", "https"}:
        raise InputError(
            f"AWS_ENDPOINT_URL={endpoint!r} is not a URL",
            hint="write it like https://minio.example:9000",
        )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        endpoint_override=at.netloc, scheme=at.scheme, region=region or "us-east-1"
    )


def _checked(address: str, name: str) -> str:
    """Return the name of an object that is also the path of a file below a folder."""
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name:
        raise InputError(
            f"{address} has an object {name!r}, which is not the name of a file",
            hint="it was not written by volbench; name the prefix of the campaigns",
        )
    return name


@contextmanager
def _reported(address: str, *, listed: bool = False) -> Iterator[None]:
    """Turn errors of the storage into the project's own.

    Args:
        listed: whether it was there a moment ago.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        text = " ".join(str(error).split())
        if any(word in text for word in _DENIED) or isinstance(error, PermissionError):
            raise AuthError(
                f"access to {address} was denied (403)",
                hint="check the credentials; reading needs s3:ListBucket and s3:GetObject,"
                " upload s3:PutObject",
            ) from error
        is_missing = isinstance(error, FileNotFoundError) or any(word in text for word in _MISSING)
        if is_missing and not listed:
            raise InputError(
                f"there is nothing at {address}", hint="check bucket, prefix and region"
            ) from error
        raise TransportError(
            f"{address} cannot be reached: {text[:_MAX_CAUSE]}",
            hint="check the address, the network and AWS_ENDPOINT_URL",
        ) from error


MAX_BYTES = 4 << 30  # Most that is fetched of one campaign

PLAN, JOURNAL = "campaign.json", "journal.jsonl"
_FIRST = (PLAN, JOURNAL, "tables/stamp", "tables/rules-stamp")


class CampaignCopy:
    """A campaign in object storage and its temporary copy."""

    def __init__(self, storage: ObjectStorage, sizes: Mapping[str, int]) -> None:
        temporary = tempfile.mkdtemp(prefix="volbench-", dir=temporary_folder())
        weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        # the copy, with the name of the original; files are in it once they are fetched
        self.root = Path(temporary) / storage.prefix.rpartition("/")[2]
        self._storage = storage
        self._sizes = sizes
        self._fetched: set[str] = set()
        self._by_folder: dict[str, list[tuple[str, int]]] = {}
        for name, size_bytes in sizes.items():
            folder, _, file = name.rpartition("/")
            self._by_folder.setdefault(folder, []).append((file, size_bytes))

    @property
    def address(self) -> str:
        """Where the original is."""
        return self._storage.address

    def fetch(self, *patterns: str) -> None:
        """Fetch the files whose names match, unless they are there."""
        wanted = {
            name: size_bytes
            for name, size_bytes in self._sizes.items()
            if name not in self._fetched and any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        total_bytes = sum(wanted.values())
        if total_bytes > MAX_BYTES:
            raise InputError(
                f"{total_bytes / 1e9:.3g} GB of {self.address} would have to be fetched",
                hint="copy the folder with the provider's tool; or run volbench show where the"
                " campaign was measured, which writes its tables, and upload them",
            )
        self._storage.download(wanted, self.root)
        self._fetched |= wanted.keys()

    def files_in(self, folder: Path) -> list[tuple[str, int]]:
        """Return name and size of each file that the original of a folder has."""
        return self._by_folder.get(folder.relative_to(self.root).as_posix(), [])

    def check_complete(self, ended: Iterable[str]) -> None:
        """Check that the folder was uploaded as a whole."""
        missing = [run for run in ended if f"runs/{run}" not in self._by_folder]
        if JOURNAL in self._sizes and not missing:
            return
        lacks = f"the files of {missing[0]}" if missing else JOURNAL
        if len(missing) > 1:
            lacks += f" and of {len(missing) - 1} more runs"
        raise ArchiveError(
            f"{self.address} is only a part of a campaign folder: it lacks {lacks}",
            hint="upload the folder again, as a whole",
        )


def open_address(address: str) -> list[CampaignData]:
    """Open every campaign at or below an address in object storage.

    Raises:
        InputError: there is none.
        ArchiveError: one is damaged, incomplete, or written by a newer volbench.
        TransportError: the storage does not answer, or denies access.
    """
    storage = open_storage(address)
    campaigns = open_copies(storage, storage.sizes())
    if not campaigns:
        raise InputError(
            f"there is no campaign at {address}",
            hint="name a folder that was uploaded as a whole, with its campaign.json",
        )
    return campaigns


def open_copies(storage: ObjectStorage, sizes: Mapping[str, int]) -> list[CampaignData]:
    """Open the campaigns among listed objects, in the order of their names; there may be none.

    Their plans, journals and stamps of tables are fetched first.
    """
    by_folder: dict[str, dict[str, int]] = {folder: {} for folder in _campaign_folders(sizes)}
    for name, size_bytes in sizes.items():
        for folder in (parent for parent in _parents(name) if parent in by_folder):
            by_folder[folder][name[len(folder) :].removeprefix("/")] = size_bytes
    copies = [CampaignCopy(storage.below(folder), files) for folder, files in by_folder.items()]
    with ThreadPoolExecutor(_CAMPAIGNS_AT_ONCE) as pool:
        list(pool.map(lambda copy: copy.fetch(*_FIRST), copies))
    return [CampaignData(*read_campaign(copy.root), copy=copy) for copy in copies]


def _campaign_folders(names: Iterable[str]) -> list[str]:
    """Return folders with a plan that are not within another campaign, nor hidden."""
    plans = {name.rpartition("/")[0] for name in names if name.rpartition("/")[2] == PLAN}
    return sorted(
        folder
        for folder in plans
        if plans.isdisjoint(_parents(folder))
        and not any(name[:1] == "." for name in folder.split("/"))
    )


def _parents(name: str) -> Iterator[str]:
    """Yield every folder that a name lies in, the prefix itself as an empty text."""
    while name:
        name = name.rpartition("/")[0]
        yield name
