"""Any chart can show columns as colours and panels."""

import pytest

from tests.present.frames_by_kind import Frames, fleet, two_sets
from tests.present.frames_for_plots import frames, intervals, result
from tests.present.plots.plot_parts import column, the_mark
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.marks import Bars


def labelled() -> Frames:
    """Return a job on four hosts of two volume types in two zones."""
    rates = {"a": 100.0, "b": 200.0, "c": 1000.0, "d": 3000.0}
    given = frames(
        [result("reads", iops=iops, host=host, run=f"reads-{host}") for host, iops in rates.items()]
    )
    given["summary"]["label_volume_type"] = ["slow", "slow", "fast", "fast"]
    given["summary"]["label_zone"] = ["1", "2", "1", None]
    return given


def test_rows_with_an_equal_by_column_are_grouped_and_the_caption_says_so() -> None:
    """With a label each of its values has one bar, the median of its hosts, in its own colour."""
    plot = build_plot("iops", labelled(), by=["volume_type"])
    bars = the_mark(plot.panels[0], Bars)
    assert column(bars, bars.value) == [150.0, 2000.0]
    assert column(bars, bars.by) == ["slow", "fast"]
    assert "Pooled: 2 hosts" in plot.caption
    rows = numbers(plot)
    assert rows[["by", "iops", "iops_low", "iops_high"]].to_numpy().tolist() == [
        ["slow", 150.0, 100.0, 200.0],
        ["fast", 2000.0, 1000.0, 3000.0],
    ]
    assert rows["host"].isna().all()


def test_second_column_makes_panels_on_one_scale() -> None:
    """Each zone has a panel with its name; all have the same axis, and a missing label its own."""
    plot = build_plot("iops", labelled(), by=["volume_type", "zone"])
    assert [panel.heading for panel in plot.panels] == ["zone: 1", "zone: 2", "zone: none"]
    assert [(panel.row, panel.column) for panel in plot.panels] == [(0, 0), (0, 1), (1, 0)]
    assert len({panel.x.limits for panel in plot.panels}) == 1
    colours = {series.key: series.colour for series in plot.series}
    assert colours == {"slow": "palette-0", "fast": "palette-1"}
    rows = numbers(plot)
    assert rows["panel"].tolist() == ["zone: 1", "zone: 1", "zone: 2", "zone: none"]
    assert rows["by"].tolist() == ["slow", "fast", "slow", "fast"]
    assert rows["iops"].tolist() == [100.0, 1000.0, 200.0, 3000.0]


def test_panels_of_several_rows_keep_their_order() -> None:
    """Plots of three panels abreast stand above each other: six are too narrow to be read."""
    rows = [result(job, repeat=n) for job in ("a", "b") for n in (1, 2)]
    given = frames(rows, series=[point for row in rows for point in intervals(row, [1.0, 2.0])])
    plot = build_plot("series", given, by=["job", "repeat"])
    places = [(panel.row, panel.column) for panel in plot.panels]
    assert places == [(row, m) for row in range(4) for m in range(3)]
    assert len(plot.widths) == 3
    assert len(plot.heights) == 4
    assert plot.panels[0].heading.startswith("repeat: 1\n")


@pytest.mark.slow
def test_values_have_units_a_reader_expects() -> None:
    """Block sizes are sizes, flags are words, and a queue depth says that it is one."""
    rows = [result("a", block_bytes=65536, direct=False, iodepth=8), result("b")]
    for by, words in (
        ("bs", ["64k", "4k"]),
        ("direct", ["buffered", "direct"]),
        ("depth", ["queue depth 8", "queue depth 1"]),
    ):
        assert numbers(build_plot("iops", frames(rows), by=[by]))["by"].tolist() == words


def test_wrong_columns_are_refused() -> None:
    """A misspelt column gets the nearest ones, and three are too many."""
    with pytest.raises(InputError, match="no column 'volume_tpe'") as caught:
        build_plot("iops", labelled(), by=["volume_tpe"])
    assert "volume_type" in caught.value.hint
    with pytest.raises(InputError, match="one or two columns, not 3"):
        build_plot("iops", labelled(), by=["host", "job", "rw"])
    with pytest.raises(InputError, match="run has 30 values"):
        build_plot("iops", fleet(hosts=30), by=["job", "run"])


def test_campaigns_are_never_pooled_like_repeats() -> None:
    """Two campaigns with the same job on one host are two bars in two colours."""
    plot = build_plot("iops", two_sets())
    bars = the_mark(plot.panels[0], Bars)
    assert column(bars, bars.value) == [120.0, 240.0, 70.0, 140.0]
    assert len({series.colour for series in plot.series}) == 2
    assert "Campaigns old, new" in plot.caption


def test_clients_of_one_host_are_pooled_and_counted() -> None:
    """Clients that share host and volume are one bar, and the caption counts them."""
    rows = [result("boot", iops=100.0 * n) | {"client": n, "run": f"boot-c{n}"} for n in (1, 2, 3)]
    plot = build_plot("iops", frames(rows))
    assert numbers(plot)["iops"].tolist() == [200.0]
    assert "Pooled: 3 clients" in plot.caption


def test_caption_gives_what_a_number_needs() -> None:
    """Cache, queue depth, block size, device and runtime stand under the chart."""
    rows = [result("a", volume_bytes=2**40, runtime_s=60.0, volume="/dev/sdb", iodepth=16)]
    setting = build_plot("iops", frames(rows)).caption[1]
    assert setting == (
        "Block size 4k, queue depth 16, direct (no page cache), device /dev/sdb of 1t, "
        "1m 00s per run"
    )
    file = build_plot("iops", frames([result("a", direct=False)])).caption[1]
    assert "through the page cache, on /data" in file
    some = [result("a"), result("b", direct=None, volume="unknown")]
    caption = build_plot("iops", frames(some)).caption[1]
    assert "direct (no page cache) where it is known, on /data where it is known" in caption
