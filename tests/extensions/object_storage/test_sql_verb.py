"""`volbench sql`, `volbench export` and `volbench show` over several campaigns."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow.dataset as pads
import pytest
from click.testing import CliRunner, Result

import volbench
from tests.labelled_campaigns import HOSTS, make
from volbench.cli.main import cli
from volbench.errors import InputError, VolbenchError
from volbench.model.frames.columns import FRAMES
from volbench.store.layout import Layout


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    """Return a folder with two campaigns of one name, whose hosts have different labels."""
    make(tmp_path / "results", HOSTS)
    other = make(tmp_path / "other", HOSTS[2:]).root
    plan = other / "campaign.json"
    plan.write_text(
        plan.read_text().replace('"seed": 1', '"seed": 2').replace('"seed":1', '"seed":2')
    )
    shutil.move(other, tmp_path / "results" / "second")
    return tmp_path / "results"


def run(*arguments: str | Path) -> Result:
    """Return what a command printed; errors of volbench are raised."""
    return CliRunner().invoke(
        cli, [str(argument) for argument in arguments], catch_exceptions=False
    )


def rows(result: Result) -> list[dict[str, str]]:
    """Return CSV as records."""
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_sql_agrees_with_the_frames(results: Path) -> None:
    """SQL sees the rows that Python sees, with the same names and labels."""
    reported = run(
        "sql", "select * from summary order by run, direction", results, "--format", "json"
    )
    frame = volbench.open_campaigns(results).summary()
    frame = frame.sort_values(["run", "direction"], ignore_index=True)
    found = pd.DataFrame(json.loads(reported.stdout))
    assert sorted(found.columns) == sorted(frame.columns)
    assert found["run"].tolist() == frame["run"].tolist()
    assert found["iops"].tolist() == frame["iops"].tolist()
    assert found["label_volume_type"].fillna("").tolist() == (
        frame["label_volume_type"].fillna("").tolist()
    )


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_can_be_requested(results: Path, name: str) -> None:
    """Derived ones too: each has as many rows as in Python."""
    query = f"select count(*) as n from {name}"  # noqa: S608 - a name of our own
    reported = run("sql", query, results, "--format", "csv")
    assert int(rows(reported)[0]["n"]) == len(volbench.open_campaigns(results).frame(name))


def test_a_single_campaign_keeps_its_names(results: Path) -> None:
    """One folder alone has the ids of runs that show prints."""
    reported = run("sql", "select distinct run from summary order by 1", results / "c")
    assert "001-mix-r1" in reported.stdout
    assert "c/001" not in reported.stdout


def test_values_of_every_type_are_printed(results: Path, tmp_path: Path) -> None:
    """Decimals, times, lists and structures get through every format, and into files."""
    query = (
        "select sum(total_ios) as ios, sum(total_ios)::decimal(20, 2) / 4 as part, "
        "min(started_utc::timestamp) as first, list(distinct host) as hosts, "
        "true as yes, null as nothing, 1 as x, 2 as x from summary"
    )
    [row] = json.loads(run("sql", query, results, "--format", "json").stdout)
    assert isinstance(row["ios"], int)
    assert row["part"] == pytest.approx(row["ios"] / 4)
    assert row["first"] == "2026-01-01T00:00:00"
    assert set(json.loads(row["hosts"])) == {"vm1", "vm2", "vm3"}
    assert (row["x"], row["x_2"], row["nothing"]) == (1, 2, None)
    for kind in ("table", "csv", "markdown", "latex"):
        assert str(row["ios"]) in run("sql", query, results, "--format", kind).stdout
    for kind in ("parquet", "xlsx"):
        run("sql", query, results, "--format", kind, "--output", tmp_path / f"x.{kind}")
    assert pd.read_parquet(tmp_path / "x.parquet")["ios"][0] == row["ios"]
    assert openpyxl.load_workbook(tmp_path / "x.xlsx")["answer"]["A3"].value == row["ios"]


def test_tables_that_are_old_are_made_anew(results: Path) -> None:
    """A Run whose tables were written before it ended is in the answer."""
    layout = Layout(results / "c")
    run("sql", "select 1 from summary", results)
    (layout.tables / "stamp").write_text("of another time\n")
    (layout.tables / "summary.parquet").write_bytes(b"")
    reported = run("sql", "select count(*) as n from summary", results / "c", "--format", "csv")
    assert rows(reported)[0]["n"] == "8"


def test_a_read_only_folder_is_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tables on disk the frames are taken from memory."""
    monkeypatch.setattr("os.access", lambda *_: False)
    reported = run(
        "sql", "select distinct campaign from summary order by 1", results, "--format", "csv"
    )
    assert [row["campaign"] for row in rows(reported)] == ["c", "second"]
    assert not Layout(results / "c").tables.exists()


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    """A folder that is missing, and one without campaigns."""
    with pytest.raises(InputError, match="no folder"):
        run("sql", "select 1", tmp_path / "missing")
    with pytest.raises(InputError, match="no campaign"):
        run("sql", "select 1", tmp_path)


def test_queries_work_from_python(results: Path) -> None:
    """A dataset answers SQL, of the runs that its condition keeps."""
    requested = volbench.open_campaigns(results, where="volume_type==P15")
    answer = requested.sql("select distinct s.host from summary s join percentiles using (run)")
    assert answer["host"].tolist() == ["vm1"]
    only = requested.sql("select count(distinct run) as n from percentiles")
    assert only["n"].tolist() == [requested.frame("percentiles")["run"].nunique()]


def test_export_of_several_is_one_table(results: Path) -> None:
    """CSV of a folder has the rows of all its campaigns; a condition leaves some out."""
    reported = rows(run("export", results))
    assert {row["campaign"] for row in reported} == {"c", "second"}
    kept = rows(run("export", results, "--where", "volume_type==P15", "--columns", "run,bs,p99"))
    assert list(kept[0]) == ["run", "block_bytes", "lat_p99_s"]
    assert {row["run"] for row in kept} == {"c/001-mix-r1", "c/002-mix-r1"}


def test_a_dataset_grows(results: Path, tmp_path: Path) -> None:
    """Campaigns exported one after another, even twice, are what both are at once."""
    dataset = tmp_path / "set"
    run("export", results, "--format", "dataset", "--output", dataset)
    run("export", results, "--format", "dataset", "--output", dataset)
    assert sorted(file.name for file in (dataset / "summary").iterdir()) == [
        "c.parquet",
        "second.parquet",
    ]
    frame = volbench.open_campaigns(results).summary()
    reported = run("sql", "select run, iops from summary order by all", dataset, "--format", "json")
    expected = frame[["run", "iops"]].sort_values(["run", "iops"], ignore_index=True)
    assert pd.DataFrame(json.loads(reported.stdout)).equals(expected)


def test_a_dataset_is_read_without_volbench(results: Path, tmp_path: Path) -> None:
    """Any reader of Parquet takes the folder of a frame as one table."""
    dataset = tmp_path / "set"
    run("export", results, "--format", "dataset", "--output", dataset)
    files = sorted((dataset / "summary").iterdir())
    schemas = [pads.dataset(file).schema for file in files]
    table = pads.dataset(dataset / "summary", schema=pads.pa.unify_schemas(schemas)).to_table()
    assert table.num_rows == len(volbench.open_campaigns(results).summary())
    assert table.schema.field("iops").metadata[b"unit"] == b"1/s"
    assert (dataset / "verdicts" / "c.parquet").exists()


def test_another_campaign_of_that_name_is_not_overwritten(results: Path, tmp_path: Path) -> None:
    """Two campaigns may have one name: the second is refused, and the first one stays."""
    dataset = tmp_path / "set"
    run("export", results / "c", "--format", "dataset", "--output", dataset)
    before = (dataset / "summary" / "c.parquet").read_bytes()
    with pytest.raises(InputError, match="another campaign") as caught:
        run("export", results / "second", "--format", "dataset", "--output", dataset)
    assert "one command" in caught.value.hint
    assert (dataset / "summary" / "c.parquet").read_bytes() == before


def test_metrics_and_a_dashboard_need_time(results: Path) -> None:
    """Runs without logs and samples are told, with no empty file left behind."""
    for kind in ("openmetrics", "grafana"):
        with pytest.raises(InputError, match="no result has timestamps"):
            run("export", results, "--format", kind)


@pytest.mark.parametrize("arguments", [["--frame", "all"], ["--format", "dataset"]])
def test_many_files_need_a_folder(results: Path, arguments: list[str]) -> None:
    """Standard output holds one file."""
    reported = CliRunner().invoke(cli, ["export", str(results), *arguments])
    assert isinstance(reported.exception, InputError)
    assert "--output" in str(reported.exception)


def test_a_dataset_that_cannot_be_written_is_reported(results: Path, tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "set").write_text("")
    with pytest.raises(VolbenchError, match="cannot be written"):
        run("export", results, "--format", "dataset", "--output", tmp_path / "set")


def test_a_line_for_each_campaign(results: Path) -> None:
    """Name, profile, time, hosts, states and volume types, as a table and for scripts."""
    reported = run("show", "--all", results).stdout
    assert "4 finished" in reported
    assert "1 finished" not in reported.replace("second", "")[: reported.index("4 finished")]
    first, second = json.loads(run("show", "--all", "--json", results).stdout)
    assert (first["campaign"], first["volume_types"]) == ("c", ["P15"])
    assert first["hosts"] == ["vm1", "vm2", "vm3"]
    assert (second["campaign"], second["runs"]) == ("second", {"finished": 2})
    assert second["path"].endswith("results/second")


def test_results_of_several_campaigns_are_in_one_table(results: Path) -> None:
    """The table has a column that tells the campaigns apart."""
    heading = next(line for line in run("show", results).stdout.splitlines() if "IOPS" in line)
    assert heading.split()[0] == "campaign"
    assert "second/002-mix-r1" in run("show", "--runs", results).stdout
