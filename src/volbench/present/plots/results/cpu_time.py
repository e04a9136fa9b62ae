"""User and system time of each job's processes as stacked bars."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import per_job
from volbench.present.formatting import number, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import rows_axis

_PARTS = (Series("cpu_usr", "user", "palette-5"), Series("cpu_sys", "system", "palette-0"))
"""The key is the column."""
_FULL = 100.0


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job with the medians of user and system time, and of their sum."""
    summary = frames["summary"]
    rated = summary[(summary["direction"] != "sync") & summary["cpu_usr"].notna()]
    # fio reports it once for a job, and both directions of a mixed job repeat it.
    jobs = rated.drop_duplicates(["run", "group"])
    jobs = jobs.assign(cpu=jobs["cpu_usr"] + jobs["cpu_sys"])
    rows = labels.side_by_side(per_job(jobs, [*(part.key for part in _PARTS), "cpu"]))
    return rows if len(rows) else "no CPU time: no run reported any (dd does not; fio does)"


def build(rows: pd.DataFrame) -> Plot:
    """Draw a bar for each job; the whisker is the range of the sum over the repeats."""
    names = labels.job_names(records(rows))
    data = _data(rows)
    most = float(data["_end"].max())
    full = (marks.ReferenceLine(_FULL, "x"),) if most > _FULL * 0.8 else ()
    parts = (
        *full,
        marks.Bars(data, series="cpu_usr", value="cpu_usr"),
        marks.Bars(data, series="cpu_sys", value="cpu_sys", base="cpu_usr"),
        marks.Whiskers(data, low="cpu_low"),
        marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0)),
    )
    x = Axis("CPU time, of one CPU", "percent", limits=(0, max(most * 1.15, 1.0)))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=parts),),
        heights=(labels.rows_height_in(names),),
        series=_PARTS,
        caption=(
            "Share of one CPU that each of the job's processes used",
            "Bars: medians; whiskers: min to max of the sum",
        ),
    )


def _data(rows: pd.DataFrame) -> pd.DataFrame:
    total = rows["cpu_usr"] + rows["cpu_sys"]
    return labels.identified(rows, ["cpu_usr", "cpu_sys", "cpu_low", "cpu_high"]).assign(
        _row=range(len(rows)),
        _high=rows["cpu_high"].where(rows["repeats"] > 1),
        _end=total.combine(rows["cpu_high"], max),
        _text=[f"{value:.3g} %" for value in total],
    )


def describe(rows: pd.DataFrame) -> str:
    """Return the busiest job in one sentence."""
    busiest = records(rows.nlargest(1, "cpu"))[0]
    value = number(busiest, "cpu_usr") + number(busiest, "cpu_sys")
    return f"CPU time of {len(rows)} jobs: max {value:.3g} % of one CPU ({busiest['label']})."


CPU = Kind(
    name="cpu",
    title="CPU time of the jobs",
    frame_names=("summary",),
    help="User and system time that each job's processes used.",
    needs="a finished run of fio",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
)
