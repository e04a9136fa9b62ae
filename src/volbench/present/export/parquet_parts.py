"""Folder of Parquet files, one for each frame of a campaign, that grows with every export.

``DATASET/<frame>/<campaign>.parquet``: all files of a folder have the columns of one frame, but
for labels of hosts, so that any program that reads Parquet can read a folder as one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import InputError
from volbench.present.export.frame_export import render_parquet, replace_file

MADE = "volbench_campaign"
"""Key of a file's metadata that says which campaign it is of."""


class Rows(Protocol):
    """The rows of a frame that one campaign has."""

    @property
    def campaign(self) -> str:
        """Name of the campaign."""

    @property
    def made(self) -> str:
        """When it was planned; tells it from another one of its name."""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows."""


def write_parts(parts: Iterable[Rows], *, frame_name: str, into: Path) -> tuple[Path, ...]:
    """Write a frame of several campaigns, a file each; an older one of the same campaign goes.

    Args:
        parts: the rows of each campaign.
        frame_name: such as ``summary``; the folder's name.
        into: the dataset; made when missing.

    Returns:
        The files that were written.

    Raises:
        InputError: one can't be written, or a file there is of another campaign of that name.
    """
    folder = into / frame_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} can't be made: {error.strerror}",
            hint="name a folder that you may write to",
            context={"path": str(folder)},
        ) from error
    files = []
    for part in parts:
        file = folder / f"{re.sub(r'[^A-Za-z0-9.()_-]', '_', part.campaign)}.parquet"
        _check(file, part)
        replace_file(
            file, render_parquet(part.frame, frame_name=frame_name, facts={MADE: part.made})
        )
        files.append(file)
    return tuple(files)


def _check(file: Path, part: Rows) -> None:
    """Refuse to replace the rows of another campaign."""
    if not file.exists():
        return
    try:
        made = (pq.read_schema(file).metadata or {}).get(MADE.encode(), b"").decode()
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{file} is no Parquet file: {error}",
            hint="export into a folder of its own",
            context={"path": str(file)},
        ) from error
    if made != part.made:
        raise InputError(
            f"{file} holds another campaign that is also named {part.campaign}",
            hint="export both in one command, which tells them apart by their folders' names, into "
            "a new folder",
            context={"path": str(file), "holds": made},
        )
