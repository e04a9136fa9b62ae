"""Searches for the highest rate within a latency, on simulated volumes in virtual time."""

from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from tests.plan.expansion.planned_clients import VM1, VM2, folder
from tests.plan.loading import load
from volbench.analyse.compare.rate_search import searches_in
from volbench.engine.campaign.rate_trials import RateJudge
from volbench.engine.conditioning import run_preparation
from volbench.extensions.lab.scenario import read_scenario
from volbench.model.results.provenance import BlockSample
from volbench.plan.expansion.expand import Terms
from volbench.plan.expansion.multi_client import Client, expand_clients
from volbench.store.journal import read_history
from volbench.store.layout import Layout

PROFILE = """
name: within
defaults: {runtime: 2s, time_based: 1}
jobs:
  writes: {rw: randwrite, bs: 4k, iodepth: 64, within: p99 < 5ms}
  reads: {rw: randread, bs: 4k}
limits: azure/P15
"""
PRICES = """
currency: EUR
checked: 2026-11-21
source: The provider's price list
volume_types:
  azure/P15: {monthly: 38.41}
"""


@pytest.fixture
def uri() -> str:
    """Return the address of a volume that is simulated."""
    return silent_export()


def measured(folder: Path, uri: str, *arguments: str, interrupted: str = "", rw: str = "") -> str:
    """Run the profile on a disk with 1,100 IOPS, and return what is printed."""
    profile = folder.with_suffix(".yaml")
    profile.write_text(PROFILE.replace("randwrite", rw or "randwrite"), encoding="utf-8")
    place = "--on", uri, "--allow-destroy", uri, "-o", folder
    with virtual_fio(read_scenario("p15"), interrupted=interrupted):
        done = call("run", profile, *place, *arguments)
    assert done.returncode == (130 if interrupted else 0), done.stderr
    return done.stdout


def test_the_rate_that_keeps_the_bound_is_found(tmp_path: Path, uri: str) -> None:
    """The limit is 1,100 IOPS; the answer is below it by less than the bracket is wide."""
    text = measured(tmp_path / "c", uri)
    assert "IOPS within p99 < 5ms, in 3 of 3 runs; without a limit 1.1k IOPS with p99" in text
    opened = volbench.open_campaign(tmp_path / "c")
    (found,) = searches_in(opened.results())
    assert found.search.kept is not None
    assert 0.95 * 1100 < found.search.kept.rate <= 1100
    assert len([row for row in opened.results() if row["job"] == "reads"]) == 1
    assert "the search for the rate of writes has ended" in call("show", tmp_path / "c").stdout


def test_a_resume_goes_on_with_the_same_rates(tmp_path: Path, uri: str) -> None:
    """The trial that was interrupted is repeated at the rate that was chosen for it."""
    measured(tmp_path / "whole", uri)
    measured(tmp_path / "cut", uri, interrupted="004-")
    with virtual_fio(read_scenario("p15")):
        assert call("resume", tmp_path / "cut").returncode == 0
    whole, cut = (
        read_history(tmp_path / name / "journal.jsonl").chosen for name in ("whole", "cut")
    )
    assert whole == cut
    assert len(whole) > 5
    journal = tmp_path / "hostile.jsonl"
    journal.write_text('{"kind": "chosen", "run": "x", "options": {"exec_prerun": "sh"}}\n')
    assert read_history(journal).chosen == {"x": {}}


def test_a_host_that_is_lost_ends_a_search(tmp_path: Path) -> None:
    """Without it no sum is known; one trial that failed is repeated."""
    clients = [Client(host, 0, folder()) for host in (VM1, VM2)]
    text = PROFILE.replace("bs: 4k", "size: 1m, bs: 4k").partition("limits")[0]
    plan = expand_clients([load(text)], clients, Terms(seed=1))
    here = [run for run in plan.runs if run.within and run.host == VM1.name]
    judge = RateJudge(
        Layout(tmp_path), plan, is_finished=here.__contains__, chosen={}, choose=lambda *_: None
    )
    first, second, third = map(judge.before, here[:3])
    assert (first, second, third and third.is_over) == (None, None, True)
    assert f"{VM2.name} finished none of two trials" in str(third)


def test_an_answer_is_drawn_reported_and_priced(tmp_path: Path, uri: str) -> None:
    """Chart, report and costs name the bound."""
    measured(tmp_path / "c", uri)
    chart = tmp_path / "within.svg"
    assert call("plot", "within", tmp_path / "c", "-o", chart).returncode == 0
    assert "within p99 &lt; 5ms" in chart.read_text(encoding="utf-8")
    page = tmp_path / "r.html"
    assert call("report", tmp_path / "c", "-o", page).returncode == 0
    assert "Highest rate within a latency" in page.read_text(encoding="utf-8")
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES, encoding="utf-8")
    costs = call(
        "price", tmp_path / "c", "--prices", prices, "--unsteady", "--where", "rw==randwrite"
    )
    assert "Rates are the highest within p99 < 5ms" in costs.stdout
    (found,) = searches_in(volbench.open_campaign(tmp_path / "c").results())
    assert found.search.kept is not None
    assert f"{38.41 / found.search.kept.rate * 1000:.2f}" in costs.stdout


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("within: iops < 5", "'iops < 5' is not an upper bound on a latency"),
        ("within: p99 > 5ms", "is not an upper bound on a latency"),
        ("within: p99 < 5", "'5' has no unit"),
        ("within: p99 < 5ms, rate_iops: 100", "a search sets rate_iops itself"),
        ("within: p99 < 5ms, bssplit: 4k/50:8k/50", "fio counts bytes, not I/Os, where bssplit"),
        (
            "within: p99 < 5ms, until: steady, runtime: 10m",
            "each rate of a search runs for as long",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path: Path, job: str, words: str) -> None:
    """Each refusal says what to write instead."""
    profile = tmp_path / "p.yaml"
    text = PROFILE.replace("within: p99 < 5ms", job)
    profile.write_text(text, encoding="utf-8")
    done = call("profile", "check", profile)
    assert done.returncode == 2
    assert words in done.stderr + done.stdout


def test_a_search_on_blocks_without_data_ends_after_its_first_trial(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads of blocks that were never written say nothing, at any rate."""
    empty = BlockSample(unmapped_share=0.9, reported_by="the NBD server")
    monkeypatch.setattr(run_preparation, "sample_blocks", lambda *_: empty)
    measured(tmp_path / "c", uri, rw="randread")
    shown = call("show", tmp_path / "c").stdout
    assert "most blocks that writes read hold no data, or only zeros" in shown
    assert "volbench warmup" in shown
    rows = volbench.open_campaign(tmp_path / "c").results()
    assert [row["job"] for row in rows].count("writes") == 1
