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
from volbench.present.plots.chart import build_plot, build_plots, kind_of
from volbench.present.plots.charts.warmup_curves import MIN_PENALTY
from volbench.present.plots.description import Panel, Plot
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
_FURTHER = ("iops", "p99", "latency", "series", "ecdf", "blocks")
_HEIGHT_IN = 3.0  # Of the panels together, so that title, verdict and chart share the first screen
_MIN_VOLUMES = 3  # Two volumes are compared with each other. Noticed by: test_lead_charts.py
_MAX_STORMS = 2  # More parallel steps are a fleet. Noticed by: test_lead_charts.py
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

    The first shows a storm, a warm-up, rounds, or the rates over the design; a warm-up leads where
    the plan has one. The second is p99 over the same design, or the series of the run whose rate
    changed most. A single run leads with its series.

    Args:
        options: with the rounds of its profiles; none for a plan without.
    """
    runs = set(measured(frames["summary"])["run"]) if "summary" in frames else set()
    if len(runs) == 1 and (series := _series(frames, *runs)) is not None:
        return [series]
    for kind, narrow, rows in _CANDIDATES:
        if kind == "convergence" and not options.rounds:
            continue
        narrowed = narrow(KINDS[kind].frames_of(frames))
        plot = _chart(kind, narrowed, options) if narrowed else None
        if plot is not None:
            second = [] if kind in {"storm", "warmup"} else _changed(frames)
            return [_cut(plot, rows), *second]
    plots = [plot for name in ("iops", "p99") if (plot := _response(name, frames, options))]
    if not plots:
        plots = [plot for name in ("bw", "mean") if (plot := _response(name, frames, options))]
    return [*plots[:1], *(_changed(frames) or plots[1:])]


def _response(name: str, frames: Frames, options: Options) -> Plot | None:
    """Return a response over the design, as high as fits a page; None without one."""
    plot = next(build_plots(kind_of(name).frames_of(frames), [name], options=options), None)
    return plot and _cut(plot, len(plot.heights))


def _chart(kind: str, frames: Frames, options: Options) -> Plot | None:
    """Return a chart, if the frames have something for it."""
    parts = 1 if kind == "warmup" else 2  # As many as `_cut` leaves, so that the caption is true
    options = replace(options, parts=parts)
    return next(build_plots(KINDS[kind].frames_of(frames), [kind], options=options), None)


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


def _is_of_warm_up(summary: pd.DataFrame) -> bool:
    """Return whether phases or profile say that a volume was to be warmed up."""
    is_named = summary["profile"].astype(str).str.contains("warm", case=False)
    return bool((summary["phase"].eq(Phase.WARMUP.value) | is_named).any())


def _whole(frames: Frames) -> Frames:
    return frames


def _warm_up(frames: Frames) -> Frames:
    return frames if worst_warm_up(frames) is not None else {}


def _few_storms(frames: Frames) -> Frames:
    """Return no frames of a campaign with many parallel steps."""
    return frames if len(storm_steps(frames)) <= _MAX_STORMS else {}


# Kind, the part of the frames that fits, and rows of its panels that are shown
_CANDIDATES: tuple[tuple[str, Callable[[Frames], Frames], int], ...] = (
    ("storm", _few_storms, 1),
    ("warmup", _warm_up, 2),
    ("convergence", _whole, 1),
)


def _changed(frames: Frames) -> list[Plot]:
    """Return the series of the run that changed most.

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
    kind = replace(kind_of(name), draws_invalid=False)
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
