"""Details of single runs in a report's page: series, device, percentiles, findings, job files.

The page decodes a batch of runs when one of them is opened. Numbers have five significant digits;
long series keep the extremes of each stretch, so that a stall of one sample stays visible. The
downloads and ``volbench export`` have every number in full.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.present.formatting import Row, printable, records
from volbench.present.renderers.interactive import pack
from volbench.present.report.content import ReportContent
from volbench.present.report.findings_section import by_run

BATCH = 32  # Runs that are decoded together
_DIGITS = 5
_MOST_VALUES = 1_200_000  # Values of series on a page: of thousands of runs, each has fewer points
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
_LATENCIES = ("lat", "clat", "slat")
_FINDING = ("rule", "severity", "direction", "from_s", "to_s", "message")

Json = dict[str, object]
Frames = Mapping[str, pd.DataFrame]
Floats = npt.NDArray[np.float64]


def run_details(
    campaigns: Sequence[tuple[str, ReportContent]], numbers: Mapping[str, int]
) -> Iterator[str]:
    """Yield the details of each batch of runs, compressed.

    Args:
        numbers: prefix and id of a run to its number; the batches are in their order.
    """
    values = len(_SERIES) * sum(own.length("series") for _, own in campaigns)
    buckets = int(np.clip(_BUCKETS[1] * _MOST_VALUES / max(values, 1), *_BUCKETS))
    parts = {prefix: _Parts(content, buckets) for prefix, content in campaigns}
    batch: list[Json] = []
    for key in numbers:
        prefix = next(own for own in parts if key.startswith(own))
        batch.append(parts[prefix].details(key.removeprefix(prefix)))
        if len(batch) == BATCH:
            yield _packed(batch)
            batch = []
    if batch:
        yield _packed(batch)


def _packed(batch: Sequence[Json]) -> str:
    return pack(json.dumps(batch, separators=(",", ":"), ensure_ascii=False))


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
            run, own = (str(frame[name].iloc[places[0]]) for name in ("run", part))
            self.places.setdefault(run, {})[own] = places

    def rows(self, places: npt.NDArray[np.intp]) -> dict[str, Floats]:
        """Return some rows of each column that has a value in them."""
        own = {name: column[places] for name, column in self._values.items()}
        return {name: column for name, column in own.items() if not np.isnan(column).all()}


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
        self._findings = by_run(records(_only(frames["findings"], ("run", *_FINDING))))
        self._verdicts = by_run(records(_only(frames["verdicts"], ("run", *_VERDICT))))
        self._facts = by_run(records(_only(frames["summary"], _FACTS)))

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
        own = self._percentiles.places.get(run, {})
        found: dict[str, Json] = {}
        for part in sorted(own, key=lambda name: _LATENCIES.index(name.partition("/")[2])):
            direction, _, kind = part.partition("/")
            if kind != "slat" and direction not in found:
                columns = {k: _rounded(v) for k, v in self._percentiles.rows(own[part]).items()}
                found[direction] = {"direction": direction, "latency": kind, **columns}
        return list(found.values())


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
        place = np.arange(count, dtype=float)
        kept = [keep_extremes(place, column, buckets=buckets)[0] for column in given]
        index = np.unique(np.concatenate([*kept, place[[0, -1]]])).astype(int)
        values = {name: column[index] for name, column in values.items()}
    return {name: _rounded(column) for name, column in values.items()}


def _rounded(values: Floats) -> list[float | int | None]:
    """Return numbers with few digits, whole ones as such; None for NaN."""
    size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    # Divided by a whole power of ten, a number has as few digits as it can.
    shown = np.where(
        scale < 1, np.round(values * scale) * np.round(1 / scale), np.round(values * scale) / scale
    )
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in shown.tolist()
    ]
