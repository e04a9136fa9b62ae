"""Frames as compressed CSV in data URIs, which readers of a page can save."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from volbench.present.export.frame_export import export_frame
from volbench.present.renderers.interactive import pack

ROOM_CHARS = 3_000_000
"""Maximum size of all downloads of a page, so that it can be mailed."""
_ORDER = (
    *("summary", "verdicts", "findings", "aggregate", "use", "percentiles"),
    *("histogram", "series", "device"),
)
"""Frames in the order in which they get room: the raw ones are large, and can be exported."""


@dataclass(frozen=True)
class Download:
    """A table to save.

    Attributes:
        name: of the frame.
        file: name of the file, ending in ``.csv``.
        rows: how many.
        link: data URI of the compressed CSV; empty when it is too large for the page.
    """

    name: str
    file: str
    rows: int
    link: str


def downloads(
    frames: Mapping[str, pd.DataFrame], *, campaign: str, room_chars: int
) -> list[Download]:
    """Return every frame that has rows, compressed while there is room.

    Args:
        frames: frame name to frame.
        campaign: begins the names of the files.
        room_chars: that all of them may take.
    """
    offered = []
    for name in (*_ORDER, *sorted(frames.keys() - set(_ORDER))):
        frame = frames.get(name)
        if frame is None or frame.empty:
            continue
        link = _link(name, frame) if frame.size < 2 * room_chars else ""
        if len(link) > room_chars:
            link = ""
        room_chars -= len(link)
        offered.append(Download(name, f"{file_name(campaign)}-{name}.csv", len(frame), link))
    return offered


def file_name(name: str) -> str:
    """Return a name that is a harmless file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "campaign"


def _link(name: str, frame: pd.DataFrame) -> str:
    """Return a frame as a data URI of compressed CSV, every number exact."""
    stream = io.BytesIO()
    export_frame(frame, frame_name=name, format="csv", into=stream)
    return "data:application/gzip;base64," + pack(stream.getvalue())
