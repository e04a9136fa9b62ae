"""Charts selected for the report: those of the first screen first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.time.boot_storm import storm_steps
from volbench.analyse.time.warmup_curve import Curve, curves
from volbench.errors import InputError
from volbench.model.profile.profile_model import Phase
from volbench.model.results.finding import Severity
from volbench.present.plots.chart import build_plot, build_plots, drawable
from volbench.present.plots.charts.warmup_curves import MIN_PENALTY
from volbench.present.plots.description import Panel, Plot, numbers
from volbench.present.plots.kinds import KINDS, Frames, Options
from volbench.present.plots.labels import rows_height_in
from volbench.present.plots.selection import valid_frames

_PLACES = 6  # For charts of a report: a page of nine runs is three screens
_MAX_ABREAST, _WIDE_IN = 2, 11.0  # Panels and inches from which a chart takes two places
_DEFAULTS = Options()
# Heights of the panels of a chart of a report, drawn alone and fitted to the page; higher ones are
# for volbench plot
_MAX_HEIGHT_IN, _MAX_FITTED_IN = 6.8, 4.6
# Charts behind those of the first screen, while there is room for them
_FURTHER = ("iops", "latency", "sweep", "heatmap", "series", "ecdf", "blocks")
_MAX_BARS = 10  # Jobs
# Columns that are equal along one curve of a sweep
_PLACE = ("campaign", "host", "profile", "volume", "block_bytes")
_HEIGHT_IN = 3.0  # Of the panels together, so that title, verdict and chart share the first screen
_MIN_VOLUMES = 3  # Two volumes are compared with each other. Noticed by: test_lead_charts.py
_MAX_STORMS = 2  # More parallel steps are a fleet. Noticed by: test_lead_charts.py
_SWEPT = ("iodepth", "numjobs", "block_bytes")
_MIN_KNEE_POINTS = 3  # Two points have no knee. Noticed by: test_first_screen.py
# Values of both options from which a sweep is a grid, not lines. Noticed by: test_lead_charts.py
_MIN_GRID = 3
# Verdict of a run whose rate changed, the worst first, to the size of its change
_CHANGES = (
    ("stepped", "drift_percent"),
    ("drifting", "drift_percent"),
    ("noisy", "spread_percent"),
)


def is_collection(summary: pd.DataFrame) -> bool:
    """Return whether a summary frame is of so many volumes that they are ranked."""
    names = [name for name in ("campaign", "host", "volume") if name in summary]
    return len(summary.drop_duplicates(names)) >= _MIN_VOLUMES


def lead_plots(frames: Frames, options: Options = _DEFAULTS) -> list[Plot]:
    """Return the charts of the first screen: at most two, none without a result.

    The first shows a storm, a warm-up, rounds, volumes side by side, a sweep of two options or of
    one, or bars. A warm-up leads where the plan has one, a sweep where all results are of one
    volume. The second is the series of the run whose rate changed most. A single run leads with its
    series.

    Args:
        options: with the rounds of its profiles; none for a plan without.
    """
    runs = set(measured(frames["summary"])["run"]) if "summary" in frames else set()
    for kind, narrow, rows in _CANDIDATES:
        if kind == "iops" and len(runs) == 1:
            series = _series(frames, *runs)
            if series is not None:
                return [series]
        if kind == "convergence" and not options.rounds:
            continue
        needed = KINDS[kind].frames_of(frames)
        narrowed = narrow(drawable(KINDS[kind], needed) if "summary" in needed else needed)
        if not narrowed:
            continue
        plot = _chart(kind, narrowed, options)
        if plot is not None and _fits(kind, plot):
            is_sweep = kind in {"heatmap", "sweep"}
            second = [] if kind in {"storm", "warmup"} else _changed(frames, is_sweep=is_sweep)
            return [_noted(_cut(plot, rows), narrowed, frames), *second]
    return []


def _chart(kind: str, frames: Frames, options: Options) -> Plot | None:
    """Return a chart, if the frames have something for it."""
    parts = 1 if kind == "warmup" else 2  # As many as `_cut` leaves, so that the caption is true
    options = replace(options, parts=parts)
    return next(build_plots(KINDS[kind].frames_of(frames), [kind], options=options), None)


def _noted(plot: Plot, narrowed: Frames, frames: Frames) -> Plot:
    """Note the number of results shown if the chart leaves some out."""
    drawn, every = (len(measured(chart_frames["summary"])) for chart_frames in (narrowed, frames))
    if drawn == every:
        return plot
    note = f"Shown: {drawn:,} of {every:,} results"
    return replace(plot, caption=(note, *plot.caption))


def worst_warm_up(frames: Frames) -> Curve | None:
    """Return the curve of the volume whose fresh blocks cost most; None where they cost little."""
    if any(frames.get(name, pd.DataFrame()).empty for name in ("summary", "series")):
        return None
    if is_collection(frames["summary"]) or not _is_of_warm_up(frames["summary"]):
        return None
    valid = valid_frames(frames)
    climbs = curves(valid["summary"], valid["series"], valid.get("verdicts"))
    worst = max(climbs, key=lambda curve: curve.penalty, default=None)
    return worst if worst and worst.penalty >= MIN_PENALTY else None


def _fits(kind: str, plot: Plot) -> bool:
    """Return whether a chart is informative: curves of several points."""
    if kind == "sweep":
        return bool((numbers(plot).groupby("label").size() >= _MIN_KNEE_POINTS).any())
    return True


def _is_of_warm_up(summary: pd.DataFrame) -> bool:
    """Return whether phases or profile say that a volume was to be warmed up."""
    is_named = summary["profile"].astype(str).str.contains("warm", case=False)
    return bool((summary["phase"].eq(Phase.WARMUP.value) | is_named).any())


def _whole(frames: Frames) -> Frames:
    return frames


def _warm_up(frames: Frames) -> Frames:
    return frames if worst_warm_up(frames) is not None else {}


def _grid(frames: Frames) -> Frames:
    """Return the frames of a sweep of two options on one volume."""
    rows = measured(frames["summary"])
    options = [name for name in _SWEPT if rows[name].nunique() >= _MIN_GRID]
    return {} if is_collection(rows) or len(options) < 2 else frames


def _volumes(frames: Frames) -> Frames:
    """Return the frames of a collection."""
    return frames if is_collection(measured(frames["summary"])) else {}


def _few_storms(frames: Frames) -> Frames:
    """Return no frames of a campaign with many parallel steps."""
    return frames if len(storm_steps(frames)) <= _MAX_STORMS else {}


def _one_setting(frames: Frames) -> Frames:
    """Keep one host and block size: those that most rows have, the smallest of several."""
    rows = measured(frames["summary"])
    if is_collection(rows):
        return {}
    for column in _PLACE:
        counts = rows[column].value_counts().sort_index()
        if len(counts) > 1:
            rows = rows[rows[column] == counts.idxmax()]
    return {**frames, "summary": rows}


def _largest_jobs(frames: Frames) -> Frames:
    """Keep the jobs with the highest rates, directions added up as in the headline numbers."""
    rows = measured(frames["summary"])
    rows = rows[rows["direction"] != "sync"]
    key = ["campaign", "host", "profile", "job", "volume"]
    column = "iops" if rows["iops"].notna().any() else "bw_bytes_per_s"
    rates = rows.groupby([*key, "direction"], dropna=False)[column].median()
    best = rates.groupby(level=key, dropna=False).sum().nlargest(_MAX_BARS)
    is_kept = pd.MultiIndex.from_frame(rows[key]).isin(best.index)
    return {**frames, "summary": rows[is_kept].reset_index(drop=True)}


# Kind, the part of the frames that fits, and rows of its panels that are shown
_CANDIDATES: tuple[tuple[str, Callable[[Frames], Frames], int], ...] = (
    ("storm", _few_storms, 1),
    ("warmup", _warm_up, 2),
    ("convergence", _whole, 1),
    ("fleet", _volumes, 1),
    ("heatmap", _grid, 2),
    ("sweep", _one_setting, 2),
    ("iops", _largest_jobs, 1),
    ("bandwidth", _largest_jobs, 1),
)


def _changed(frames: Frames, *, is_sweep: bool) -> list[Plot]:
    """Return the series of the run that changed most, or of a sweep the noisiest.

    An invalid run is shown only where no run is valid.
    """
    verdicts = frames.get("verdicts", pd.DataFrame())
    findings = frames.get("findings", pd.DataFrame())
    runs: list[str] = []
    for verdict, column in _CHANGES if len(verdicts) else ():
        changed = verdicts[verdicts["verdict"] == verdict]
        if column in changed:
            changed = changed.sort_values(column, key=abs, ascending=False)
        runs += list(changed["run"])
    invalid: list[str] = []
    if len(findings):
        invalid += list(findings.loc[findings["severity"] == Severity.INVALID.value, "run"])
    if set(measured(frames["summary"])["run"]) <= {*invalid}:
        runs += invalid
    else:
        runs = [run for run in runs if run not in invalid]
    if is_sweep and not runs and "spread_percent" in verdicts:
        valid = verdicts[~verdicts["run"].isin(invalid)]
        runs += list(valid.nlargest(1, "spread_percent")["run"])
    if not runs:
        return []
    plot = _series(frames, runs[0])
    return [] if plot is None else [plot]


def _series(frames: Frames, run: str) -> Plot | None:
    """Return the series of one run; None without one."""
    read = KINDS["series"].frames_of(frames)
    run_frames = {
        name: frame[frame["run"] == run] for name, frame in read.items() if "run" in frame
    }
    plot = next(build_plots(run_frames, ["series"]), None)
    return None if plot is None else replace(_cut(plot, 1), title=f"{KINDS['series'].title}: {run}")


def report_plots(frames: Frames, options: Options = _DEFAULTS) -> list[Plot]:
    """Return the charts of a report: those of the first screen, and others that fit the page.

    None of them draws an invalid result while others are valid.
    """
    plots = lead_plots(frames, options)
    room = _PLACES - sum(1 + is_wide(plot) for plot in plots)
    for name in _FURTHER:
        if room > 0 and name not in {plot.name for plot in plots}:
            plot = _valid_chart(name, frames, options)
            if plot is None or sum(plot.heights) > _MAX_HEIGHT_IN:
                continue
            fitted = _cut(plot, len(plot.heights))
            if sum(fitted.heights) <= _MAX_FITTED_IN and 1 + is_wide(plot) <= room:
                plots.append(fitted)
                room -= 1 + is_wide(plot)
    return plots


def is_wide(plot: Plot) -> bool:
    """Return whether a chart takes the whole width of a page."""
    return len(plot.widths) > _MAX_ABREAST or plot.width_in > _WIDE_IN


def _valid_chart(name: str, frames: Frames, options: Options) -> Plot | None:
    """Return a chart of valid results; of invalid ones where there are no others."""
    kind = replace(KINDS[name], draws_invalid=False)
    try:
        return build_plot(kind, kind.frames_of(frames), options=options)
    except InputError:  # there is nothing for it
        return None


def storm_sentence(frames: Frames) -> str:
    """Return the main numbers of the storm that leads the report; empty for none."""
    if any(frames.get(name, pd.DataFrame()).empty for name in ("summary", "series")):
        return ""
    if not storm_steps(frames) or not _few_storms(frames):
        return ""
    plot = _chart("storm", frames, _DEFAULTS)
    return "" if plot is None else plot.description


def _cut(plot: Plot, rows: int) -> Plot:
    """Keep the first rows of panels, as low as names allow; the last of them names its x axis."""
    kept = [panel for panel in plot.panels if panel.row < rows]
    labels = {panel.column: panel.x.label for panel in plot.panels if panel.x.label}
    last = max(panel.row for panel in kept)
    heights = plot.heights[: last + 1]
    scale = min(1.0, _HEIGHT_IN / sum(heights))
    return replace(
        plot,
        panels=tuple(
            replace(panel, x=replace(panel.x, label=labels.get(panel.column, "")))
            if panel.row == last
            else panel
            for panel in kept
        ),
        heights=tuple(
            max(height * scale, *(_names_in(panel) for panel in kept if panel.row == row))
            for row, height in enumerate(heights)
        ),
    )


def _names_in(panel: Panel) -> float:
    """Return the height that the names beside a panel need."""
    return rows_height_in(panel.y.categories, is_tight=True)
