"""The same results under two namings of files give the same trend and expectations."""

import hashlib

import pandas as pd

from tests.analyse.compared_rows import no_findings, rows_of
from tests.analyse.named_results import rows_named
from volbench.analyse.compare.measurements import Measurements
from volbench.analyse.compare.workload_trends import TrendQuestion, find_trends, record_of

NAMINGS = ("counted", "folders")
_NAMES = ("job", "base_volumes", "candidate_volumes")


def results(naming: str, *, campaign: str = "c") -> pd.DataFrame:
    """Return 216 results of three volumes as the importer reads them, each with a rate of its own.

    Rates follow from what was measured, and not from the place of a result.
    """
    rows = pd.DataFrame(rows_named(naming)).assign(campaign=campaign)
    values = ["volume", "rw", "block_bytes", "iodepth"]
    rows["repeat"] = rows.groupby(values).cumcount() + 1
    keys = rows[[*values, "repeat", "campaign"]].astype(str).agg("/".join, axis="columns")
    digits = [int(hashlib.sha256(key.encode()).hexdigest()[:4], 16) for key in keys]
    speed = rows["volume"].map({"/dev/local": 9.0, "/dev/premium": 3.0, "/dev/standard": 1.0})
    rows["iops"] = 1000.0 * speed * [1 + digit / 1e6 for digit in digits]
    frame = pd.concat([rows_of(1000.0, repeats=1)] * len(rows), ignore_index=True)
    named = rows.assign(run=rows["campaign"] + "/" + rows["run"])
    named = pd.concat([named, frame[[name for name in frame if name not in rows]]], axis=1)
    return named.assign(volume_key=named["volume"], step=named["run"])


def plain(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return rows without the names of jobs."""
    return [{name: row[name] for name in row if name not in _NAMES} for row in rows]


def test_a_trend_does_not_depend_on_names() -> None:
    """Six campaigns of 18 workloads are 18 trends, even if a campaign names its files otherwise."""

    def trends(*namings: str) -> list[dict[str, object]]:
        parts = [
            results(name, campaign=f"2026-01-0{day}")
            .query("iodepth == 4")
            .assign(started_utc=f"2026-01-0{day}T02:00:00Z")
            for day, name in enumerate(namings, start=1)
        ]
        question = TrendQuestion(("iops",), by=("volume",))
        found = find_trends(pd.concat(parts, ignore_index=True), no_findings(), question)
        return plain([*map(record_of, found.rows)])

    counted = trends(*NAMINGS[:1] * 6)
    assert len(counted) == 18
    assert counted == trends(*NAMINGS * 3)


def test_expectations_do_not_depend_on_names() -> None:
    """Results that are equal in all factors are repeats, under one name in words."""
    names = []
    for naming in NAMINGS:
        summary = results(naming)
        verdicts = summary[["campaign", "profile", "run", "job", "group", "repeat", "direction"]]
        empty = summary.iloc[:0].assign(clients=0, clients_planned=0)
        frames = {
            "summary": summary.assign(client=None, runtime_s=60.0, sync_calls=None),
            "verdicts": verdicts.assign(host="", volume="", verdict="steady"),
            "aggregate": empty,
            "findings": no_findings(),
        }
        labels = Measurements(frames).frames["summary"]["_label"]
        names.append(sorted(labels.value_counts().items()))
    assert names[0] == names[1]
    assert len(names[0]) == 72
    assert {count for _, count in names[0]} == {3}
    assert names[0][0][0] == "randread 16k, /dev/local, queue depth 1"
