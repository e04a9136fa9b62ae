"""Cache of campaigns made of results of fio, for verbs that read results where they are."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sys
import time
from contextlib import suppress
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from volbench import __version__
from volbench.errors import ArchiveError, InputError, OutputError, quoted, unwritten
from volbench.extensions.importer.import_campaign import ImportRequest, staged_import
from volbench.extensions.importer.scan_folders import ScanResult, sources_below
from volbench.store.held_folder import has_mount
from volbench.store.layout import results_cache
from volbench.store.log_files import MAX_BYTES
from volbench.units import counted_noun

_LOG = logging.getLogger(__name__)
_UNUSED_S = 30 * 86_400  # after which a copy is removed: it can be made again
# More are probably not results: reading a home folder takes minutes. 3,500 runs with logs: 30,000.
_MAX_FILES = 50_000
# Larger files, such as those that fio wrote to, are recognised by size and time of their change.
_HASHED_BYTES = 16 << 20


def cached_campaign(path: Path) -> Path:
    """Return a campaign in the cache with the results of fio in a file or folder, or in ``-``.

    It is made anew when a file has changed. A line says so, and how to keep the results.
    """
    if path != Path("-"):
        return _campaign_of(path, shown=str(path), source=str(path))
    with TemporaryDirectory() as folder:
        file = Path(folder, "stdin.json")
        file.write_bytes(sys.stdin.buffer.read(MAX_BYTES + 1))
        return _campaign_of(file, shown="standard input", source="FILE")


def _campaign_of(path: Path, *, shown: str, source: str) -> Path:
    cache = results_cache()
    entry = cache / _fingerprint(path)
    campaign, counts = entry / "campaign", entry / "counts"
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (cache / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entry.mkdir(mode=0o700, exist_ok=True)
            os.utime(entry)
            if not campaign.exists():
                for other in cache.glob("[0-9a-f]" * 32):
                    if time.time() - other.stat().st_mtime > _UNUSED_S and not has_mount(other):
                        shutil.rmtree(other, ignore_errors=True)
                counts.write_text(_import(path, campaign), encoding="utf-8")
        found = counts.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"set XDG_CACHE_HOME, or keep them: volbench import {quoted(source)} -o NAME"
        message, hint = unwritten(cache, error, hint=hint)
        raise ArchiveError(message, hint=hint) from error
    _LOG.warning("%s: %s; to keep them: volbench import %s -o NAME", shown, found, quoted(source))
    return campaign


def _fingerprint(path: Path) -> str:
    """Return a digest of the names and contents of the files at and below a path."""
    digest = sha256(f"{__version__} {path.resolve().name}".encode())
    sources = list(islice(sources_below(path, ScanResult()), _MAX_FILES + 1))
    if len(sources) > _MAX_FILES:
        raise InputError(
            f"{path} has no campaign, and more than {_MAX_FILES:,} files",
            hint="name the folder with the results",
        )
    for source in sources:
        digest.update(f"\0{source.inside}\0".encode())
        with suppress(OSError):  # the import says that it cannot be read
            status = source.path.stat()
            if source.path.is_file() and status.st_size <= _HASHED_BYTES:
                digest.update(sha256(source.path.read_bytes()).digest())
            else:
                digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def _import(path: Path, campaign: Path) -> str:
    """Import results; return how much was imported, and what was not."""
    request = ImportRequest(paths=(path,), into=campaign, name=path.resolve().stem)
    try:
        with staged_import(request) as report:
            found = f"{counted_noun(len(report.runs), 'run')} of results from fio"
            left = {"malformed files": report.malformed, "notes": report.remarks}
            more = ", ".join(f"{what}: {len(each)}" for what, each in left.items() if each)
            return f"{found} ({more}; the first: {next(chain(*left.values()))})" if more else found
    except OutputError as error:
        shutil.rmtree(campaign.parent, ignore_errors=True)
        raise InputError(
            f"there is no campaign in {path}, and {error.message}", hint=error.hint
        ) from error
