"""Charts of the report: the design, what leads a campaign of a special kind, or a single run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.frames.run_options import WITHIN
from volbench.analyse.time.boot_storm import storm_steps
from volbench.analyse.time.warmup_curve import curves
from volbench.errors import InputError
from volbench.model.profile.profile_model import Phase
from volbench.present.plots.chart import build_plot, kind_of
from volbench.present.plots.charts.design_chart import LEAST_SCALE
from volbench.present.plots.charts.warmup_curves import MIN_PENALTY
from volbench.present.plots.description import Plot
from volbench.present.plots.kinds import ALWAYS_READ, Options
from volbench.present.plots.labels import rows_height_in
from volbench.present.plots.selection import valid_frames

Read = Callable[[str], pd.DataFrame]  # frame name to frame
_DEFAULTS = Options()
_HEIGHT_IN, _LEAST_IN = 3.4, 1.0  # Of all panels, to share the first screen with the answer; of one
_MAX_ABREAST, _WIDE_IN = 2, 7.5  # Panels and inches from which a chart takes the whole page
_MAX_VOLUMES = 2  # More are ranked, though a warm-up was measured. Noticed by: test_lead_charts.py
_MAX_STORMS = 2  # More parallel steps are a fleet. Noticed by: test_lead_charts.py


def report_plots(read: Read, options: Options = _DEFAULTS) -> Iterator[Plot]:
    """Yield the charts of a report, that of the first screen first.

    A single run is shown over time, with its percentiles; a storm, a warm-up or rounds come before
    IOPS and p99 over the design, or before bandwidth and mean latency where these are unknown.
    """
    summary = read("summary")
    if len(set(measured(summary)["run"])) == 1:
        plots = [plot for name in ("series", "latency") if (plot := _plot(name, read))]
        yield from plots or _responses(read, options)
        return
    leads: list[str] = ["rounds"] if options.rounds else []
    is_search = WITHIN in summary and summary[WITHIN].astype(bool).all()
    leads += ["within"] if WITHIN in summary else []
    leads += ["storm"] if is_storm(read) else []
    leads += ["warmup"] if is_warm_up(read) else []
    for name in leads:
        if plot := _plot(name, read, options):
            yield plot
    if not is_search:
        yield from _responses(read, options)


def _responses(read: Read, options: Options) -> Iterator[Plot]:
    for names in (("iops", "bw"), ("p99", "mean")):
        plots = (_plot(name, read, options) for name in names)
        if plot := next(filter(None, plots), None):
            yield plot


def _plot(name: str, read: Read, options: Options = _DEFAULTS) -> Plot | None:
    kind = replace(kind_of(name), draws_invalid=False)
    frames = {name: read(name) for name in {*ALWAYS_READ, *kind.frame_names}}
    try:
        plot = build_plot(kind, frames, options=options)
    except InputError:
        return None
    return fitted(plot)


def fitted(plot: Plot) -> Plot:
    """Return a plot as low as the first screen needs and the names beside it allow."""
    scale = max(LEAST_SCALE, min(1.0, _HEIGHT_IN / sum(plot.heights)))
    names_in = {each.row: rows_height_in(each.y.categories, is_tight=True) for each in plot.panels}
    least = (max(min(own, _LEAST_IN), names_in.get(n, 0.0)) for n, own in enumerate(plot.heights))
    heights = (max(own * scale, low) for own, low in zip(plot.heights, least, strict=True))
    return replace(plot, heights=tuple(heights))


def is_wide(plot: Plot) -> bool:
    """Return whether a chart takes the whole width of a page."""
    return len(plot.widths) > _MAX_ABREAST or plot.width_in > _WIDE_IN


def is_storm(read: Read) -> bool:
    """Return whether clients ran in parallel in a few steps."""
    summary = read("summary")
    runs = measured(summary)[["profile", "job", "repeat", "run"]].drop_duplicates()
    is_alone = not runs.duplicated(["profile", "job", "repeat"]).any()
    if is_alone or (series := read("series")).empty:
        return False
    return 0 < len(storm_steps({"summary": summary, "series": series})) <= _MAX_STORMS


def is_warm_up(read: Read) -> bool:
    """Return whether a volume was to be warmed up, and its fresh blocks were clearly slower."""
    summary = read("summary")
    is_named = summary["profile"].astype(str).str.contains("warm", case=False)
    is_meant = bool((summary["phase"].eq(Phase.WARMUP.value) | is_named).any())
    if not is_meant or len(summary[["host", "volume"]].drop_duplicates()) > _MAX_VOLUMES:
        return False
    names = ("summary", "series", "verdicts", "findings")
    valid = valid_frames({name: read(name) for name in names})
    climbs = curves(valid["summary"], valid["series"], valid["verdicts"])
    return any(climb.penalty >= MIN_PENALTY for climb in climbs)
