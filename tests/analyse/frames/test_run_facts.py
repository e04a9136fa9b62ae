"""Facts of real runs beside their numbers."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import volbench
from tests.labelled_campaigns import HOSTS, make
from volbench.analyse.frames.run_facts import STEP, VOLUME_KEY, fact_columns, stack, with_steady


def test_facts_of_a_campaign_are_one_row_per_run(tmp_path: Path) -> None:
    """The rows stay as they are; each has its volume and what was known of it."""
    layout = make(tmp_path, HOSTS)
    dataset = volbench.open_campaigns(layout.root)
    summary, rows = dataset.summary(), dataset.facts()
    pd.testing.assert_frame_equal(rows[summary.columns], summary)
    assert rows[VOLUME_KEY].nunique() == 3
    job = '"jobname": "a", "job options": {"filename": "/dev/sda"}, "read": {"io_bytes": 9'
    for name in "ab":  # sda of an unknown host, in two campaigns
        (tmp_path / name).mkdir()
        fio = f'{{"jobs": [{{{job}, "total_ios": 1, "runtime": 9}}}}]}}'
        (tmp_path / name / "a.json").write_text(fio)
    facts = volbench.open_campaigns(tmp_path / "a", tmp_path / "b").facts()
    assert (facts["volume"].nunique(), facts[VOLUME_KEY].nunique()) == (1, 2)
    assert set(rows["volbench_version"]) == {"0"}
    assert rows[STEP].nunique() == summary["run"].nunique()
    assert rows["kernel"].isna().all()
    assert {"label_volume_type", "clients", "kernel"} <= set(fact_columns(rows))


@pytest.mark.slow
def test_facts_of_several_campaigns_and_a_condition(tmp_path: Path) -> None:
    """Every run finds its own facts under its longer name; a condition may use a fact."""
    make(tmp_path / "results", HOSTS)
    shutil.copytree(tmp_path / "results/c", tmp_path / "results/older/first")
    dataset = volbench.open_campaigns(tmp_path / "results")
    rows = dataset.facts()
    doubted = set(dataset.frame("findings")["run"])
    assert doubted
    assert doubted <= set(rows["run"])
    assert rows["clients"].notna().all()
    assert set(rows["campaign"]) == {"c", "first"}
    entry = volbench.open_campaigns(tmp_path / "results", where="volbench_version==0 and host==vm3")
    assert set(entry.facts()["host"]) == {"vm3"}


def test_options_that_one_campaign_lacks_have_their_default() -> None:
    """Not set is told from not known."""
    plain = {"options_unreported": [()]}
    reported = pd.DataFrame({"run": ["a"], "options_known": [True], **plain})
    untold = pd.DataFrame({"run": ["b"], "options_known": [False], **plain})
    limited = pd.DataFrame({"run": ["c"], "options_known": [True], "rate_iops": ["10"], **plain})
    joined = stack([reported, untold, limited])
    assert joined["rate_iops"].tolist()[::2] == ["not set", "10"]
    assert pd.isna(joined["rate_iops"][1])


def test_steady_rates_of_runs() -> None:
    """The median of the steady stretch where a section was alone in its run; else nothing."""
    rows = pd.DataFrame(
        {
            "run": ["a", "b", "c", "c"],
            "direction": ["read", "read", "write", "write"],
            "iops": [900.0, 500.0, 10.0, 20.0],
            "bw_bytes_per_s": [900 * 4096.0, 500 * 4096.0, 10.0, 20.0],
        }
    )
    verdicts = pd.DataFrame(
        {
            "run": ["a", "b", "c"],
            "direction": ["read", "read", "write"],
            "steady_iops": [1000.0, None, 30.0],
        }
    )
    reported = with_steady(rows, verdicts)
    assert reported["steady_iops"].tolist()[0] == 1000.0
    assert reported["steady_bw_bytes_per_s"].tolist()[0] == 1000 * 4096.0
    assert reported["steady_iops"].isna().tolist() == [False, True, True, True]
