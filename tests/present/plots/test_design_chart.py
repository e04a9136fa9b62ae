"""Charts of responses follow from the design, and keep the rules of charts."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pandas as pd
import pytest

from tests.present.chart_rules import broken_rules
from tests.present.frames_for_plots import Row, frames, result
from volbench.analyse.frames.job_frames import plain_rows
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.charts.design_chart import response_kind
from volbench.present.plots.description import Plot, numbers
from volbench.present.plots.grammar import around_median
from volbench.present.plots.kinds import VIEWS, Choice, Options
from volbench.present.plots.marks import Bars, Bars3D, Cells, Lines, Points, ReferenceLine, Table

LEVELS: dict[str, tuple[object, ...]] = {
    "volume": tuple(f"/dev/sd{letter}" for letter in "abcdefghi"),
    "rw": ("randread", "randwrite", "read", "write", "randrw"),
    "block_bytes": tuple(1024 << n for n in range(9)),
    "iodepth": tuple(1 << n for n in range(9)),
    "numjobs": (1, 2, 4, 8, 16),
    "host": tuple(f"host-{n}" for n in range(9)),
    "campaign": ("before", "after", "later"),
    "direct": (True, False),
}


def measured(
    factors: dict[str, tuple[Any, ...]], *, repeats: int = 3, span: float = 10.0, seed: int = 1
) -> pd.DataFrame:
    """Return the frames of a full grid; rates spread over a span."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    rows: list[Row] = []
    for values in product(*factors.values()):
        own = dict(zip(factors, values, strict=True))
        rate = 1000 * span ** chance.random()
        rows += [
            result("job", iops=rate * chance.uniform(0.97, 1.03), repeat=n)
            | own
            | {"run": f"{len(rows)}-{n}"}
            for n in range(1, repeats + 1)
        ]
    return pd.DataFrame(rows)


def drawn(what: str, rows: pd.DataFrame, **choices: Any) -> Plot:  # noqa: ANN401 - as above
    """Return a chart of some rows."""
    known = {*frames([result("a")])["summary"]}
    added = rows[[name for name in rows if name not in known]]
    given = frames(plain_rows(rows.drop(columns=added.columns)))
    given["summary"] = given["summary"].join(added)
    return build_plot(what, given, options=Options(choice=Choice(**choices)))


LOOP = {
    "volume": ("/dev/local", "/dev/premium", "/dev/standard"),
    "rw": ("randread", "randwrite"),
    "block_bytes": (4096, 16384, 65536),
    "iodepth": (1, 4, 16, 64),
}


def test_what_is_compared_has_colours_and_the_rest_panels() -> None:
    """A loop over three volumes: lines along the depth, patterns below, block sizes beside."""
    plot = drawn("iops", measured(LOOP))
    assert plot.title == "IOPS by queue depth"
    assert [panel.title for panel in plot.panels] == [
        *(f"randread {size}" for size in ("4k", "16k", "64k")),
        *(f"randwrite {size}" for size in ("4k", "16k", "64k")),
    ]
    assert [(panel.row, panel.column) for panel in plot.panels] == [*product(range(2), range(3))]
    assert len(numbers(plot)) == 72
    assert set(numbers(plot)["repeats"]) == {3}
    assert [series.label for series in plot.series] == ["local", "premium", "standard"]
    assert plot.caption[0] == "Median of 3 repeats; whiskers from min to max"


def test_a_reader_chooses_axis_colours_and_panels() -> None:
    """Any factor may be the x axis, a colour or a panel."""
    plot = drawn("p99", measured(LOOP), x="bs", by=("iodepth",), panels=("volume", "rw"))
    assert plot.title == "P99 latency by block size"
    assert len(plot.series) == 4
    assert {panel.x.format for panel in plot.panels} == {"size"}
    assert len(plot.panels) == 6


def test_several_responses_are_rows_over_one_axis() -> None:
    """IOPS and p99 of the same cells stand above each other."""
    plot = drawn("iops,p99", measured({k: LOOP[k] for k in ("volume", "iodepth")}))
    assert [panel.y.format for panel in plot.panels] == ["count", "latency"]
    assert plot.title == "IOPS and p99 latency by queue depth"
    assert {"iops", "lat_p99_s"} <= {*numbers(plot).columns}


def test_values_relative_to_one_of_them() -> None:
    """Each value is divided by that of the base in the same cell."""
    plot = drawn("iops", measured(LOOP), relative_to="premium")
    rows = numbers(plot)
    assert set(rows[rows["label"] == "/dev/premium"]["ratio"]) == {1.0}
    with pytest.raises(InputError, match="names no value") as caught:
        drawn("iops", measured(LOOP), relative_to="gold")
    assert "/dev/local" in caught.value.hint


@pytest.mark.parametrize("view", VIEWS)
def test_each_form_shows_every_cell(view: str) -> None:
    """Lines, bars, grids, towers and tables draw the same 72 numbers."""
    plot = drawn("iops", measured(LOOP), view=view)
    kinds = {"bars": Bars, "grid": Cells, "towers": Bars3D, "table": Table}
    assert any(isinstance(m, kinds.get(view, Lines)) for p in plot.panels for m in p.marks)
    assert len(numbers(plot)) == 72


def test_one_volume_with_two_sweeps_is_a_grid() -> None:
    """Where nothing is compared and two options vary, cells show the whole at once."""
    rows = measured({k: LOOP[k] for k in ("block_bytes", "iodepth")})
    (cells,) = drawn("iops", rows).panels[0].marks
    assert isinstance(cells, Cells)
    assert len(cells.data) == 12


def test_too_many_panels_are_held_around_the_median() -> None:
    """The caption says which values are drawn, and how to see others."""
    factors = {**LOOP, "numjobs": (1, 2, 4, 8)}
    plot = drawn("iops", measured(factors, repeats=1))
    assert len(plot.panels) <= 12
    assert any("of 4 values): --where" in sentence for sentence in plot.caption)
    assert around_median(("bfq", "kyber", "mq", "mq2", "none"), 3) == ("kyber", "mq", "none")


def test_hosts_of_one_type_are_pooled() -> None:
    """A label comes before the hosts that it is of."""
    rows = measured({"host": LEVELS["host"][:4], "iodepth": (1, 4, 16)})
    rows["label_volume_type"] = rows["host"].map(
        {"host-0": "gp3", "host-1": "gp3", "host-2": "io2", "host-3": "io2"}
    )
    plot = drawn("iops", rows)
    assert [series.label for series in plot.series] == ["gp3", "io2"]
    assert "Median of 6 repeats on all hosts" in plot.caption[0]


def test_an_asked_rate_is_hollow_and_named() -> None:
    """A volume that fio held to a rate is not simply slow."""
    rows = measured({k: LOOP[k] for k in ("volume", "iodepth")})
    rows["rate_iops"] = rows["volume"].map({"/dev/premium": "3000"}).fillna("not set")
    plot = drawn("iops", rows)
    assert any("Hollow: asked: rate_iops=3000" in sentence for sentence in plot.caption)
    hollow = [m for m in plot.panels[0].marks if isinstance(m, Points) and m.is_hollow]
    assert {*hollow[0].data["label"]} == {"/dev/premium"}


def test_unsteady_runs_are_hollow() -> None:
    """A rate that fell is not shown like one that held."""
    rows = measured({k: LOOP[k] for k in ("volume", "iodepth")}, repeats=1)
    given = frames(plain_rows(rows))
    given["verdicts"] = pd.DataFrame(
        {"run": rows["run"][:2], "direction": "write", "verdict": ["drifting", "steady"]}
    )
    plot = build_plot("iops", given)
    assert "Hollow: unsteady (1)" in plot.caption


def test_percentiles_of_too_few_samples_are_hollow() -> None:
    """A p99.9 of 300 I/Os is not drawn like one of a million; the rate of as many is sound."""
    rows = measured({"iodepth": (1, 4, 16)}, repeats=1).assign(total_ios=[300, 1e6, 1e6])
    plot = drawn("iops,p999", rows)
    words = "Few samples: 1 percentile with fewer than 10 I/Os above"
    assert {"Hollow: few samples (1)", words} <= {*plot.caption}
    points = [mark for panel in plot.panels for mark in panel.marks if isinstance(mark, Points)]
    assert [len(mark.data) for mark in points if mark.is_hollow] == [1]


def test_declared_limits_are_lines() -> None:
    """A limit within the scale is drawn with its value."""
    rows = measured({"iodepth": (1, 4, 16)}).assign(limit_iops=12_000.0)
    marks = drawn("iops", rows).panels[0].marks
    assert [mark.value for mark in marks if isinstance(mark, ReferenceLine)] == [12_000.0]


def test_results_without_a_number_are_counted() -> None:
    """Nothing is left out in silence."""
    rows = measured({"volume": LOOP["volume"], "iodepth": (1, 4, 16)}).assign(cpu_usr=float("nan"))
    rows.loc[rows["volume"] == "/dev/local", "iops"] = None
    shown = drawn("iops,cpu_usr", rows)
    assert {"9 results without IOPS", "Not shown: cpu_usr, which no run reported"} <= {
        *shown.caption
    }


def test_results_that_share_few_settings_have_a_row_each() -> None:
    """Bars of one thickness in a list, beside each other for all responses; no empty panels."""
    few = {"rw": LEVELS["rw"][:4], "block_bytes": (1024, 2048), "iodepth": (1, 2)}
    panels = drawn("iops,p99", measured(few, repeats=1).iloc[[0, 1, 6, 9, 11, 14]]).panels
    assert {(p.row, p.y.categories[0]) for p in panels} == {(0, "1k, queue depth 1")}


@pytest.mark.parametrize("other", ["lines", "heatmap", "bandwidth", "ioengine"])
def test_other_names_say_what_to_draw(other: str) -> None:
    """A word that is no chart, or a column of texts, names what can be drawn instead."""
    with pytest.raises(InputError, match=r"no (chart|number that)") as caught:
        drawn(other, measured({"iodepth": (1, 4)}))
    assert caught.value.hint.startswith(("draw volbench plot ", "draw iops"))


def random_design(seed: int) -> Plot:
    """Return a chart of one to four factors of one to nine levels, with holes and repeats."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = chance.sample(sorted(LEVELS), chance.randint(1, 4))
    most = {1: 9, 2: 9, 3: 5, 4: 3}[len(names)]
    factors = {n: LEVELS[n][: chance.randint(1, min(most, len(LEVELS[n])))] for n in names}
    span = 10 ** chance.uniform(0, 5)
    rows = measured(factors, repeats=chance.choice((1, 1, 2, 3, 9)), span=span, seed=seed)
    if chance.random() < 0.4 and len(rows) > 6:
        rows = rows.sample(frac=chance.uniform(0.5, 0.95), random_state=seed)
    kind = response_kind(chance.choice(("iops", "iops", "p99", "iops,p99")))
    data = kind.read({"summary": rows.reset_index(drop=True)}, Options())
    assert not isinstance(data, str), data
    return kind.build(data)


@pytest.mark.parametrize("part", range(10))
def test_designs_at_random_keep_the_rules(part: int) -> None:
    """Thirty designs each, whatever varies."""
    for seed in range(30 * part, 30 * part + 30):
        assert broken_rules(random_design(seed)) == [], f"seed {seed}"


@pytest.mark.nightly
def test_thousands_of_designs_keep_the_rules() -> None:
    """Three thousand designs."""
    for seed in range(1000, 4000):
        assert broken_rules(random_design(seed)) == [], f"seed {seed}"
