"""Results of loops over fio are one design, whatever their files and jobs are called."""

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.fio_loops import (
    DEPTHS,
    NAMINGS,
    PATTERNS,
    REPEATS,
    SIZES,
    VOLUMES,
    true_rate,
    write_loop,
)
from volbench.cli.main import cli
from volbench.units import format_count, format_size

Cell = tuple[str, str]
CELLS = len(VOLUMES) * len(PATTERNS) * len(SIZES) * len(DEPTHS)


def printed(*arguments: str) -> str:
    """Return what volbench prints for a pipe."""
    ended = CliRunner().invoke(cli, [*arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def read(*arguments: str) -> Any:  # noqa: ANN401 - a document
    """Return what volbench prints as JSON."""
    return json.loads(printed(*arguments, "--json"))


ALWAYS = ("counted", "sentences")
PARAMS = [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in NAMINGS]


@pytest.fixture(scope="module", params=PARAMS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a campaign of the results of one naming."""
    folder = tmp_path_factory.mktemp("loops")
    write_loop(folder / "results", request.param)
    printed("import", str(folder / "results"), "-o", str(folder / "c"))
    return str(folder / "c")


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Return the volume and the workload in words of a row of any verb."""
    volume = str(row.get("volume") or row["values"]["volume"])
    if words := row.get("workload"):
        return volume, words
    size = format_size(int(row["block_bytes"]))
    return volume, f"{row['rw']} {size}, queue depth {row['iodepth']}"


def measured(folder: Path) -> dict[Cell, list[float]]:
    """Return the rates in fio's files, ascending."""
    rates: dict[Cell, list[float]] = {}
    for file in folder.rglob("*.json"):
        (job,) = json.loads(file.read_text())["jobs"]
        options = {**job["job options"], "volume": job["job options"]["filename"]}
        cell = cell_of({**options, "block_bytes": options["bs"]})
        rates.setdefault(cell, []).append(job[options["rw"].removeprefix("rand")]["iops"])
    return {cell: sorted(values) for cell, values in rates.items()}


def test_every_verb_has_the_medians_of_the_files(imported: str, tmp_path: Path) -> None:
    """Table, price, trend, export and report agree to the digit, and with the truth to 10 %."""
    rates = measured(Path(imported).parent / "results")
    medians = {cell: values[1] for cell, values in rates.items()}
    rows = read("show", imported)
    assert len(rows) == CELLS
    ranges = {cell_of(r): [r["iops_low"], r["iops"], r["iops_high"]] for r in rows}
    assert ranges == {cell: pytest.approx(values) for cell, values in rates.items()}
    for row in rows:
        truth = true_rate(Path(row["volume"]).name, row["rw"], row["block_bytes"], row["iodepth"])
        assert row["iops"] == pytest.approx(truth, rel=0.1)
    prices = tmp_path / "prices.yaml"
    about = "currency: USD\nchecked: 2026-01-31\nsource: a test\n"
    prices.write_text(f"{about}volume_types: {{a: {{monthly: 9}}}}\n")
    offers = read("price", imported, "--prices", str(prices), "--unsteady")["offers"]
    assert {cell_of(offer): offer["iops"]["estimate"] for offer in offers} == medians
    trends = read("trend", imported, "--metric", "iops", "--undecided", "skip")["trends"]
    assert {cell_of(row): row["value"] for row in trends} == medians
    verdicts = read("check", imported, "--expect", "iops > 1")
    assert {row["value"] for row in verdicts} == {*medians.values()}
    exported = csv.DictReader(io.StringIO(printed("export", imported)))
    own = sorted((cell_of(row), float(row["iops"])) for row in exported)
    assert own == sorted((cell, value) for cell, values in rates.items() for value in values)
    page = tmp_path / "page.html"
    printed("report", imported, "-o", str(page))
    cells = re.findall(r"<t[dh][^>]*>(?:<[^>]*>)*([^<]*)", page.read_text())
    for workload in {workload for _, workload in medians}:
        at = cells.index(workload)
        shown = [format_count(medians[f"/dev/{name}", workload]) for name in sorted(VOLUMES)]
        assert [text.split()[0] for text in cells[at + 1 : at + 4]] == shown


def test_the_answer_and_the_table_name_no_file(imported: str) -> None:
    """Factors name the rows, constants stand above them, and the answer is of all settings."""
    lines = printed("show", imported).splitlines()
    workloads = CELLS // len(VOLUMES)
    assert lines[0] == f"local, premium and standard: {workloads} workloads, three repeats each."
    answer = " ".join(lines[1:3])
    assert answer.startswith("local is ")
    assert "at every setting." in answer
    assert "All: direct, libaio, 60 s a run, fio 3.36." in lines
    heading = next(line for line in lines if line.startswith("rw")).split()
    assert heading[:4] == ["rw", "bs", "iodepth", "volume"]
    assert "repeats" not in heading


def test_compare_agrees_with_the_answer(imported: str) -> None:
    """The ratios of the answer are those of the medians in the comparison, which needs no side."""
    told = printed("show", imported).splitlines()[1]
    compared = printed(
        *("compare", imported, "--base", "/dev/premium"), *("--metric", "iops", "--format", "csv")
    )
    rows = [row for row in csv.DictReader(io.StringIO(compared)) if "local" in row["candidate"]]
    assert len(rows) == CELLS // len(VOLUMES)
    rates = measured(Path(imported).parent / "results")
    for row in rows:
        for side in ("base", "candidate"):
            assert float(row[f"{side}_value"]) == rates[row[side], row["workload"]][1]
    ratios = [float(row["candidate_value"]) / float(row["base_value"]) for row in rows]
    ends = re.findall(r"local is ([\d.]+) to ([\d.]+) times as fast as premium", told)[0]
    assert 0.95 * min(ratios) < float(ends[0]) <= min(ratios) < max(ratios) <= float(ends[1])


def test_options_of_fio_are_columns_of_export_and_conditions(imported: str) -> None:
    """A runtime that no frame has is selected by, and written; p99 is the same everywhere."""
    condition = ("--where", "runtime==60s and depth==16 and bs==4k")
    table = printed("export", imported, "--columns", "rw,runtime,p99", *condition)
    rows = [*csv.DictReader(io.StringIO(table))]
    assert len(rows) == len(VOLUMES) * len(PATTERNS) * REPEATS
    assert {row["runtime"] for row in rows} == {"60s"}
    assert [*rows[0]] == ["rw", "runtime", "clat_p99_s"]
    assert all(float(row["clat_p99_s"]) > 0 for row in rows)
    shown = read("show", imported, *condition)
    assert len(shown) == 6
    assert {row["lat_p99_s"] for row in shown} == {None}
    tails = {row["clat_p99_s"] for row in shown}
    assert tails < {float(row["clat_p99_s"]) for row in rows}
    verdicts = read("check", imported, "--expect", "p99 < 1h")
    assert tails < {row["value"] for row in verdicts}
    trends = read("trend", imported, "--metric", "p99", "--undecided", "skip")["trends"]
    assert tails < {row["value"] for row in trends}
