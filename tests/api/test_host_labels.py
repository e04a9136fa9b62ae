"""Labels of hosts reach the summary, the terminal and every exported file."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import volbench
from tests.labelled_campaigns import HOSTS, make
from volbench.cli.main import cli
from volbench.errors import InputError
from volbench.model.frames.columns import SUMMARY
from volbench.store.layout import Layout

LABELS = ["label_provider", "label_volume_type", "label_zone"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a campaign on three hosts with different labels."""
    return make(tmp_path, HOSTS)


def test_the_summary_has_labels_and_numbers_of_clients(layout: Layout) -> None:
    """Labels follow the contract's columns; a host without one has a gap there."""
    frame = volbench.open_campaign(layout.root).summary()
    assert list(frame.columns) == [*(column.name for column in SUMMARY), *LABELS]
    reads = frame[frame["direction"] == "read"].set_index("run")
    assert reads["label_provider"].tolist()[:3] == ["azure"] * 3
    assert reads.loc["001-mix-r1", "label_volume_type"] == "P15"
    assert reads.loc["003-mix-r1", ["label_volume_type"]].isna().all()
    assert reads.loc["004-mix-r1", LABELS].isna().all()
    # A host with one process has no number, never a zero.
    assert reads["client"].tolist()[:2] == [1, 2]
    assert reads["client"].isna().tolist() == [False, False, True, True]


def test_show_has_a_column_for_labels_that_differ(tmp_path: Path) -> None:
    """What every host has in common distinguishes no rows; a host with a label of its own is it."""
    comparable = tuple(host.model_copy(update={"labels": dict(host.labels)}) for host in HOSTS[:2])
    reported = CliRunner().invoke(
        cli, ["show", str(make(tmp_path, comparable).root)], env={"COLUMNS": "200"}
    )
    heading = next(line for line in reported.output.splitlines() if "IOPS" in line).split()
    assert heading[:3] == ["rw", "volume_type", "client"]
    assert "P15" in reported.output
    assert sum("azure" in line for line in reported.output.splitlines()) == 1


def test_show_takes_a_condition(tmp_path: Path) -> None:
    """Other runs are neither in the table nor in the list of states."""
    folder = make(tmp_path, HOSTS).root
    lines = {}
    for where in ("host==vm1", "host!=vm3"):
        shown = CliRunner().invoke(cli, ["show", str(folder), "--where", where, "--runs"])
        assert shown.exit_code == 0, shown.output
        lines[where] = shown.stdout.count("finished")
    assert lines["host!=vm3"] > lines["host==vm1"] > 0
    reported = CliRunner().invoke(cli, ["show", str(folder), "--where", "host==vm1", "--json"])
    assert {row["host"] for row in json.loads(reported.stdout)} == {"vm1"}
    table = CliRunner().invoke(
        cli, ["show", str(folder), "--where", "host!=vm3", "--runs", "--wide"]
    )
    assert "vm2" in table.stdout
    assert "vm3" not in table.stdout
    refused = CliRunner().invoke(cli, ["show", str(folder), "--where", "host==vm1", "--rounds"])
    assert isinstance(refused.exception, InputError)


def test_export_carries_labels(layout: Layout, tmp_path: Path) -> None:
    """CSV has the columns, Parquet says what they mean as well."""
    reported = CliRunner().invoke(cli, ["export", str(layout.root)])
    rows = list(csv.DictReader(io.StringIO(reported.output)))
    assert rows[0]["label_volume_type"] == "P15"
    assert rows[-1]["label_volume_type"] == ""
    file = tmp_path / "summary.parquet"
    arguments = ["export", str(layout.root), "--format", "parquet", "--output", str(file)]
    CliRunner().invoke(cli, arguments, catch_exceptions=False)
    field = pq.read_schema(file).field("label_zone")
    assert b"zone" in field.metadata[b"meaning"]
