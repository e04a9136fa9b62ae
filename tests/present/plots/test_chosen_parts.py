"""Where a chart has no room for all, it shows the worst, says so, and the range of the rest."""

from itertools import product

import pytest

from tests.present.frames_by_kind import Frames
from tests.present.frames_for_plots import bins, frames, result, sweep
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.marks import Areas, Texts

JOBS = 40
WORST = 33
"""Number of the job that is slower and less steady than all others."""


def given() -> Frames:
    """Return many jobs with the same rates and latencies, but for the one that is bad."""
    rows = [result(f"job-{n:02}", iops=1000.0 + n, rw="randread") for n in range(JOBS)]
    slow, fast = {0.001: 80, 0.5: 20}, {0.001: 80, 0.004: 20}
    reported = [bins(row, slow if n == WORST else fast) for n, row in enumerate(rows)]
    return frames(rows, histogram=[own for each in reported for own in each])


def test_histograms_show_the_slowest_jobs() -> None:
    """The bad job, one of the last, has a panel, and the caption counts the others."""
    plot = build_plot("histogram", given())
    assert any(f"job-{WORST}" in panel.title for panel in plot.panels)
    assert "Showing 14 of 40 jobs, those with the slowest p99" in caption_of(plot)


def test_curves_show_the_slowest_jobs_and_a_band_of_the_others() -> None:
    """The legend stays short, and the range of the others is that of their bins."""
    plot = build_plot("ecdf", given())
    names = [series.label for series in plot.series]
    assert f"job-{WORST}, write" in names
    assert names[-1] == f"the other {JOBS - len(names) + 1} jobs"
    assert len(names) <= 13
    band = the_mark(plot.panels[0], Areas)
    assert set(column(band, "_low")) == set(column(band, "_high")) == {0.001, 0.004}


def test_strips_show_the_jobs_with_the_worst_hosts() -> None:
    """One of six hosts is slow in the last job."""
    rows = [
        result(f"job-{n:02}", iops=200.0 if (n, host) == (29, 3) else 1000.0, host=f"h{host}")
        for n in range(30)
        for host in range(6)
    ]
    plot = build_plot("fleet", frames(rows))
    assert "Showing 18 of 30 jobs, those whose worst dot is farthest" in caption_of(plot)
    assert "job-29, write" in plot.panels[0].y.categories


def test_names_of_outliers_do_not_overlap() -> None:
    """Five of thirty hosts are slow alike: above and below the dots one name each is written."""
    rows = [
        result("job", iops=(1000.0 if host else 30000.0) if host < 25 else 400.0 + host / 10)
        | {"host": f"host-{host}", "run": f"r{host}"}
        for host in range(30)
    ]
    panel = build_plot("fleet", frames(rows)).panels[0]
    assert panel.x.scale == "log"
    names = [str(name) for mark in all_marks(panel, Texts) for name in mark.data["_text"]]
    assert "host-0" in names
    assert len(names) <= 3


def at_depths(*, hosts: int = 1) -> Frames:
    """Return two rounds of jobs that share mix and block size, on some hosts."""
    rows = [
        result(f"qd{depth}", iops=100.0 * depth, repeat=repeat, iodepth=depth, rw="randread")
        | {"direction": "read", "host": f"h{host}", "run": f"{depth}-{repeat}-{host}"}
        for depth, repeat, host in product((1, 4, 16), (1, 2), range(hosts))
    ]
    return frames(rows)


def test_rounds_of_several_hosts_are_labelled_as_sums() -> None:
    """The caption says that three hosts are added up, and a host without a round is no drop."""
    given = at_depths(hosts=3)
    assert "Rates are sums over 3 hosts" in caption_of(build_plot("rounds", given))
    summary = given["summary"]
    lacking = (summary["host"] == "h2") & (summary["repeat"] == 2)
    with pytest.raises(InputError, match=r"not every host has every round.*--where 'host=="):
        build_plot("rounds", {**given, "summary": summary[~lacking]})


@pytest.mark.slow
def test_the_window_shows_the_least_steady_variables() -> None:
    """The one job of ten whose rounds swing is among the six."""
    rows = [
        result(f"job-{n}", repeat=repeat, iops=1000.0 + 300 * (n == 9 and repeat % 2))
        for n in range(10)
        for repeat in range(1, 7)
    ]
    plot = build_plot("rounds", frames(rows))
    assert any("job-9" in panel.title for panel in plot.panels)
    assert "Showing 6 of 10 variables, those with the widest range" in caption_of(plot)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["latency", "p99"])
def test_a_caption_counts_percentiles_in_the_last_bin(kind: str) -> None:
    """A percentile that fio cannot tell has no point, and the caption says why."""
    rows = sweep()
    rows[0] |= {"lat_p99_s": None, "impossible": "lat p99 and above > 17.1 s (the last bin of fio)"}
    sentence = "No exact value to draw: percentiles in fio's last bin (> 17.1 s) of 1 result"
    assert sentence in caption_of(build_plot(kind, frames(rows)))
    assert "last bin" not in caption_of(build_plot(kind, frames(sweep())))
