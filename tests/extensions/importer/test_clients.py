"""Results of fio's clients: a host each, their own sums, and never fio's."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.extensions.importer.sources import CLIENTS, put, take
from volbench.api.one_campaign import CampaignData
from volbench.errors import OutputError
from volbench.extensions.importer.import_campaign import ImportReport

Taken = tuple[ImportReport, CampaignData]
HOSTS = ("127.0.0.2", "127.0.0.3")
Raw = dict[str, Any]


def document_of(path: Path) -> Raw:
    """Return what fio printed, as Python decodes it."""
    text = path.read_text()
    document = json.loads(text[text.index("{\n") :])
    assert isinstance(document, dict)
    return document


def entries(path: Path) -> list[Raw]:
    """Return fio's entries for its clients, its own sums left out."""
    return [
        client_stat
        for client_stat in document_of(path)["client_stats"]
        if client_stat["jobname"] != "All clients"
    ]


def records(frame: pd.DataFrame) -> list[Raw]:
    """Return the rows of a frame."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


@pytest.fixture(name="taken", scope="module")
def _taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    return take(CLIENTS, into=tmp_path_factory.mktemp("clients") / "campaign")


def test_each_client_is_a_host(taken: Taken) -> None:
    """Its numbers are those of its own entries; host, port, job and group tell them."""
    _, opened = taken
    rows = records(opened.summary())
    assert [(row["host"], row["job"], row["direction"]) for row in rows] == [
        (host, job, direction)
        for host in HOSTS
        for job, direction in (("rd", "read"), ("wr", "write"))
    ]
    for row in rows:
        mine = [
            entry[row["direction"]]
            for entry in entries(CLIENTS / "stdout")
            if (entry["hostname"], entry["jobname"]) == (row["host"], row["job"])
        ]
        assert len(mine) == row["numjobs"]
        assert row["total_ios"] == sum(entry["total_ios"] for entry in mine)
        assert row["iops"] == pytest.approx(sum(entry["iops"] for entry in mine), rel=1e-3)
    parts = {
        (run.imported.hostname, run.imported.port, run.imported.jobs[0].groupid)
        for run in opened.campaign.runs
        if run.imported
    }
    assert parts == {(host, 8771, group) for host in HOSTS for group in (0, 1)}


def test_clients_of_one_host_are_numbered(tmp_path: Path) -> None:
    """Two servers on one address are told apart by their ports."""
    document = document_of(CLIENTS / "stdout")
    for entry in document["client_stats"]:
        if entry.get("hostname") == HOSTS[1]:
            entry |= {"hostname": HOSTS[0], "port": 8772}
    source = put(tmp_path / "clients.json", json.dumps(document))
    _, opened = take(source, into=tmp_path / "campaign")
    rows = opened.summary()
    assert rows["client"].tolist() == [1, 1, 2, 2]
    assert set(rows["host"]) == {HOSTS[0]}
    ports = [run.imported.port or 0 for run in opened.campaign.runs if run.imported]
    assert sorted(ports) == [8771, 8771, 8772, 8772]


def test_clients_of_one_job_are_one_step(taken: Taken) -> None:
    """Totals are over the time in which all ran; a stonewall parts them."""
    _, opened = taken
    rows = records(opened.summary())
    for total, (job, wanted) in zip(
        records(opened.frame("aggregate")), (("rd", 1600), ("wr", 600)), strict=True
    ):
        assert (total["job"], total["clients"], total["clients_planned"]) == (job, 2, 2)
        assert total["iops"] == pytest.approx(wanted, rel=0.02)
        assert total["lat_max_s"] == max(row["lat_max_s"] for row in rows if row["job"] == job)
        assert 1.8 < total["overlap_s"] < 2


def test_logs_of_clients_are_reported_by_their_names(taken: Taken) -> None:
    """The host stands behind the name; the first job's numjobs are logs 1 and 2."""
    report, opened = taken
    assert (report.logs, report.remarks) == (30, ())
    sources = {
        (run.host, run.job): {file.source.rsplit("/", 1)[1] for file in run.imported.files}
        for run in opened.campaign.runs
        if run.imported
    }
    assert "l_bw.2.log.127.0.0.2" in sources["127.0.0.2", "rd"]
    assert "l_bw.3.log.127.0.0.3" in sources["127.0.0.3", "wr"]
    assert "l_bw.3.log.127.0.0.3" not in sources["127.0.0.3", "rd"]


def test_series_of_clients_begin_with_their_logs(tmp_path: Path) -> None:
    """The time in their result is that of fio's start: no stall precedes the first row."""
    for path in (CLIENTS / "stdout", *CLIENTS.glob("l_bw.*"), *CLIENTS.glob("l_iops.*")):
        put(tmp_path / "in" / path.name, path.read_bytes())
    _, opened = take(tmp_path / "in", into=tmp_path / "out")
    series = opened.series()
    first = series.query("host == '127.0.0.2' and job == 'rd'").iloc[0]
    assert (first["t_s"], first["iops"]) == (0.25, 805)
    assert (series["bw_bytes_per_s"] > 0).all()


def test_clients_without_names_are_refused(tmp_path: Path) -> None:
    """Up to fio 3.2 nothing tells two clients from two numjobs: they are not added up."""
    document = document_of(CLIENTS / "stdout")
    for entry in document["client_stats"]:
        del entry["hostname"], entry["port"]
    source = put(tmp_path / "r.json", json.dumps(document))
    with pytest.raises(OutputError, match="no host names"):
        take(source, into=tmp_path / "c")


def test_the_sum_of_clients_is_read_where_it_is_alone(tmp_path: Path) -> None:
    """Scripts keep fio's last entry alone; it has neither a host nor options, not even defaults."""
    document = document_of(CLIENTS / "stdout")
    *_, total = document["client_stats"]
    assert total["jobname"] == "All clients"
    document["client_stats"] = [total]
    document["global options"] = {"unified_rw_reporting": "0"}
    _, opened = take(put(tmp_path / "r.json", json.dumps(document)), into=tmp_path / "c")
    rows = [row for row in opened.rows("summary") if row["direction"] != "sync"]
    iops = [total[row["direction"]]["iops"] for row in rows if isinstance(row["direction"], str)]
    assert [row["iops"] for row in rows] == pytest.approx(iops)
    assert {row["host"] for row in rows} == {"unknown"}
    assert {(row["block_bytes"], row["iodepth"], row["direct"]) for row in rows} == {(None,) * 3}


def test_options_of_clients_are_not_mixed_up(tmp_path: Path) -> None:
    """From 3.39 on each client tells its own; before, what they differ in is unknown."""
    document = document_of(CLIENTS / "stdout")
    own = [
        {"hostname": host, "port": 8771, "bs": bs}
        for host, bs in zip(HOSTS, ("4k", "8k"), strict=True)
    ]
    (tmp_path / "new.json").write_text(json.dumps({**document, "global options": own}))
    _, opened = take(tmp_path / "new.json", into=tmp_path / "new")
    assert opened.summary()["block_bytes"].tolist() == [4096, 4096, 8192, 8192]
    text = json.dumps({**document, "global options": {"bs": "4k", "size": "4m"}})
    (tmp_path / "old.json").write_text(text.replace('"size": "4m"', '"size": "4m", "bs": "8k"'))
    _, opened = take(tmp_path / "old.json", into=tmp_path / "old")
    assert (opened.summary()["size_bytes"] == 4 << 20).all()
    assert opened.summary()["block_bytes"].isna().all()
