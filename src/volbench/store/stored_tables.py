"""Cache of a campaign's frames in Parquet files, validated by stamps.

Frames parsed from raw files share one stamp, frames derived from them (verdicts, findings,
aggregates) another. A cached frame is valid only if its stamp matches the versions below and the
fingerprint of the raw files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

from volbench.errors import ArchiveError
from volbench.model.campaign.planned_run import Campaign
from volbench.model.frames.columns import DERIVED
from volbench.store.atomic_files import write_atomic
from volbench.store.journal import History
from volbench.store.layout import Layout
from volbench.store.log_files import checksum
from volbench.store.parquet_tables import read_table, write_tables
from volbench.store.small_files import read_text

# Incremented when the same raw files yield different rows, so that tables are rebuilt
TABLES_VERSION = "14"
# Incremented when the same rows yield different verdicts, findings or aggregates
RULES_VERSION = "14"


def files_in(folder: Path) -> list[tuple[str, int]]:
    """Return name and size of each file in a folder; none if it is missing or unreadable."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.stat().st_size) for entry in entries if entry.is_file()]
    except OSError:
        return []


def fingerprint_of(
    layout: Layout,
    campaign: Campaign,
    history: History,
    *,
    listed: Callable[[Path], list[tuple[str, int]]] = files_in,
) -> str:
    """Return a digest of the names and sizes of all raw files behind the frames.

    Contents and timestamps are excluded: the cache stays valid when a campaign is copied, and
    checking thousands of runs takes a fraction of a second.
    """
    digest = blake2b(digest_size=16)

    def add_files(folder: Path) -> None:
        pairs = sorted(listed(folder))
        digest.update("".join(f"{name} {size}\n" for name, size in pairs).encode())

    for run in campaign.runs:
        state = history.states.get(run.id)
        if state is not None and state.has_ended:
            digest.update(f"{run.id} {state}\n".encode())
            add_files(layout.run(run.id).path)
    for role in campaign.cold_probe_roles:
        add_files(layout.probe(role).path)
    return digest.hexdigest()


@dataclass(frozen=True)
class StoredTables:
    """The Parquet files of a campaign."""

    layout: Layout  # paths of the campaign
    fingerprint: str  # current fingerprint of its raw files

    def path(self, name: str) -> Path:
        """Return the path of a frame's file, which need not exist."""
        return self.layout.tables / f"{name}.parquet"

    def is_current(self, name: str) -> bool:
        """Return whether the stored frame is up to date."""
        return name in self._checksums(name)

    def is_intact(self, name: str) -> bool:
        """Return whether the file of a frame is as it was written."""
        path = self.path(name)
        return path.is_file() and checksum(path) == self._checksums(name).get(name)

    def read(self, name: str) -> pa.Table:
        """Read a frame from its file, which is as it was written."""
        path = self.path(name)
        if not self.is_intact(name):
            raise ArchiveError(
                f"{path} is not as volbench wrote it",
                hint="delete the tables folder; it is rebuilt from the raw files",
                path=str(path),
            )
        return read_table(path)

    def keep(self, parts: Iterable[Mapping[str, pa.Table]]) -> bool:
        """Write all frames of one kind and then their stamp, which marks them as complete.

        Write errors, such as a read-only folder or a full disk, are ignored: the files are a cache.

        Args:
            parts: frame name to consecutive rows, read only where files can be written.

        Returns:
            Whether the frames were written; if not, some of the parts may be used up.
        """
        if not os.access(self.layout.root, os.W_OK):
            return False
        names: dict[str, None] = {}

        def named() -> Iterator[Mapping[str, pa.Table]]:
            for part in parts:
                names.update(dict.fromkeys(part))
                yield part

        with suppress(ArchiveError):
            write_tables(self.layout.tables, named())
            first = next(iter(names))
            lines = [f"{checksum(self.path(name))}  {name}.parquet\n" for name in names]
            write_atomic(self._stamp_file(first), self._stamp(first) + "".join(lines))
            return True
        return False

    def _checksums(self, name: str) -> dict[str, str]:
        """Return the checksum of each frame of a kind; empty if they are not up to date."""
        lines = read_text(self._stamp_file(name)).splitlines(keepends=True)
        if not lines or lines[0] != self._stamp(name):
            return {}
        pairs = [line.rstrip("\n").partition("  ") for line in lines[1:]]
        return {file.removesuffix(".parquet"): digest for digest, _, file in pairs}

    def _stamp_file(self, name: str) -> Path:
        return self.layout.tables / ("rules-stamp" if name in DERIVED else "stamp")

    def _stamp(self, name: str) -> str:
        rules = f" rules {RULES_VERSION}" if name in DERIVED else ""
        return f"tables {TABLES_VERSION}{rules} files {self.fingerprint}\n"
