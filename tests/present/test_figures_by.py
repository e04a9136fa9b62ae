"""Any chart can be told apart by columns, in any theme, and comes with its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tests.present.frames_by_kind import (
    FOR_KIND,
    Frames,
    fleet,
    in_campaign,
    ladder,
    repeats,
    together,
    two_sets,
)
from tests.present.frames_for_figures import frames, result
from tests.present.test_figures import texts_outside
from volbench.errors import InputError
from volbench.present.figures import KINDS, chart_numbers, draw_chart
from volbench.present.figures.traced import traced
from volbench.present.style import PALETTE
from volbench.present.themes import THEMES


def labelled() -> Frames:
    """Return a job on four hosts of two volume types in two zones."""
    given = frames(
        [
            result("reads", iops=iops) | {"host": host, "run": f"reads-{host}"}
            for host, iops in (("a", 100.0), ("b", 200.0), ("c", 1000.0), ("d", 3000.0))
        ]
    )
    given["summary"]["label_volume_type"] = ["slow", "slow", "fast", "fast"]
    given["summary"]["label_zone"] = ["1", "2", "1", None]
    return given


def bars(figure: Figure, *, axes: int = 0) -> list[Rectangle]:
    """Return the bars of a panel."""
    return [patch for patch in figure.axes[axes].patches if isinstance(patch, Rectangle)]


def test_hosts_are_told_apart_unless_asked() -> None:
    """Without --by every host has its own bar, and nothing is pooled."""
    figure = draw_chart("iops", labelled())
    assert [bar.get_width() for bar in bars(figure)] == [100.0, 200.0, 1000.0, 3000.0]
    assert "Pooled" not in figure.get_supxlabel()


def test_by_pools_what_is_equal_in_it_and_says_so() -> None:
    """With a label each of its values has one bar, the median of its hosts, in its own colour."""
    figure = draw_chart("iops", labelled(), by=["volume_type"])
    assert [bar.get_width() for bar in bars(figure)] == [150.0, 2000.0]
    assert [to_hex(bar.get_facecolor()) for bar in bars(figure)] == [c.lower() for c in PALETTE[:2]]
    assert "Pooled: 2 hosts" in figure.get_supxlabel()
    told = chart_numbers("iops", labelled(), by=["volume_type"])
    assert told[["by", "iops", "iops_low", "iops_high"]].to_numpy().tolist() == [
        ["slow", 150.0, 100.0, 200.0],
        ["fast", 2000.0, 1000.0, 3000.0],
    ]
    assert told["host"].isna().all()


def test_second_column_makes_panels_on_one_scale() -> None:
    """Each zone has a panel with its name; all have the same axis, and a missing label its own."""
    figure = draw_chart("iops", labelled(), by=["volume_type", "zone"])
    names = [part.get_suptitle() for part in figure.subfigs]
    assert names == ["zone: 1", "zone: 2", "zone: none", ""]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert texts_outside(figure) == []
    told = chart_numbers("iops", labelled(), by=["volume_type", "zone"])
    assert told[["panel", "by", "iops"]].to_numpy().tolist() == [
        ["zone: 1", "slow", 100.0],
        ["zone: 1", "fast", 1000.0],
        ["zone: 2", "slow", 200.0],
        ["zone: none", "fast", 3000.0],
    ]


@pytest.mark.parametrize("kind", sorted(FOR_KIND))
def test_every_kind_takes_a_column(kind: str) -> None:
    """Small multiples work for every kind, also where its frames have no such column."""
    figure = draw_chart(
        kind, FOR_KIND[kind](), by=["campaign", "profile"] if kind in SINGLE else ["campaign"]
    )
    assert figure.axes
    assert len(chart_numbers(kind, FOR_KIND[kind](), by=["campaign"]))


SINGLE = ("convergence", "mixes", "hdr", "knee", "lines")


def test_values_are_written_for_people() -> None:
    """Blocks are sizes, flags are words, and depth is told as such."""
    rows = [result("a", block_bytes=65536, direct=False, iodepth=8), result("b")]
    for by, words in (("bs", ["64k", "4k"]), ("direct", ["buffered", "direct"])):
        assert chart_numbers("iops", frames(rows), by=[by])["by"].tolist() == words
    assert chart_numbers("iops", frames(rows), by=["depth"])["by"].tolist() == [
        "depth 8",
        "depth 1",
    ]


def test_wrong_columns_are_refused() -> None:
    """A misspelt column gets the nearest ones, and three are too many."""
    with pytest.raises(InputError, match="no column 'volume_tpe'") as caught:
        draw_chart("iops", labelled(), by=["volume_tpe"])
    assert "volume_type" in caught.value.hint
    with pytest.raises(InputError, match="one or two columns, not 3"):
        draw_chart("iops", labelled(), by=["host", "job", "rw"])
    with pytest.raises(InputError, match="run has 30 values"):
        draw_chart("iops", fleet(hosts=30), by=["job", "run"])


def test_campaigns_are_never_pooled_like_repeats() -> None:
    """Two campaigns with the same job on one host are two bars in two colours."""
    figure = draw_chart("iops", two_sets())
    assert [bar.get_width() for bar in bars(figure)] == [120.0, 240.0, 70.0, 140.0]
    assert len({to_hex(bar.get_facecolor()) for bar in bars(figure)}) == 2
    assert "Campaigns old, new" in figure.get_supxlabel()


def test_clients_of_one_host_are_pooled_and_counted() -> None:
    """Clients that share host and volume are one bar, and the note counts them."""
    rows = [result("boot", iops=100.0 * n) | {"client": n, "run": f"boot-c{n}"} for n in (1, 2, 3)]
    figure = draw_chart("iops", frames(rows))
    assert [bar.get_width() for bar in bars(figure)] == [200.0]
    assert "Pooled: 3 clients" in figure.get_supxlabel()


def test_note_tells_what_a_number_needs() -> None:
    """Cache, depth, block size, device and length stand under the chart."""
    rows = [result("a", volume_bytes=2**40, runtime_s=60.0, volume="/dev/sdb", iodepth=16)]
    note = draw_chart("iops", frames(rows)).get_supxlabel()
    told = "Block 4k, depth 16, direct (no page cache), device /dev/sdb of 1t, 1m 00s a Run"
    assert told in note.replace("\n", " ")
    file = draw_chart("iops", frames([result("a", direct=False)])).get_supxlabel()
    assert "through the page cache, on /data" in file


@pytest.mark.parametrize("theme", [name for name in THEMES if name != "light"])
@pytest.mark.parametrize("kind", sorted(FOR_KIND))
def test_themes_exchange_colours_alone(kind: str, theme: str) -> None:
    """A theme changes no number, and leaves no dark text on a dark page."""
    given = FOR_KIND[kind]()
    figure = draw_chart(kind, given, theme=theme)
    light = draw_chart(kind, given)
    assert traced(figure).equals(traced(light))
    page = to_hex(figure.get_facecolor())
    assert page == ("#15181d" if theme == "dark" else "#ffffff")
    colours = {to_hex(text.get_color()) for axes in figure.axes for text in axes.texts}
    assert theme != "dark" or "#222222" not in colours


def test_unknown_theme_is_refused() -> None:
    """A theme nobody knows is told with those there are."""
    with pytest.raises(InputError, match="no theme 'sepia'") as caught:
        draw_chart("iops", ladder(), theme="sepia")
    assert "light, dark, print" in caught.value.hint


def test_traced_numbers_are_those_drawn() -> None:
    """Charts without a table give the points of their lines, with gaps."""
    given = repeats()
    given["series"].loc[3, "lat_mean_s"] = np.nan
    told = chart_numbers("series", given)
    drawn = told[(told["axes"] == 1) & (told["mark"] == "write")]
    own = given["series"][given["series"]["job"] == "small"]
    assert drawn["y"].tolist() == own["iops"].tolist()
    assert told["y"].isna().sum() == 1
    bars_told = traced(draw_chart("iops", given))
    assert set(bars_told["y"]) == {"small, randwrite 4k", "large, randwrite 4k"}
    assert {120.0, 70.0} <= set(bars_told["x"])


def test_long_lines_keep_their_extremes() -> None:
    """A long line is drawn with two thousand points, among them its one spike and its one stall."""
    given = frames([result("long")])
    count = 200_000
    values = np.full(count, 500.0)
    values[12_345], values[150_001] = 9_000.0, 0.0
    row = result("long")
    known = ("campaign", "run", "host", "profile", "job", "group", "volume", "repeat", "phase")
    given["series"] = pd.DataFrame(
        {name: [row[name]] * count for name in known}
        | {"direction": ["write"] * count, "t_s": np.arange(count, dtype=float), "iops": values}
        | {"bw_bytes_per_s": values * 4096, "lat_mean_s": np.full(count, np.nan)}
    )
    line = draw_chart("lines", given).axes[0].lines[0]
    drawn = np.asarray(line.get_ydata(), dtype=float)
    assert len(drawn) <= 2000
    assert (drawn.min(), drawn.max()) == (0.0, 9000.0)


def test_rows_of_another_campaign_stay_there() -> None:
    """Three campaigns are three sets, also when one lacks a job."""
    third = in_campaign(repeats(factor=3), "third")
    third = {
        name: frame[frame["job"] == "small"] if "job" in frame else frame
        for name, frame in third.items()
    }
    told = chart_numbers("sets", together(two_sets(), third))
    assert told.groupby("job", sort=False)["colour"].agg(list).to_dict() == {
        "small": ["old", "new", "third"],
        "large": ["old", "new"],
    }


def test_kinds_have_names_that_can_be_typed() -> None:
    """A kind is one word in small letters."""
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in KINDS)
