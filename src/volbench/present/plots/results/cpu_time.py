"""User and system time of each job's processes as stacked bars."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import measured, per_job
from volbench.present.formatting import number, records
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import (
    AnyMark,
    Axis,
    Bars,
    Panel,
    Plot,
    ReferenceLine,
    Series,
    Texts,
    Whiskers,
)
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import identified, job_names, rows_height_in, side_by_side
from volbench.present.plots.metrics import rows_axis

_PARTS = (Series("cpu_usr", "user", "palette-5"), Series("cpu_sys", "system", "palette-0"))
"""The key is the column."""
_FULL = 100.0


def cpu_rows(frames: Frames) -> pd.DataFrame:
    """Return a row per job with the medians of user and system time, and of their sum."""
    summary = frames["summary"]
    rated = summary[(summary["direction"] != "sync") & summary["cpu_usr"].notna()]
    # fio reports it once for a job, and both directions of a mixed job repeat it.
    jobs = rated.drop_duplicates(["run", "group"])
    jobs = jobs.assign(cpu=jobs["cpu_usr"] + jobs["cpu_sys"])
    return side_by_side(per_job(jobs, [*(part.key for part in _PARTS), "cpu"]))


def build(frames: Frames, _: Options) -> Plot:
    """Draw a bar for each job; the whisker is the range of the sum over the repeats."""
    rows = cpu_rows(frames)
    names = job_names(records(rows))
    data = _data(rows)
    most = float(data["_end"].max())
    marks: list[AnyMark] = [
        Bars(data=data, series="cpu_usr", at="_row", value="cpu_usr"),
        Bars(data=data, series="cpu_sys", at="_row", value="cpu_sys", base="cpu_usr"),
        Whiskers(data=data, at="_row", low="cpu_low", high="_high"),
        Texts(data=data, x="_end", y="_row", text="_text", offset_pt=(6, 0)),
    ]
    if most > _FULL * 0.8:
        marks.insert(0, ReferenceLine(_FULL, "x"))
    x = Axis("CPU time, of one CPU", "percent", limits=(0, max(most * 1.15, 1.0)))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=tuple(marks)),),
        heights=(rows_height_in(names),),
        series=_PARTS,
        caption=(
            pooled(frames["summary"]),
            "Share of one CPU that each of the job's processes used",
            "Bars: medians; whiskers: min to max of the sum",
        ),
    )


def _data(rows: pd.DataFrame) -> pd.DataFrame:
    total = rows["cpu_usr"] + rows["cpu_sys"]
    high = rows["cpu_high"].where(rows["repeats"] > 1)
    return identified(rows, ["cpu_usr", "cpu_sys", "cpu_low", "cpu_high"]).assign(
        _row=range(len(rows)),
        _high=high,
        _end=total.combine(rows["cpu_high"], max),
        _text=[f"{value:.3g} %" for value in total],
    )


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if measured(frames["summary"])["cpu_usr"].isna().all():
        return "no CPU time: no run reported any (dd does not; fio does)"
    return ""


def describe(frames: Frames) -> str:
    """Return the busiest job in one sentence."""
    rows = cpu_rows(frames)
    busiest = records(rows.nlargest(1, "cpu"))[0]
    value = number(busiest, "cpu_usr") + number(busiest, "cpu_sys")
    return f"CPU time of {len(rows)} jobs: max {value:.3g} % of one CPU ({busiest['label']})."


CPU = Kind(
    name="cpu",
    title="CPU time of the jobs",
    frame_names=("summary",),
    help="User and system time that each job's processes used.",
    needs="a finished run of fio",
    missing=missing,
    build=build,
    describe=describe,
)
