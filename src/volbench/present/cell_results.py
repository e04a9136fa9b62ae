"""Results of the cells of a design: medians of repeats, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median

from volbench.analyse.compare.repeat_statistics import Group
from volbench.analyse.frames.design import MIN_REPEAT_RATIO, UNKNOWN, Cell, Design, Row, asked_rate
from volbench.analyse.frames.run_options import with_sums
from volbench.present.formatting import latency, number, text
from volbench.units import format_count, format_latency, format_rate

# Columns that `answer_of` adds: whether the rate changed and its level at the end, if that is
# known, and syncs of buffered writes
CHANGED, END_IOPS = "_changed", "_end_iops"
SYNC_P99, SYNC_CALLS = "_sync_p99_s", "_sync_calls"
_ASKED_SHARE = 0.95  # Of an asked rate, below which a run fell short. Noticed by: test_answer.py


@dataclass(frozen=True)
class CellResult:
    """What was measured in a cell; numbers are NaN if they are not known."""

    cell: Cell
    rows: tuple[Row, ...]  # of its repeats
    iops: float  # median, like the others
    bw_bytes_per_s: float
    p99_s: float
    rates: tuple[float, ...]  # of each repeat: IOPS, or bandwidth where no IOPS are known

    @property
    def row(self) -> Row:
        """The row of the first repeat."""
        return self.rows[0]

    @property
    def rate(self) -> float:
        """Median of the rates."""
        return median(self.rates) if self.rates else math.nan

    @property
    def group(self) -> Group:
        """The rates with their volumes and blocks, for a comparison."""
        column = "bw_bytes_per_s" if math.isnan(self.iops) else "iops"
        rows = [row for row in self.rows if not math.isnan(number(row, column))]
        blocks = [(row.get("campaign"), row["block"]) if row.get("block") else None for row in rows]
        unknown = [row.get("campaign") if row.get("host") == UNKNOWN else "" for row in rows]
        volumes = [(r.get("host"), r.get("volume"), n) for r, n in zip(rows, unknown, strict=True)]
        starts = [text(row, "started_utc") for row in rows]
        return Group(self.rates, volumes, blocks=blocks, starts=starts)

    @property
    def asked(self) -> str:
        """What fio was asked to keep, such as ``rate_iops=3000``; empty for nothing."""
        return asked_rate(self.row)

    @property
    def rate_words(self) -> str:
        """The rate with its unit."""
        return self._shown(self.rate)

    @property
    def range_words(self) -> str:
        """The lowest to the highest repeat; empty for a single run."""
        if len(self.rates) < 2:
            return ""
        shown = format_rate if math.isnan(self.iops) else format_count
        return " to ".join(dict.fromkeys(map(shown, (min(self.rates), max(self.rates)))))

    @property
    def uneven(self) -> float:
        """Fastest over slowest repeat, if they differ twofold; otherwise 0."""
        low, high = min(self.rates, default=0.0), max(self.rates, default=0.0)
        return high / low if high >= MIN_REPEAT_RATIO * low > 0 else 0.0

    @property
    def full_words(self) -> str:
        """Rate, bandwidth and p99, with what a median hides."""
        changed = self._changed_words
        if self.uneven:
            return (
                f"{self.range_words} IOPS in {len(self.rates)} repeats{changed}. They differ by a"
                f" factor of {self.uneven:.2g}: one rate would mislead. Look at the repeats over"
                " time, remove the cause, and measure again"
            )
        how = " on average" if changed else ""
        if self.range_words:
            how = f" (median of {len(self.rates)}, {self.range_words})"
        first = [f"{self.rate_words}{how}"] if self.rates else []
        return f"{', '.join([*first, *self.more_words])}{changed}"

    @property
    def _changed_words(self) -> str:
        changed = [row for row in self.rows if row.get(CHANGED)]
        if not changed:
            return ""
        if len(changed) < len(self.rows):
            return f"; the rate changed during {len(changed)} of {len(self.rows)} runs"
        ends = _known_numbers(number(row, END_IOPS) for row in changed)
        if len(ends) < len(changed):
            return "; the rate changed and had not settled at the end"
        return f"; the rate changed, at the end it was {self._shown(median(ends))}"

    @property
    def bandwidth_words(self) -> str:
        """The bandwidth; that of buffered I/O may be of memory."""
        how = " buffered" if self.row.get("direct") is False else ""
        return f"{format_rate(self.bw_bytes_per_s)}{how}"

    @property
    def more_words(self) -> list[str]:
        """Bandwidth and p99, as far as they are known."""
        words = []
        if not math.isnan(self.iops) and not math.isnan(self.bw_bytes_per_s):
            words.append(self.bandwidth_words)
        syncs = _known_numbers(number(row, SYNC_P99) for row in self.rows)
        if syncs:
            words.append(f"{text(self.row, SYNC_CALLS)} p99 {format_latency(median(syncs))}")
        elif not math.isnan(self.p99_s):
            words.append(f"p99 {format_latency(self.p99_s)}")
        return words

    @property
    def kept(self) -> str:
        """Whether the rate is as fio was asked to keep it, or its latency; empty if it was not."""
        if not self.asked:
            return ""
        told, jobs = self.row.get("rate_iops"), number(self.row, "numjobs")
        wanted = float(str(told)) if str(told).isdecimal() else math.nan
        wanted *= 1.0 if math.isnan(jobs) else jobs
        kept = "at the latency asked for" if self.asked.startswith("latency") else "as asked"
        return "less than asked" if self.iops < _ASKED_SHARE * wanted else kept

    @property
    def asked_words(self) -> str:
        """The rate, and whether it is as fio was asked to keep it, or its latency."""
        return ", ".join([self.rate_words, f"{self.kept} ({self.asked})", *self.more_words[-1:]])

    def _shown(self, rate: float) -> str:
        return format_rate(rate) if math.isnan(self.iops) else f"{format_count(rate)} IOPS"


def cell_results(design: Design) -> list[CellResult]:
    """Return what was measured in each cell of a design."""
    return [
        cell_result(cell, tuple(design.rows[place] for place in cell.places))
        for cell in design.cells
    ]


def cell_result(cell: Cell, rows: tuple[Row, ...]) -> CellResult:
    """Return what was measured in a cell.

    A percentile of some of the repeats does not belong beside the rate of all.
    """
    iops = _known_numbers(number(row, "iops") for row in rows)
    bandwidth = _known_numbers(number(row, "bw_bytes_per_s") for row in rows)
    tails = _known_numbers(latency(row, "p99").seconds for row in rows)
    return CellResult(
        cell,
        rows,
        median(iops) if iops else math.nan,
        median(bandwidth) if bandwidth else math.nan,
        median(tails) if len(tails) == len(rows) else math.nan,
        tuple(iops or bandwidth),
    )


def mixed_totals(results: Sequence[CellResult]) -> list[CellResult]:
    """Return the reads and writes of each mixed cell as one, in the order of the results."""
    of_runs: dict[tuple[object, ...], list[CellResult]] = {}
    for each in results:
        of_runs.setdefault(tuple((r["run"], r.get("group")) for r in each.rows), []).append(each)
    return [
        cell_result(parts[0].cell, tuple(with_sums(rows, itemgetter("run"))))
        for parts in of_runs.values()
        if len({part.row.get("direction") for part in parts}) == len(parts) > 1
        for rows in [[{**row, "direction": None} for part in parts for row in part.rows]]
    ]


def merged(results: Sequence[CellResult]) -> CellResult:
    """Return several cells as one, such as the volumes of one type."""
    if len(results) == 1:
        return results[0]
    return cell_result(results[0].cell, tuple(row for result in results for row in result.rows))


def _known_numbers(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
