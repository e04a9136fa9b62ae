"""Raw output of real fio, old and new, becomes rows without a number changing."""

import json
from pathlib import Path

import pytest

from tests.ingest.block_rows import block_rows
from tests.ingest.recorded_runs import CASES, ingest, make
from volbench.ingest.campaign_tables import read_tables
from volbench.model.campaign.planned_run import RunState, Section, VolumeKind
from volbench.store.journal import History


@pytest.mark.parametrize(
    ("kind", "options", "direct"),
    [
        (VolumeKind.NBD, {"ioengine": "libaio"}, True),
        (VolumeKind.DEVICE, {"ioengine": "io_uring_cmd"}, True),
        (VolumeKind.DEVICE, {"ioengine": "mmap", "direct": "1"}, False),
        (VolumeKind.DEVICE, {}, False),
    ],
)
def test_the_engine_decides_about_the_page_cache(
    tmp_path: Path, kind: VolumeKind, options: dict[str, str], *, direct: bool
) -> None:
    """An export has an engine of its own and is never cached by the host, a mapped file always."""
    layout, campaign = make(
        tmp_path, "fio-3.33/randrw-jsonplus", Section(name="mix", options=options)
    )
    (run,) = campaign.runs
    there = run.model_copy(update={"volume": run.volume.model_copy(update={"kind": kind})})
    rows = ingest(layout, campaign.model_copy(update={"runs": (there,)}))
    engine = "nbd" if kind is VolumeKind.NBD else options.get("ioengine")
    assert {(row["direct"], row["ioengine"]) for row in rows.summary} == {(direct, engine)}


@pytest.mark.parametrize("version", ["3.28", "3.33", "3.42"])
def test_reads_and_writes_become_rows_of_their_own(tmp_path: Path, version: str) -> None:
    """A mixed job has a row for each direction, with percentiles and bins beside it."""
    section = Section(name="mix", options={"rw": "randrw", "bs": "4096", "direct": "1"})
    layout, campaign = make(tmp_path, f"fio-{version}/randrw-jsonplus", section)
    rows = ingest(layout, campaign)
    raw = json.loads((CASES / f"fio-{version}/randrw-jsonplus/stdout").read_text())["jobs"][0]
    assert [row["direction"] for row in rows.summary] == ["read", "write"]
    for row in rows.summary:
        reported = raw[str(row["direction"])]
        assert row["iops"] == reported["iops"]
        assert row["io_bytes"] == reported["io_bytes"]
        assert row["clat_max_s"] == reported["clat_ns"]["max"] / 1e9
        assert row["direct"] is True
        counted = sum(
            int(str(entry["count"]))
            for entry in block_rows("histogram", rows.histogram)
            if entry["direction"] == row["direction"] and entry["latency"] == "clat"
        )
        assert counted == reported["total_ios"]
    assert {row["percentile"] for row in rows.percentiles} >= {50.0, 99.0, 99.99}


def test_failed_run_without_output_keeps_its_row(tmp_path: Path) -> None:
    """A run that left nothing readable has its state, what was planned, and no numbers."""
    for pattern, blocks, block in (("read", "4096", 4096), ("write", "4096,8192", 8192)):
        section = Section(name="r", options={"rw": pattern, "bs": blocks})
        layout, campaign = make(tmp_path / pattern, "fio-3.33/bad-option", section)
        (row,) = ingest(layout, campaign, RunState.FAILED).summary
        assert (row["status"], row["rw"], row["block_bytes"]) == ("failed", pattern, block)
        assert "iops" not in row
    section = Section(name="r", options={"rw": "randrw", "bs": "4096,8192"})
    layout, campaign = make(tmp_path / "mixed", "fio-3.33/bad-option", section)
    (row,) = ingest(layout, campaign, RunState.FAILED).summary
    assert (row["block_bytes"], row["block_max_bytes"]) == (None, 8192)


@pytest.mark.parametrize("name", ["device.log.zst", "facts.json", "status.json"])
def test_damage_outside_the_result_does_not_affect_its_numbers(tmp_path: Path, name: str) -> None:
    """Samples or notes that are not what they should be cost what they held, and nothing else."""
    section = Section(name="mix", options={"rw": "randrw"})
    layout, campaign = make(tmp_path, "fio-3.33/randrw-jsonplus", section)
    layout.run("001-a-r1").path.joinpath(name).write_bytes(b"<html>no\0thing</html>\n" * 9)
    rows = ingest(layout, campaign).summary
    assert {row["status"] for row in rows} == {"finished"}
    assert all(name in str(row["damage"]) for row in rows)
    assert all(row["iops"] for row in rows)


def test_runs_that_have_not_ended_have_no_rows(tmp_path: Path) -> None:
    """A planned or running run is not a result."""
    section = Section(name="mix", options={"rw": "randrw"})
    layout, campaign = make(tmp_path, "fio-3.33/randrw-jsonplus", section)
    for states in ({}, {campaign.runs[0].id: RunState.RUNNING}):
        (tables,) = read_tables(layout, campaign, History(states=states))
        assert {table.num_rows for table in tables.values()} == {0}
