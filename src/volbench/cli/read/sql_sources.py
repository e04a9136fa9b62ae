"""Sources of SQL queries: campaign folders, exported datasets and object storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from volbench.dataset import Dataset, open_campaigns
from volbench.errors import InputError
from volbench.store.dataset_parts import Parts, local_parts, remote_parts
from volbench.store.sql_query import QueryLimits, View, run_query


class Sources:
    """Places that are read together.

    Args:
        campaigns: folders of campaigns; None for none.
        parts: exported datasets, of which at most one place may be object storage.
    """

    def __init__(self, campaigns: Dataset | None, parts: Sequence[Parts]) -> None:
        self._campaigns = campaigns
        self._parts = parts
        remote = [part.filesystem for part in parts if part.filesystem is not None]
        if len(remote) > 1:
            raise InputError(
                "only one address of object storage can be read at a time",
                hint="name the prefix that holds both",
            )
        self._filesystem = remote[0] if remote else None

    def answer(self, query: str, *, limits: QueryLimits) -> pa.Table:
        """Return the answer to a query over every frame of all places.

        Raises:
            InputError: as of `run_query`.
        """
        return run_query(query, self._view, filesystem=self._filesystem, limits=limits)

    def _view(self, name: str) -> View:
        view = View() if self._campaigns is None else self._campaigns.view(name)
        for part in self._parts:
            view.files.extend(part.files.get(name, ()))
        return view


def open_sources(places: Sequence[str], *, endpoint: str = "") -> Sources:
    """Open places to ask questions of.

    Args:
        places: campaign folders, folders that hold some, exported datasets, or addresses such as
            ``s3://bucket/prefix``.
        endpoint: of a storage that speaks S3.

    Raises:
        InputError: a place holds neither.
        ArchiveError: a campaign is damaged, or was written by a newer volbench.
        TransportError: the storage does not answer, or refuses.
    """
    parts, folders = [], []
    for place in places:
        if "://" in place:
            parts.append(remote_parts(place, endpoint=endpoint))
            continue
        if not Path(place).is_dir():
            raise InputError(
                f"there is no folder {place}", hint="name campaign folders, or a folder with some"
            )
        found = local_parts(Path(place))
        if found.files:
            parts.append(found)
        else:
            folders.append(place)
    return Sources(open_campaigns(*folders) if folders else None, parts)
