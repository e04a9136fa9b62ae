"""Compressed parts of the report's page, decoded on demand: runs, their details, downloads.

Numbers of the details have five significant digits; long series keep the extremes of each stretch,
so that a stall of one sample stays visible. The downloads and ``volbench export`` have every number
in full.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.analyse.frames.resample import Floats
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.results.finding import Severity
from volbench.present.export.frame_export import export_frame
from volbench.present.formatting import STATISTICS, Row, latency, number, printable, records, text
from volbench.present.renderers.interactive import pack
from volbench.present.renderers.interactive.plot_json import columns_form
from volbench.present.report.content import ReportContent
from volbench.present.tables.findings_table import badges_of, rows_by_run
from volbench.present.tables.table import Source, Table

_TEXTS = ("campaign", "run", "host", "job", "group", "volume", "direction", "rw", "phase", "status")
_NUMBERS = (
    *("block_bytes", "iodepth", "numjobs", "repeat", "direct", "iops", "bw_bytes_per_s"),
    *("cpu_usr", "cpu_sys", "limit_iops", "limit_bw_bytes_per_s", "runtime_s"),
)


@dataclass(frozen=True)
class RunColumns:
    """Every run of a page."""

    payload: str  # base64 of the compressed columns, a row for each run, section and direction
    # prefix of a campaign's ids with the id of a run, to the number of the run
    numbers: Mapping[str, int]

    def numbered(self, prefix: str, runs: Iterable[str]) -> str:
        """Return the numbers of some runs of a campaign, as an attribute of an element."""
        numbers = (self.numbers.get(f"{prefix}{run}") for run in runs)
        return " ".join(str(run_number) for run_number in numbers if run_number is not None)


def run_columns(campaigns: Sequence[tuple[str, ReportContent]]) -> RunColumns:
    """Return the runs of all campaigns of a page."""
    numbers: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for prefix, content in campaigns:
        findings = rows_by_run(records(content.frames.get("findings", pd.DataFrame())))
        for row in records(content.frames.get("summary", pd.DataFrame())):
            key = f"{prefix}{text(row, 'run')}"
            index = numbers.setdefault(key, len(numbers))
            rows.append({"number": index, "key": key} | _values(row, findings))
    return RunColumns(_packed(columns_form(pd.DataFrame(rows))) if rows else "", numbers)


def packed_rows(table: Table[Any], prefix: str, *, runs: RunColumns, first: int) -> str:
    """Return the rows of a table from the `first` on, compressed for the page to show on demand."""
    sources = [table.source(item) if table.source else Source() for item in table.rows[first:]]
    return _packed(
        [
            (
                [runs.numbers[prefix + run] for run in source.runs if prefix + run in runs.numbers],
                source.direction,
                list(_cells(table, item, prefix)),
            )
            for item, source in zip(table.rows[first:], sources, strict=True)
        ]
    )


def _cells(table: Table[Any], item: object, prefix: str) -> Iterator[tuple[object, ...]]:
    """Yield text, value, tooltip and badges of each cell, without what is empty at the end."""
    badges = [
        (badge.rule, badge.severity, badge.message, f"#{prefix}{badge.place}finding-{badge.rule}")
        for badge in table.badges_of(item)
    ]
    for index, column in enumerate(table.columns):
        parts: tuple[object, ...] = (column.cell(item), column.exact(item), column.hint(item))
        parts = (*parts, badges if index == 0 else [])
        while not parts[-1]:
            parts = parts[:-1]
        yield parts


def _packed(form: object) -> str:
    return pack(json.dumps(form, separators=(",", ":"), ensure_ascii=False))


def _values(row: Row, findings: Mapping[str, Sequence[Row]]) -> dict[str, object]:
    severities = {badge.severity for badge in badges_of(findings, row)}
    worst = next((severity.value for severity in _WORST if severity.value in severities), "")
    return {
        **{name: text(row, name) for name in (*_TEXTS, *_labels(row))},
        **{name: number(row, name) for name in _NUMBERS},
        **{f"lat_{name}_s": latency(row, name).seconds for name in STATISTICS},
        "severity": worst,
    }


_WORST = (Severity.INVALID, Severity.WARNING)


def _labels(row: Row) -> list[str]:
    return [name for name in row if name.startswith(LABEL_PREFIX)]


BATCH = 32  # Runs that are decoded together
_DIGITS = 5
_MAX_VALUES = 1_200_000  # Values of series on a page: of thousands of runs, each has fewer points
_BUCKETS = (40, 250)  # Fewest and most stretches of a series whose extremes are kept
_SERIES = ("t_s", "iops", "bw_bytes_per_s", "lat_mean_s", "lat_max_s")
_DEVICE = (
    *("t_s", "read_iops", "write_iops", "read_bw_bytes_per_s", "write_bw_bytes_per_s"),
    *("read_lat_s", "write_lat_s", "queue_depth", "active_percent"),
)
_FACTS = (
    *("run", "host", "profile", "job", "group", "role", "volume", "repeat", "phase", "status"),
    *("tool", "fio_version", "rw", "rwmixread", "direct", "ioengine", "size_bytes", "runtime_s"),
    *("io_bytes", "total_ios", "cpu_usr", "cpu_sys", "started_utc", "note"),
)
_VERDICT = ("direction", "verdict", "bottleneck", "explanation")
_LATENCY_KINDS = ("lat", "clat", "slat")
_FINDING = ("rule", "severity", "direction", "from_s", "to_s", "message")

Json = dict[str, object]


def run_details(
    campaigns: Sequence[tuple[str, ReportContent]], numbers: Mapping[str, int]
) -> Iterator[str]:
    """Yield the details of each batch of runs, compressed.

    Args:
        numbers: prefix and id of a run to its number; the batches are in their order.
    """
    values = len(_SERIES) * sum(part.length("series") for _, part in campaigns)
    buckets = int(np.clip(_BUCKETS[1] * _MAX_VALUES / max(values, 1), *_BUCKETS))
    parts = {prefix: _Parts(content, buckets) for prefix, content in campaigns}
    batch: list[Json] = []
    for key in numbers:
        prefix = next(part for part in parts if key.startswith(part))
        batch.append(parts[prefix].details(key.removeprefix(prefix)))
        if len(batch) == BATCH:
            yield _packed(batch)
            batch = []
    if batch:
        yield _packed(batch)


class _Columns:
    """Columns of a frame as arrays, and the places of the rows of each run and direction."""

    def __init__(self, frame: pd.DataFrame, names: Sequence[str], part: str) -> None:
        self._values = {
            name: frame[name].to_numpy(dtype=float, na_value=np.nan)
            for name in names
            if name in frame
        }
        self.places: dict[str, dict[str, npt.NDArray[np.intp]]] = {}
        if frame.empty:
            return
        codes = frame.groupby(["run", part], sort=False, dropna=False).ngroup().to_numpy()
        order = np.argsort(codes, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            run, key = (str(frame[name].iloc[places[0]]) for name in ("run", part))
            self.places.setdefault(run, {})[key] = places

    def rows(self, places: npt.NDArray[np.intp]) -> dict[str, Floats]:
        """Return some rows of each column that has a value in them."""
        values = {name: column[places] for name, column in self._values.items()}
        return {name: column for name, column in values.items() if not np.isnan(column).all()}


class _Parts:
    """What a campaign has of each run."""

    def __init__(self, content: ReportContent, buckets: int) -> None:
        frames = {
            name: content.frames.get(name, pd.DataFrame())
            for name in ("series", "device", "percentiles", "findings", "verdicts", "summary")
        }
        self._buckets = buckets
        self._jobs = content.jobs
        self._series = _Columns(frames["series"], _SERIES, "direction")
        self._device = _Columns(frames["device"], _DEVICE, "level")
        latencies = frames["percentiles"]
        if len(latencies):
            latencies = latencies.assign(part=latencies["direction"] + "/" + latencies["latency"])
        self._percentiles = _Columns(latencies, ("percentile", "value_s"), "part")
        self._findings = rows_by_run(records(_only(frames["findings"], ("run", *_FINDING))))
        self._verdicts = rows_by_run(records(_only(frames["verdicts"], ("run", *_VERDICT))))
        self._facts = rows_by_run(records(_only(frames["summary"], _FACTS)))

    def details(self, run: str) -> Json:
        """Return the details of a run as plain values."""
        device = self._device.places.get(run, {}).get("volume")
        return {
            "series": [
                {"direction": direction}
                | _thinned(self._series.rows(places), ("iops", "lat_mean_s"), self._buckets)
                for direction, places in self._series.places.get(run, {}).items()
            ],
            "device": []
            if device is None
            else [_thinned(self._device.rows(device), ("read_iops", "write_iops"), self._buckets)],
            "percentiles": self._percentiles_of(run),
            "findings": [_known(row, _FINDING) for row in self._findings.get(run, ())],
            "verdicts": [_known(row, _VERDICT) for row in self._verdicts.get(run, ())],
            "facts": _known(self._facts[run][0], _FACTS),
            "job": printable(self._jobs.get(run, "")),
        }

    def _percentiles_of(self, run: str) -> list[Json]:
        """Return the percentiles of each direction: of total latency where there is any."""
        places = self._percentiles.places.get(run, {})
        by_direction: dict[str, Json] = {}
        for key in sorted(places, key=lambda name: _LATENCY_KINDS.index(name.partition("/")[2])):
            direction, _, kind = key.partition("/")
            if kind != "slat" and direction not in by_direction:
                columns = {k: _rounded(v) for k, v in self._percentiles.rows(places[key]).items()}
                by_direction[direction] = {"direction": direction, "latency": kind, **columns}
        return list(by_direction.values())


def _only(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    return frame[[name for name in names if name in frame]]


def _known(row: Row, names: Sequence[str]) -> Json:
    """Return the known values of a row."""
    return {
        name: printable(value) if isinstance(value := row[name], str) else value
        for name in names
        if row.get(name) is not None
    }


def _thinned(values: Mapping[str, Floats], extremes: Sequence[str], buckets: int) -> Json:
    """Return the columns of a series without points that would not be visible."""
    given = [values[name] for name in extremes if name in values]
    count = len(next(iter(values.values()), ()))
    if given and count > 2 * buckets * len(given):
        positions = np.arange(count, dtype=float)
        kept = [keep_extremes(positions, column, buckets=buckets)[0] for column in given]
        index = np.unique(np.concatenate([*kept, positions[[0, -1]]])).astype(int)
        values = {name: column[index] for name, column in values.items()}
    return {name: _rounded(column) for name, column in values.items()}


def _rounded(values: Floats) -> list[float | int | None]:
    """Return numbers with few digits, whole ones as such; None for NaN."""
    size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    # Divided by a whole power of ten, a number has as few digits as it can.
    rounded = np.where(
        scale < 1, np.round(values * scale) * np.round(1 / scale), np.round(values * scale) / scale
    )
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in rounded.tolist()
    ]


ROOM_CHARS = 3_000_000  # A page can be mailed. Noticed by: tests/present/report/test_report_page.py
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
