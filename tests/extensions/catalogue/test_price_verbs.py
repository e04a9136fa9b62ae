"""The verbs price, prices and volume-types."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from tests.labelled_campaigns import make
from volbench.analyse.findings.data_rules import CACHED_RATE
from volbench.api.many_campaigns import Dataset
from volbench.cli.main import cli
from volbench.errors import InputError
from volbench.model.campaign.host import Host

HOSTS = (
    Host(name="vm1", labels={"flavor": "Standard_B2s", "zone": "1"}),
    Host(name="vm2", labels={"flavor": "2DCPU-4GB", "zone": "1"}),
    Host(name="vm3", labels={"flavor": "unknown", "zone": "2"}),
)
KAMATERA = ("--prices", "kamatera-azure")


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    return make(tmp_path, HOSTS).root


def run(*arguments: str | Path) -> Result:
    """Call volbench on a wide terminal; it succeeds, or tells what is wrong."""
    done = CliRunner().invoke(cli, [*map(str, arguments)], env={"COLUMNS": "250"})
    assert done.exit_code == 0 or isinstance(done.exception, InputError), done.output
    return done


def test_no_price_is_of_an_invalid_result(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is invalid is left out, with a note, and so is the asked rate of a page cache."""
    plain = Dataset.frame

    def frame(self: Dataset, name: str) -> pd.DataFrame:
        if name != "findings":
            return plain(self, name)
        rows = plain(self, "summary")
        runs = rows.loc[rows["host"] == "vm1", "run"].unique()
        named = {"severity": "warning", "direction": "read", "rule": "x", "message": CACHED_RATE}
        return pd.DataFrame({"run": runs, **named})

    monkeypatch.setattr(Dataset, "frame", frame)
    done = run("price", results, *KAMATERA, "--unsteady", "--json")
    reported = json.loads(done.stdout)
    assert {offer["name"] for offer in reported["offers"]} == {"2DCPU-4GB", "unknown"}
    assert "all runs: 2 runs are invalid by x, left out" in reported["notes"]


def test_the_costs_of_a_campaign_are_listed(results: Path) -> None:
    """Flavors are found by their label; what has no price is told."""
    done = run("price", results, *KAMATERA, "--unsteady", "--json")
    reported = json.loads(done.stdout)
    offers = {offer["name"]: offer for offer in reported["offers"]}
    assert reported["currency"] == "USD"
    assert offers["Standard_B2s"]["monthly"] == {"low": 30.66, "high": 30.66}
    assert offers["2DCPU-4GB"]["family"] == "kamatera-dedicated"
    b2s = offers["Standard_B2s"]
    cost = b2s["cost_per_1000_iops"]["estimate"]
    assert cost == pytest.approx(30.66 / b2s["iops"]["estimate"] * 1000)
    assert b2s["runs"] == 2
    assert offers["unknown"]["rank"] is None
    assert offers["unknown"]["monthly"] == {"low": None, "high": None}
    assert "the price list has no flavor unknown" in reported["notes"]
    assert "nothing has a price" not in done.stdout
    none = run("price", results, *KAMATERA, "--unsteady", "--where", "zone==2").output
    assert "nothing has a price: name it" in none
    assert "`volbench import DIR/runs --label volume_type=NAME`" in " ".join(none.split())


def test_the_table_of_prices_is_readable(results: Path) -> None:
    """Ranks, costs and what was left out stand in the terminal."""
    done = run("price", results, *KAMATERA, "--unsteady", "--where", "zone==1")
    assert "Standard_B2s" in done.output
    assert done.output.count("steadiness unknown)") == done.output.count("unknown") == 2
    assert "only machines are counted" in done.output


def test_prices_are_grouped_by_family_and_by_label(results: Path) -> None:
    """Families of the file and labels of the hosts make offers as well."""
    for by, names in (("family", {"azure-b", "kamatera-dedicated"}), ("zone", {"1", "2"})):
        done = run("price", results, *KAMATERA, "--unsteady", "--json", "--by", by)
        assert names <= {offer["name"] for offer in json.loads(done.stdout)["offers"]}


@pytest.mark.slow
def test_the_chart_is_written(results: Path, tmp_path: Path) -> None:
    """Cost against IOPS goes into a file whose ending says what it is."""
    file = tmp_path / "pareto.png"
    run("price", results, *KAMATERA, "--unsteady", "--chart", file)
    assert file.read_bytes().startswith(b"\x89PNG")
    wrong = run("price", results, *KAMATERA, "--unsteady", "--chart", tmp_path / "pareto.gif")
    assert "is not the name of an image file" in str(wrong.exception)


def test_prices_are_shown_and_checked(tmp_path: Path) -> None:
    """A bundled file is listed, shown and good; a bad one tells its place."""
    assert "kamatera-azure" in run("price", "--list").output.split()
    shown = run("price", "--list", "kamatera-azure").output
    assert "0.022" in shown
    assert "16.06" in shown
    reported = json.loads(run("price", "--list", "kamatera-azure", "--json").output)
    assert reported["flavors"]["Standard_F2"]["monthly"] == 72.27
    schema = json.loads(run("price", "--schema").output)
    assert {"flavors", "volume_types"} <= set(schema["properties"])
    bad = tmp_path / "bad.yaml"
    metered = "{per_gib_month: 1, iops: {monthly: 5, per: 1000, included: 3000}}"
    bad.write_text(
        f"{{currency: USD, checked: 2026-01-31, source: x, volume_types: {{a: {metered}}}}}"
    )
    assert "0.005 above 3k" in run("price", "--list", bad).output
    bad.write_text("currency: USD\nflavors: {a: {hourly: x}}\n", encoding="utf-8")
    done = run("price", "--list", bad)
    assert isinstance(done.exception, InputError)
    assert f"{bad}:2:23: flavors.a.hourly" in str(done.exception)


def test_volume_types_are_listed_and_shown() -> None:
    """Rules of all types, and the limits of one volume."""
    listed = run("audit", "--list").output
    assert "azure/P15" in listed
    assert "azure/Standard_B2s" in listed
    assert "aws/gp2" in listed
    shown = run("audit", "--list", "aws/gp2 size=100g").output
    assert "5.4M" in shown
    assert "33m 20s" in shown
    rules = run("audit", "--list", "aws/gp2").output
    assert "3 per GiB, at least 100, at most 16k" in rules
    reported = json.loads(run("audit", "--list", "azure/P15", "--json").output)
    assert reported["limits"]["iops"] == 1100
    assert reported["limits"]["bandwidth_bytes_per_s"] == 125e6
    assert reported["bursts_s"]["burst of IOPS lasts"] == 1800
    everything = json.loads(run("audit", "--list", "--json").output)
    assert {"aws/gp3", "gcp/pd-ssd"} <= {kind["name"] for kind in everything}
