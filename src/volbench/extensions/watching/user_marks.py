"""Marks of users on the time axis of watches that are under way.

A mark is a line of JSON in the folder of the campaign, which its watch copies into its logs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress

from volbench.errors import CampaignError, InputError
from volbench.present.formatting import printable
from volbench.store.archive import is_held, read_campaign
from volbench.store.atomic_files import unwritable
from volbench.store.consent import folder_of
from volbench.store.layout import Layout, key_file

MAX_TEXT = 120  # Characters that fit beside a line of a chart
_MAX_LINE_BYTES = 4096


class MarkReader:
    """Reads the marks of a watch as they are added."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.marks
        self._offset = 0

    def fresh(self) -> Iterator[tuple[str, float]]:
        """Yield text and time, in seconds since the epoch, of the marks since the last call.

        A line that is no mark is passed over: only this user can write to the folder.
        """
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size == self._offset:
                    return
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):
                match json.loads(line[:_MAX_LINE_BYTES]):
                    case {"utc_s": float(utc_s), "text": str(text)}:
                        yield _one_line(text), utc_s


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))[:MAX_TEXT]


def running_watches() -> list[Layout]:
    """Return the folders of this user's watches that are under way."""
    layouts = []
    folder = key_file().with_name("running")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (root := folder_of(path.name)) is not None:
            layout, archive = read_campaign(root)
            if archive.campaign.is_watched and is_held(layout):
                layouts.append(layout)
    return layouts


def add_mark(text: str, layouts: list[Layout]) -> None:
    """Add a mark to watches."""
    line = _one_line(text)
    if not line:
        raise InputError("a mark needs a text", hint='write it like --mark "vm 7 started"')
    if not layouts:
        raise CampaignError(
            "no watch of this user is running", hint="start one in another terminal: volbench watch"
        )
    content = json.dumps({"utc_s": time.time(), "text": line}) + "\n"
    for layout in layouts:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(layout.marks, flags, 0o600)
            try:
                os.write(descriptor, content.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unwritable(layout.marks, error) from error
