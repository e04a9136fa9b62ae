"""The design of an experiment follows from what was measured, however it is called."""

from __future__ import annotations

from itertools import product

import pytest

from tests.analyse.named_results import DEPTHS, NAMINGS, PATTERNS, SIZES, rows_named
from volbench.analyse.frames.design import NAME, asked_rate, design_of


def own_row(job: str, **values: object) -> dict[str, object]:
    """Return a result of a campaign of volbench's own."""
    row: dict[str, object] = {"campaign": "c", "run": job, "job": job, "group": job}
    named = {"rw": "randread", "direction": "read", "block_bytes": 4096, "iodepth": 1}
    return {**row, **named, "volume": "/dev/sdb", "import_folder": None, **values}


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_naming_of_files_changes_nothing(naming: str) -> None:
    """Nine namings of 216 results have four factors and 72 cells of three repeats."""
    design = design_of([*rows_named(naming)])
    assert {factor.column: factor.values for factor in design.factors} == {
        "volume": ("/dev/local", "/dev/premium", "/dev/standard"),
        "rw": PATTERNS,
        "block_bytes": SIZES,
        "iodepth": DEPTHS,
    }
    assert design.repeats == {3: 72}
    assert "72 cells of 216 results; varies: volume (3), rw (" in repr(design)
    assert design.aliases["direction"] == "rw"
    assert design.constants["ioengine"] == "libaio"


def test_a_word_that_nothing_else_says_is_a_factor() -> None:
    """Three I/O schedulers in the names of equal jobs are three experiments, not three repeats."""
    rows = [
        {
            **own_row(f"{scheduler}-randread-4k-{r}"),
            "run": f"{scheduler}{r}",
            "import_folder": "out",
        }
        for scheduler in ("none", "kyber", "mq-deadline")
        for r in (1, 2)
    ]
    design = design_of(rows)
    assert design.by_column[NAME].values == ("kyber", "mq deadline", "none")
    assert design.repeats == {2: 3}


def test_numbers_count_repeats_only_where_the_options_are_known() -> None:
    """Files of 1, 8 and 64 are depths if the result does not report its depth; 1, 2, 3 count."""
    depths = [own_row(f"r-{n}", iodepth=None, import_folder="o") for n in (1, 8, 64)]
    counts = [own_row(f"r-{n}", iodepth=None, import_folder="o") for n in (1, 2, 3)]
    assert design_of(depths).repeats == {1: 3}
    assert design_of(counts).repeats == {3: 1}


def test_two_jobs_of_a_profile_are_two_occasions() -> None:
    """First and second pass of equal options differ in name on purpose."""
    design = design_of([own_row("first-pass"), own_row("second-pass")])
    assert design.by_column[NAME].values == ("first-pass", "second-pass")


def test_a_job_has_its_name_on_each_host() -> None:
    """One that two hosts ran, beside another that only the first host ran."""
    jobs = [("one", "vm1"), ("two", "vm1"), ("two", "vm2")]
    design = design_of([own_row(job, host=host, run=f"{job}{host}") for job, host in jobs])
    assert [cell.values[NAME] for cell in design.cells] == ["one", "two", "two"]


def test_sections_of_one_run_are_no_repeats() -> None:
    """Two equal sections of one run differ in their names, though these count."""
    rows = [own_row("oltp", run="1", group=f"job{n}", import_folder="o") for n in (1, 2)]
    assert design_of(rows).repeats == {1: 2}


def test_every_option_counts() -> None:
    """A rate that fio was asked to keep tells results apart, and is named."""
    rows = [own_row("a", rate_iops="not set"), own_row("b", rate_iops="3000")]
    design = design_of(rows)
    assert design.by_column["rate_iops"].values == ("not set", 3000)
    assert [asked_rate(row) for row in rows] == ["", "rate_iops=3000"]


def test_what_varies_together_is_one_factor() -> None:
    """A label comes before the volume and the host that vary with it."""
    rows = [
        own_row("a", run=f"{kind}{r}", label_volume_type=kind, volume=f"/dev/{kind}", host=kind)
        for kind in ("gp3", "io2")
        for r in (1, 2)
    ]
    design = design_of(rows)
    assert [factor.column for factor in design.factors] == ["label_volume_type"]
    assert design.aliases == {"host": "label_volume_type", "volume": "label_volume_type"}
    assert design.repeats == {2: 2}


def test_campaigns_of_different_workloads_are_no_factor() -> None:
    """A campaign that only groups jobs says nothing beside their options."""
    rows = [own_row("r", campaign="reads"), own_row("w", campaign="writes", rw="randwrite")]
    design = design_of(rows)
    assert [factor.column for factor in design.factors] == ["rw"]
    assert design.aliases["campaign"] == "rw"
    asked = design_of(rows, first=("campaign",))
    assert asked.factors[0].column == "campaign"


def test_missing_cells_are_named() -> None:
    """Of a grid with one hole the hole is told."""
    rows = [
        own_row(f"{rw}{depth}", rw=rw, iodepth=depth)
        for rw, depth in product(PATTERNS, (1, 8))
        if (rw, depth) != ("randwrite", 8)
    ]
    assert design_of(rows).missing() == [{"rw": "randwrite", "iodepth": 8}]


def test_unknown_is_a_value_of_its_own() -> None:
    """A result without a volume is not of any known volume."""
    design = design_of([own_row("a"), own_row("b", volume="unknown")])
    assert design.by_column["volume"].values == ("/dev/sdb", None)
    assert design.by_column["volume"].known == ("/dev/sdb",)


def test_what_is_compared_is_a_place_with_a_setting_in_common() -> None:
    """Volumes that share no workload are not compared; engines are, where nothing else is."""
    assert design_of([*rows_named(next(iter(NAMINGS)))]).compared == "volume"
    apart = [own_row("r", volume="/dev/a"), own_row("w", volume="/dev/b", rw="randwrite")]
    assert design_of(apart).compared == ""
    engines = [own_row("r", ioengine=engine) for engine in ("libaio", "io_uring")]
    assert design_of(engines).compared == "ioengine"
    spdk = own_row("r", ioengine="spdk", volume="trtype=PCIe traddr=0000.01.00.0 ns=1")
    assert design_of([*engines, spdk]).compared == "ioengine"  # perhaps of the same disk
    depths = [own_row("r", iodepth=depth) for depth in (1, 16)]
    assert design_of(depths, first=("iodepth",)).compared == "iodepth"


def test_types_of_volumes_are_compared_though_each_has_volumes_of_its_own() -> None:
    """The volume decides its type: what was done is equal without both."""
    rows = [
        own_row("r", label_volume_type=kind, volume=f"/dev/{kind}{n}")
        for kind in ("gp3", "io2")
        for n in (1, 2)
    ]
    design = design_of(rows)
    assert [factor.column for factor in design.factors] == ["label_volume_type", "volume"]
    assert design.compared == "label_volume_type"
    assert len(set(design.key_without("label_volume_type"))) == 1
