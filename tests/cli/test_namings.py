"""Results of loops over fio are one design, whatever their files and jobs are called."""

import csv
import io
import json
from pathlib import Path

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

CELLS = len(VOLUMES) * len(PATTERNS) * len(SIZES) * len(DEPTHS)


def printed(*arguments: str) -> str:
    """Return what volbench prints for a pipe."""
    ended = CliRunner().invoke(cli, [*arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


ALWAYS = ("counted", "sentences")
PARAMS = [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in NAMINGS]


@pytest.fixture(scope="module", params=PARAMS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a campaign of the results of one naming."""
    folder = tmp_path_factory.mktemp("loops")
    write_loop(folder / "results", request.param)
    printed("import", str(folder / "results"), "-o", str(folder / "c"))
    return str(folder / "c")


def test_repeats_are_one_row_of_a_table_that_tells_the_truth(imported: str) -> None:
    """Each cell has three repeats, and its true rate is within 10 % of their median."""
    rows = json.loads(printed("show", imported, "--json"))
    assert len(rows) == CELLS
    assert {row["repeats"] for row in rows} == {REPEATS}
    for row in rows:
        volume = Path(row["volume"]).name
        truth = true_rate(volume, row["rw"], row["block_bytes"], row["iodepth"])
        assert row["iops_low"] <= row["iops"] <= row["iops_high"]
        assert row["iops"] == pytest.approx(truth, rel=0.1)
        assert row["latency"] == "clat"


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
    """The ratios of the answer are the lowest and the highest of the comparison."""
    told = printed("show", imported).splitlines()[1]
    compared = printed(
        *("compare", imported, "--between", "volume", "--base", "/dev/premium"),
        *("--metric", "iops", "--format", "csv"),
    )
    rows = [row for row in csv.DictReader(io.StringIO(compared)) if "local" in row["candidate"]]
    assert len(rows) == CELLS // len(VOLUMES)
    ratios = [float(row["ratio"]) for row in rows]
    assert f"local is {min(ratios):.2g} to {max(ratios):.2g} times as fast as premium" in told


def test_the_design_is_printed(imported: str) -> None:
    """Four factors, and three repeats of each cell."""
    document = json.loads(printed("show", imported, "--design", "--json"))
    assert {*document["factors"]} == {"volume", "rw", "block_bytes", "iodepth"}
    assert document["repeats"] == {str(REPEATS): CELLS}
    assert document["missing"] == []
    assert printed("show", imported, "--design").endswith(f"{CELLS} cells measured three times\n")


def test_every_run_is_listed_on_request(imported: str) -> None:
    """With its own numbers and its state."""
    rows = json.loads(printed("show", imported, "--runs", "--json"))
    assert len(rows) == CELLS * REPEATS
    assert {row["state"] for row in rows} == {"finished"}


def test_options_of_fio_are_columns_of_export_and_conditions(imported: str) -> None:
    """A runtime that no frame has is selected by, and written; p99 is what tables show."""
    condition = ("--where", "runtime==60s and depth==16 and bs==4k")
    table = printed("export", imported, "--columns", "rw,runtime,p99", *condition)
    rows = [*csv.DictReader(io.StringIO(table))]
    assert len(rows) == len(VOLUMES) * len(PATTERNS) * REPEATS
    assert {row["runtime"] for row in rows} == {"60s"}
    assert {row["latency"] for row in rows} == {"clat"}
    assert all(float(row["lat_p99_s"]) > 0 for row in rows)
    assert len(json.loads(printed("show", imported, "--json", *condition))) == 6
