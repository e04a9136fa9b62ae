"""Pooling: true repeats alone, percentiles from bins, and lines that are told apart."""

import pandas as pd
import pytest

from tests.present.frames_for_plots import frames, result
from volbench.analyse.frames.job_frames import grid, inseparable, per_job, places_of, sweep
from volbench.present.plots.chart import build_plot

Row = dict[str, object]
RATES = {"hdd": 72.0, "ssd": 9090.0}


def drives(*, layout: str = "{drive}", depths: tuple[int, ...] = (1, 4, 16)) -> list[Row]:
    """Return results of two drives with the same name, imported from sibling folders."""
    return [
        result(
            f"{drive}-{depth}",
            iodepth=depth,
            iops=rate * depth,
            volume="/dev/sdb",
            import_folder=layout.format(drive=drive, depth=depth),
        )
        for drive, rate in RATES.items()
        for depth in depths
    ]


@pytest.mark.parametrize("layout", ["results/{drive}", "{drive}/qd{depth}", "{drive}"])
def test_drives_in_sibling_folders_have_separate_lines(layout: str) -> None:
    """An HDD and an SSD, both /dev/sdb, are never averaged to one drive."""
    points = sweep(frames(drives(layout=layout))["summary"], "iodepth", ["iops"])
    lines = points.groupby("import_folder")["iops"].apply(list).to_dict()
    assert {str(name).split("/")[-1]: rates for name, rates in lines.items()} == {
        drive: [rate * depth for depth in (1, 4, 16)] for drive, rate in RATES.items()
    }
    assert points["line"].nunique() == 2


def test_indistinguishable_jobs_are_refused() -> None:
    """Jobs that differ in nothing a line shows are not drawn; a folder for each depth is."""
    summary = frames([{**row, "import_folder": None} for row in drives()])["summary"]
    assert sweep(summary, "iodepth", ["iops"]).empty
    note = inseparable(summary, ["iodepth"])
    assert note.startswith("Not drawn: hdd-1 and 5 more are neither repeats")
    assert "--where" in note
    rows = [row for row in drives(layout="qd{depth}") if str(row["job"]).startswith("ssd")]
    points = sweep(frames(rows)["summary"], "iodepth", ["iops"])
    assert list(points["iops"]) == [9090.0, 36360.0, 145440.0]


def test_the_legend_names_the_folders() -> None:
    """Both drives are in the legend of the chart."""
    plot = build_plot("sweep", frames(drives()))
    assert [series.label for series in plot.series] == ["randwrite, hdd", "randwrite, ssd"]


def test_read_write_mixes_have_separate_lines() -> None:
    """70 % and 30 % reads are two workloads; a grid holds one drive, too."""
    rows = [
        result(f"m{mix}-{depth}", rw="randrw", rwmixread=mix, iodepth=depth, iops=float(mix))
        for mix in (70, 30)
        for depth in (1, 4)
    ]
    points = sweep(frames(rows)["summary"], "iodepth", ["iops"])
    assert list(points["iops"]) == [70.0, 70.0, 30.0, 30.0]
    rows = [
        {**row, "block_bytes": size, "job": f"{row['job']}-{size}"}
        for row in drives()
        for size in (4096, 8192)
    ]
    points = grid(frames(rows)["summary"], ("iodepth", "block_bytes"), ["iops"])
    assert sorted(points.groupby("line")["iops"].min()) == [72.0, 9090.0]


def test_percentiles_of_repeats_are_their_median() -> None:
    """As in tables, comparisons and expectations, with their ends; that of a single one stays."""
    summary = frames([result("a"), result("a", repeat=2), result("a", repeat=3), result("b")])
    rows = summary["summary"].assign(p99=[0.1, 0.3, 0.15, 0.2])
    pooled = per_job(rows, ["p99"]).set_index("job")
    assert dict(pooled["p99"]) == {"a": 0.15, "b": 0.2}
    assert (pooled["p99_low"]["a"], pooled["p99_high"]["a"]) == (0.1, 0.3)


@pytest.mark.parametrize("are_categories", [False, True])
def test_rows_are_found_in_the_summary(*, are_categories: bool) -> None:
    """By run, section and direction, as texts and as categories; a missing section is one too."""
    names = ("run", "group", "direction")
    rows = pd.DataFrame(
        [("b", None, "read"), ("a", "x", "read"), ("a", "x", "read")], columns=names
    )
    given = [("a", "x", "read"), ("b", None, "read"), ("a", "x", "write"), ("c", "x", "read")]
    texts = pd.DataFrame(given, columns=names)
    assert list(places_of(texts.astype("category") if are_categories else texts, rows)) == [
        1,
        0,
        -1,
        -1,
    ]
