"""Words on imported campaigns say who measured, and no more than is known."""

from __future__ import annotations

import pandas as pd

from tests.present.report.small_reports import content_of, row_of, run_of
from volbench.model.campaign.planned_run import Imported, Run, SourceFile
from volbench.present.formatting import records
from volbench.present.report.outcomes import job_outcomes, key_numbers
from volbench.present.report.report_text import cautions, what_ran
from volbench.present.terminal.campaign_text import came_from, sources


def imported(number: int, *names: str, read_as: str = "") -> Run:
    """Return a run that was imported from files."""
    files = tuple(SourceFile(name=name, source=f"in/{name}", sha256="0") for name in names)
    return run_of(number, f"job{number}").model_copy(
        update={"imported": Imported(files=files, jobs=(), read_as=read_as)}
    )


def test_results_and_logs_are_counted_once() -> None:
    """One file with several runs is one; logs alone are no results."""
    runs = (
        imported(1, "a.json", "l_bw.1.log"),
        imported(2, "a.json", "l_bw.2.log"),
        imported(3, "m_bw.1.log", read_as="fio-3.33"),
    )
    campaign = content_of(runs, []).campaign
    assert came_from(campaign) == (
        "Imported results: measured outside volbench, imported at 2026-01-02 03:00:00 UTC"
        " from 1 result file and 3 logs."
    )
    assert sources(campaign) == "Files: in/a.json."
    assert came_from(content_of((run_of(1, "own"),), []).campaign) == ""


def test_many_files_are_counted() -> None:
    """The sentence stays one that a person reads."""
    campaign = content_of(tuple(imported(n, f"{n}.json") for n in range(1, 8)), []).campaign
    assert sources(campaign) == "Files: in/1.json, in/2.json, in/3.json, in/4.json and 3 more."


def test_what_files_do_not_tell_is_not_said() -> None:
    """Neither a time nor the page cache is made up."""
    run = imported(1, "a.json")
    rows = records(
        pd.DataFrame([row_of(run, direct=None, started_utc=None, iops=5.0)]).astype(
            {"direct": "boolean"}
        )
    )
    assert what_ran(content_of((run,), []), rows)[-1] == (
        "It was measured on this machine, on data (/data), at a time that the files do not report."
    )
    found = job_outcomes(rows)
    assert not any("page cache" in sentence for sentence in cautions(found))
    assert key_numbers(found)[0].label == "IOPS, page cache use unknown"
