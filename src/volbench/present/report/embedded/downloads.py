"""Frames as compressed CSV in data URIs, which readers of a page can save."""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from volbench.present.export.frame_export import export_frame
from volbench.present.report.content import ReportContent

ROOM_CHARS = 3_000_000  # Maximum size of all downloads of a page, so that it can be mailed
# Frames in the order in which they get room: the raw ones are large, and can be exported
_ORDER = (
    *("summary", "verdicts", "findings", "aggregate", "use", "percentiles"),
    *("histogram", "series", "device"),
)
_PIECE = 20_000  # Rows that are written at a time, so that a large frame is never a text as a whole
_HOPELESS = 1.1  # Share of the room that a frame may be expected to take, from its first rows
_GZIP = 31  # Window of zlib with the header of gzip
_HEAD = "data:application/gzip;base64,"


@dataclass(frozen=True)
class Download:
    """A table to save."""

    name: str  # of the frame
    file: str  # name of the file, ending in ``.csv``
    rows: int  # how many
    link: str  # data URI of the compressed CSV; empty when it is too large for the page


def downloads(content: ReportContent, *, room_chars: int) -> list[Download]:
    """Return every frame that has rows, compressed while there is room."""
    offered = []
    names = content.frames.keys()
    for name in (*_ORDER, *sorted(names - set(_ORDER))):
        rows = content.length(name)
        if not rows:
            continue
        link = _link(name, content.pieces(name, _PIECE), rows, room_chars)
        room_chars -= len(link)
        file = f"{file_name(content.campaign.name)}-{name}.csv"
        offered.append(Download(name, file, rows, link))
    return offered


def file_name(name: str) -> str:
    """Return a name that is a harmless file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "campaign"


def _link(name: str, pieces: Iterator[pd.DataFrame], rows: int, room_chars: int) -> str:
    """Return a frame as a data URI of compressed CSV, every number exact; empty without room."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    packed, taken = b"", 0
    for piece in pieces:
        stream = io.BytesIO()
        export_frame(piece, frame_name=name, format="csv", into=stream)
        text = stream.getvalue()
        packed += packer.compress(text if not taken else text.partition(b"\r\n")[2])
        packed += packer.flush(zlib.Z_SYNC_FLUSH)
        taken += len(piece)
        if 4 / 3 * len(packed) * rows / taken > _HOPELESS * room_chars:
            return ""
    link = _HEAD + base64.b64encode(packed + packer.flush()).decode()
    return link if len(link) <= room_chars else ""
