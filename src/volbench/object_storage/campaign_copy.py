"""Campaign folder in object storage, as a local copy that is fetched file by file as needed.

The copy is temporary and ends with the process. Which files there are, and their sizes, is known
from one listing, so that stored tables can be recognised as current without the raw files.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from volbench.api.one_campaign import CampaignData
from volbench.errors import ArchiveError, InputError
from volbench.object_storage.object_storage import ObjectStorage, open_storage
from volbench.store.archive import read_campaign

MAX_BYTES = 4 << 30  # Most that is fetched of one campaign

PLAN, JOURNAL = "campaign.json", "journal.jsonl"
_FIRST = (PLAN, JOURNAL, "tables/stamp", "tables/rules-stamp")
_THREADS = 8


class CampaignCopy:
    """A campaign in object storage and its temporary copy.

    Args:
        sizes: size in bytes of each of its objects, by name.
    """

    def __init__(self, storage: ObjectStorage, sizes: Mapping[str, int]) -> None:
        temporary = tempfile.mkdtemp(prefix="volbench-")
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
            if name not in self._fetched and any(fnmatchcase(name, own) for own in patterns)
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
    """Open every campaign among listed objects; there may be none."""
    return [
        CampaignData(*read_campaign(copy.root), copy=copy)
        for copy in campaign_copies(storage, sizes)
    ]


def campaign_copies(storage: ObjectStorage, sizes: Mapping[str, int]) -> list[CampaignCopy]:
    """Return the campaigns at or below a prefix, in the order of their names; there may be none.

    Their plans, journals and stamps of tables are fetched.

    Args:
        sizes: size in bytes of each object below it, by name.
    """
    parts: dict[str, dict[str, int]] = {folder: {} for folder in _campaign_folders(sizes)}
    for name, size_bytes in sizes.items():
        for folder in (own for own in _parents(name) if own in parts):
            parts[folder][name[len(folder) :].removeprefix("/")] = size_bytes
    copies = [CampaignCopy(storage.below(folder), own) for folder, own in parts.items()]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda copy: copy.fetch(*_FIRST), copies))
    return copies


def _campaign_folders(names: Iterable[str]) -> list[str]:
    """Return folders with a plan that are not within another campaign, nor hidden."""
    plans = {name.rpartition("/")[0] for name in names if name.rpartition("/")[2] == PLAN}
    return sorted(
        folder
        for folder in plans
        if plans.isdisjoint(_parents(folder))
        and not any(part[:1] == "." for part in folder.split("/"))
    )


def _parents(name: str) -> Iterator[str]:
    """Yield every folder that a name lies in, the prefix itself as an empty text."""
    while name:
        name = name.rpartition("/")[0]
        yield name
