"""`volbench list`: what was measured when, and with which result."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.extensions.importer.sources import put, result_of, take
from tests.labelled_campaigns import HOSTS, make
from volbench.cli.campaign_list import _median_rates


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    """Return the default folder of results with a campaign in it."""
    make(tmp_path / "volbench-results", HOSTS)
    return tmp_path / "volbench-results"


def test_a_campaign_has_its_date_target_and_answer(results: Path) -> None:
    """As its own summary has them; a damaged campaign is listed with the reason."""
    (results / "damaged").mkdir()
    (results / "damaged/campaign.json").write_text("{")
    rows = {row["campaign"]: row for row in json.loads(call("status", results, "--json").stdout)}
    damaged, listed = rows[str(results / "damaged")], rows[str(results / "c")]
    assert damaged["answer"].startswith("cannot be read: ")
    data = volbench.open_campaign(results / "c")
    assert listed["date"] == data.campaign.created_utc[:16].replace("T", " ")
    assert listed["target"] == data.campaign.runs[0].volume.target
    assert listed["profile"] == data.campaign.runs[0].profile
    assert " IOPS" in listed["answer"]
    assert listed["warnings"].isdigit()


@pytest.mark.parametrize(
    ("rates", "answer"), [((900.0, 1100.0), "1k IOPS"), ((500.0, 1100.0), "500 IOPS to 1.1k IOPS")]
)
def test_no_median_stands_for_repeats_that_differ_twofold(
    rates: tuple[float, float], answer: str
) -> None:
    """As in the conclusion of the campaign, which says that one rate would mislead."""
    row = {"volume": "v", "job": "j", "group": "j", "direction": "read"}
    rows = ({**row, "iops": rate} for rate in rates)
    assert [*_median_rates(rows)] == [f"j read: {answer}"]


def test_failed_runs_have_no_rate(tmp_path: Path) -> None:
    """Their number is the answer, beside the rate of those that finished."""
    document = json.loads(result_of("fio-3.33/randrw-jsonplus", rw="randrw"))
    for name, error in (("full", 28), ("mix", 0)):
        document["jobs"][0] |= {"jobname": name, "error": error}
        put(tmp_path / "in" / f"{name}.json", json.dumps(document))
    take(tmp_path / "in/full.json", into=tmp_path / "a")
    take(tmp_path / "in", into=tmp_path / "b")
    rows = {row["campaign"]: row for row in json.loads(call("status", tmp_path, "--json").stdout)}
    assert rows[str(tmp_path / "a")]["answer"] == "no result; 1 run failed"
    both = rows[str(tmp_path / "b")]["answer"]
    assert both.startswith("mix read: ")
    assert both.endswith("; 1 run failed")


def test_since_omits_older_campaigns(results: Path) -> None:
    """A date and a time before now; anything else is an error with an example."""
    created = datetime.fromisoformat(volbench.open_campaign(results / "c").campaign.created_utc)
    next_day = (created + timedelta(days=1)).date().isoformat()
    days = (datetime.now(UTC) - created).days + 1
    for since, count in ((str(created.date()), 1), (next_day, 0), (f"{days}d", 1), ("1ms", 0)):
        listed = json.loads(call("status", results, "--json", "--since", since).stdout)
        assert len(listed) == count, since
    refused = call("status", results, "--since", "2026-13-01")
    assert refused.returncode == 2
    assert "--since 2026-11-20" in refused.stderr
