"""Table of known campaigns: date, profiles, targets and the first result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from volbench.errors import VolbenchError
from volbench.units import counted_noun, format_count, format_rate

if TYPE_CHECKING:
    from volbench.api.one_campaign import CampaignData
    from volbench.model.campaign.planned_run import Campaign
    from volbench.present.tables.table import Table


def known_campaigns(top: Path) -> Table[Mapping[str, object]]:
    """Return a row for each campaign at or below a folder, the latest first.

    Columns: date (UTC), profiles, targets, the median of the first workload without its invalid
    runs (the range, if its repeats differ twofold), and the number of runs with warnings.
    """
    from volbench.api.many_campaigns import campaign_folders
    from volbench.present.tables.table import text_table
    from volbench.store.archive import read_campaign

    plans: list[tuple[str, Path, Campaign | VolbenchError]] = []
    for path in campaign_folders(top, with_results=False):
        try:
            plan = read_campaign(path)[1].campaign
        except VolbenchError as error:
            plans.append(("", path, error))
        else:
            plans.append((plan.created_utc, path, plan))
    plans.sort(key=lambda entry: entry[0], reverse=True)
    rows = [_campaign_row(path, plan) for _, path, plan in plans]
    return text_table(
        "campaigns",
        rows,
        identity="campaign",
        priorities={"profile": 4, "target": 3, "date": 2},
        folded=["answer", "target"],
    )


def _campaign_row(path: Path, plan: Campaign | VolbenchError) -> dict[str, str]:
    """Return a campaign with its answer, or why it cannot be read."""
    from volbench.api.one_campaign import campaign_data

    if isinstance(plan, VolbenchError):
        return {"campaign": str(path), "answer": f"cannot be read: {plan.message}"}
    row = {
        "campaign": str(path),
        "date": plan.created_utc[:16].replace("T", " "),
        "profile": ", ".join(dict.fromkeys(run.profile for run in plan.runs)),
        "target": ", ".join(dict.fromkeys(run.volume.target for run in plan.runs)),
    }
    try:
        return row | _result(campaign_data(path))
    except VolbenchError as error:
        return row | {"answer": f"cannot be read: {error.message}"}


def _result(data: CampaignData) -> dict[str, str]:
    """Return the answer of a campaign and its number of runs with warnings."""
    from volbench.model.campaign.planned_run import RunState
    from volbench.model.profile.profile_model import Phase
    from volbench.model.results.finding import Severity

    findings = data.rows("findings")
    invalid = {row["run"] for row in findings if row["severity"] == Severity.INVALID.value}
    warned = {row["run"] for row in findings if row["severity"] != Severity.NOTE.value}
    rows = [row for row in data.rows("summary") if row["phase"] == Phase.MEASURED.value]
    finished = [row for row in rows if row["status"] == RunState.FINISHED.value]
    rates = [*_median_rates(row for row in finished if row["run"] not in invalid)]
    failed = {row["run"] for row in rows if row["status"] == RunState.FAILED.value}
    if data.is_running:
        answer = "running"
    elif rates:
        answer = rates[0] + (f", and {len(rates) - 1} more" if len(rates) > 1 else "")
    else:
        answer = "no valid result" if invalid and finished else "no result"
    if failed and not data.is_running:
        answer += f"; {counted_noun(len(failed), 'run')} failed"
    return {"answer": answer, "warnings": str(len(warned))}


def _median_rates(rows: Iterator[Mapping[str, object]]) -> Iterator[str]:
    """Yield the median rate of each workload, direction and volume; of unlike repeats, the ends."""
    from volbench.analyse.frames.design import MIN_REPEAT_RATIO

    workloads: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("volume", "job", "group", "direction"))
        workloads.setdefault(key, []).append(row)
    for (_, job, _, direction), repeats in workloads.items():
        for column, show in (("iops", _iops), ("bw_bytes_per_s", format_rate)):
            values = [value for row in repeats if isinstance(value := row[column], float)]
            if values:
                low, high = min(values), max(values)
                is_unlike = high >= MIN_REPEAT_RATIO * low
                rate = f"{show(low)} to {show(high)}" if is_unlike else show(median(values))
                yield f"{job} {direction}: {rate}"
                break


def _iops(rate: float) -> str:
    return f"{format_count(rate)} IOPS"
