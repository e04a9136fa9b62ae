"""A folder to be in; a place beside it to write to, which becomes that folder when it is whole.

A process that is killed on the way leaves ``.NAME.importing`` beside the target. It holds no
campaign to anybody who looks for one, and the next import into the same target takes it away.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from volbench.errors import ArchiveError
from volbench.store.archive import hold_campaign, refuse_used, sync_folder
from volbench.store.layout import Layout


@contextmanager
def built_beside(target: Path) -> Iterator[Path]:
    """Give a folder to fill, and let it become the target when nothing went wrong.

    Args:
        target: does not exist, or is an empty folder.

    Yields:
        A path that does not exist yet.

    Raises:
        ArchiveError: the target is in use, another import is writing it, or it can't be written.
    """
    refuse_used(target)
    place = target.resolve()
    if place == Path.cwd() or place.is_mount():
        raise ArchiveError(
            f"{target} can't be replaced: it is the current folder or a filesystem of its own",
            hint="name a new folder with --output",
            context={"path": str(target)},
        )
    aside = place.with_name(f".{place.name}.importing")
    fresh = aside / "whole"
    try:
        aside.mkdir(parents=True, exist_ok=True)
        with hold_campaign(Layout(aside)):
            if fresh.exists():
                shutil.rmtree(fresh)
            try:
                yield fresh
                _sync_all(fresh)
                fresh.rename(place)
                sync_folder(place.parent)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise ArchiveError(
            f"{target} can't be written: {error.strerror or error}",
            hint="check permissions and free space, or choose another folder with --output",
            context={"path": str(target)},
        ) from error


def _sync_all(root: Path) -> None:
    """Make every file and every name below a folder durable."""
    for folder, _, files in os.walk(root):
        for name in files:
            with (Path(folder) / name).open("rb") as stream:
                os.fsync(stream.fileno())
        sync_folder(Path(folder))
