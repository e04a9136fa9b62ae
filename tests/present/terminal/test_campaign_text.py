"""Sentences on plans and on imported campaigns, as a user reads them."""

from tests.present.report.small_reports import content_of, run_of
from volbench.model.campaign.planned_run import Imported, Run, SourceFile
from volbench.present.terminal.campaign_text import came_from, sources


def imported(number: int, *names: str) -> Run:
    """Return a run that was imported from files."""
    files = tuple(SourceFile(name=name, source=f"in/{name}", sha256="0") for name in names)
    return run_of(number, f"job{number}").model_copy(
        update={"imported": Imported(files=files, jobs=())}
    )


def test_results_and_logs_are_counted_once() -> None:
    """One file with several runs is one."""
    runs = (imported(1, "a.json", "l_bw.1.log"), imported(2, "a.json", "l_bw.2.log"))
    campaign = content_of(runs, []).parts[0].campaign
    assert came_from(campaign) == (
        "Imported results: measured outside volbench, imported at 2026-01-02 03:00:00 UTC"
        " from 1 result file and 2 logs."
    )
    assert sources(campaign) == "Files: in/a.json."
    many = content_of(tuple(imported(n, f"{n}.json") for n in range(1, 8)), []).parts[0].campaign
    assert sources(many) == "Files: in/1.json, in/2.json, in/3.json, in/4.json and 3 more."
    assert came_from(content_of((run_of(1, "own"),), []).parts[0].campaign) == ""
