"""Table of noise floors: what blocks of equal arms show of a volume."""

from __future__ import annotations

import math
from collections.abc import Sequence

from volbench.analyse.compare.comparison_result import change_text
from volbench.analyse.compare.needed_repeats import MAX_BLOCKS
from volbench.analyse.compare.noise_floor import NoiseFloor
from volbench.present.formatting import MISSING
from volbench.present.tables.compare_table import measure_name
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import counted_noun, format_duration, percent

_BLOCKS = (3, 5, 10, 30)


def noise_table(
    floors: Sequence[NoiseFloor], *, detect: float | None = None, are_equal: bool = True
) -> Table[NoiseFloor]:
    """Return a row for each metric.

    Args:
        detect: relative difference whose number of blocks is wanted; None for none.
        are_equal: whether all arms are one job on one volume.
    """
    return Table(
        "noise",
        [
            Column("job", lambda row: row.row.label, priority=IDENTITY),
            *([_DIRECTION] if _differ(floors) else []),
            Column("metric", lambda row: measure_name(row.row.measure), priority=IDENTITY),
            Column("blocks", lambda row: str(row.blocks), priority=3, is_right=True),
            Column("scatter", lambda row: f"{percent(row.scatter)} %", is_right=True),
            Column("drift", _drift, is_right=True),
            *(
                Column(
                    f"detectable_{count}",
                    lambda row, count=count: f"{percent(row.detectable(count))} %",  # type: ignore[misc]  # the default binds the loop's value
                    header=f"{count} blocks",
                    priority=2,
                    is_right=True,
                )
                for count in _BLOCKS
            ),
            Column("host", _host, priority=2, is_folded=True),
        ],
        floors,
        record=_record,
        title="Noise floor: the smallest difference that so many blocks detect (80 % power).",
        notes=[
            *_notes(floors, are_equal=are_equal),
            *(_needed(floor, detect, _name(floor, floors)) for floor in floors if detect),
        ],
    )


_DIRECTION: Column[NoiseFloor] = Column(
    "direction", lambda floor: floor.row.direction, priority=IDENTITY
)


def _differ(floors: Sequence[NoiseFloor]) -> bool:
    return len({floor.row.direction for floor in floors}) > 1


def _name(floor: NoiseFloor, floors: Sequence[NoiseFloor]) -> str:
    """Return the metric of a note, with its direction where the floors are of several."""
    return f"{floor.row.direction} " * _differ(floors) + measure_name(floor.row.measure)


def _drift(row: NoiseFloor) -> str:
    return change_text(math.exp(row.drift)) if row.drift else "none"


def _host(row: NoiseFloor) -> str:
    return f"{100 * row.host_share:.0f} % {row.cause}" if row.cause else MISSING


def _notes(floors: Sequence[NoiseFloor], *, are_equal: bool) -> list[str]:
    runs = "equal runs" if are_equal else "runs of different arms"
    notes = [
        f"Scatter: standard deviation of the ratio of two {runs} next to each other.",
        "Drift: change over all blocks, which pairing removes.",
    ]
    if any(floor.cause for floor in floors):
        notes.append("Host: share of the scatter that a sample of the host explains.")
    if not are_equal:
        notes.append(
            "Only the noise of their ratio is shown, since the arms are not equal. For the ratio,"
            " use volbench compare."
        )
        return notes
    wrong = [floor for floor in floors if floor.contrast.interval().excludes(1)]
    return notes + [
        f"{_name(floor, floors)}: equal arms differ significantly, as they do by chance"
        " in one of 20 cases; repeat it with more blocks."
        for floor in wrong
    ]


def _needed(floor: NoiseFloor, difference: float, name: str) -> str:
    count = floor.blocks_for(difference)
    if count is None:
        blocks = counted_noun(MAX_BLOCKS, "block")
        return f"{name}: even {blocks} would not detect {percent(difference)} %."
    minutes = format_duration(round(count * floor.block_s))
    blocks = counted_noun(count, "block")
    return f"{name}: {percent(difference)} % needs {blocks} (--repeat {count}), {minutes}."


def _record(row: NoiseFloor) -> dict[str, object]:
    return {
        "job": row.row.label,
        "direction": row.row.direction,
        "metric": row.row.measure.column,
        "blocks": row.blocks,
        "block_s": row.block_s,
        "scatter_percent": 100 * row.scatter,
        "drift_percent": 100 * math.expm1(row.drift),
        **{f"detectable_{count}_percent": 100 * row.detectable(count) for count in _BLOCKS},
        "host_cause": row.cause or None,
        "host_share": row.host_share,
    }
