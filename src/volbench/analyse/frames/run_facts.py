"""The summary with a column for each fact of a run: options, host, volume and steady rates.

The mean of a run with `until: steady` includes its climb and is not a speed of the volume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from volbench.analyse.frames.design import GIVEN, UNKNOWN
from volbench.analyse.frames.run_options import (
    BESIDE,
    TURN,
    WITHIN,
    beside,
    given_order,
    option_names,
    option_values,
    section_of,
    turns_of,
)
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import LABEL_PREFIX, SUMMARY
from volbench.model.frames.metadata import FACTS, NOT_SET, Source, option_value

VOLUME_KEY = "volume_key"  # Column that identifies a volume, over hosts and campaigns
STEP = "step"  # Column that identifies what ran at one time
_OPTIONS_KNOWN, _UNREPORTED = "options_known", "options_unreported"
_ADDED = (STEP, BESIDE, _OPTIONS_KNOWN, _UNREPORTED)  # Columns that `with_options` adds
_SUMMARY = tuple(column.name for column in SUMMARY)
_PLANNED = tuple(fact.name for fact in FACTS.values() if fact.source is Source.PLAN)
_OF_HOST = {fact.name: fact.name for fact in FACTS.values() if fact.source is Source.HOST}
# Fact to the attribute of a volume that it is
OF_VOLUME = {
    "volume_kind": "kind",
    "filesystem": "filesystem",
    "scheduler": "scheduler",
    "write_cache": "write_cache",
    "device_model": "model",
    "mount_options": "mount_options",
}
# Columns that `with_steady` adds to rows of the summary
STEADY = STEADY_IOPS, STEADY_BW = "steady_iops", "steady_bw_bytes_per_s"
_SUMMED = ("clients", "iops", "bw_bytes_per_s")
SUMS = tuple(f"aggregate_{name}" for name in _SUMMED)  # Columns that `with_sums` adds


def with_facts(
    summary: pd.DataFrame, views: Iterable[RunView], *, volbench_version: str
) -> pd.DataFrame:
    """Add the facts of each run.

    Args:
        summary: the rows; the order and the index stay.

    Returns:
        The rows with `VOLUME_KEY` and `STEP`, a column for each fact of the registry and for each
        option of fio that matters (texts and numbers as reported; missing where it is unknown).
    """
    known = list(views)
    options = option_names({id(view.campaign): view.campaign for view in known}.values())
    planned = known[0].campaign.runs if known else ()
    clients = Counter(run.step for run in planned if run.step)
    by_run = {view.run.id: view for view in known}
    rows = [
        _fact_row(by_run.get(str(run)), str(group), options, clients)
        for run, group in zip(summary["run"], summary["group"], strict=True)
    ]
    facts = pd.DataFrame(
        rows, index=summary.index, columns=list(_fact_row(None, "", options, clients))
    )
    facts = facts.astype(object)
    facts["volbench_version"] = volbench_version
    return pd.concat([summary, facts[[name for name in facts if name not in summary]]], axis=1)


def with_options(summary: pd.DataFrame, campaign: Campaign) -> pd.DataFrame:
    """Add the options of each run, as `with_facts` does, from the plan alone."""
    options = option_names([campaign])
    by_run = {run.id: run for run in campaign.runs}
    rows = [
        {**_reported_facts(by_run[run], group), **option_values(by_run[run], group, options)}
        for run, group in zip(summary["run"], summary["group"].astype(str), strict=True)
    ]
    added = pd.DataFrame(rows, index=summary.index, columns=[*_ADDED, *options]).astype(object)
    added[GIVEN] = [given_order(campaign)] * len(added)
    added[TURN] = summary["host"].map(turns_of(campaign))
    if any(run.within for run in campaign.runs):
        added[WITHIN] = [by_run[run].within or "" for run in summary["run"]]
    return pd.concat([summary, added[[name for name in added if name not in summary]]], axis=1)


def stack(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put rows with facts of several campaigns below each other.

    An option that only some of the campaigns set is not unknown in the others: it has its default.
    """
    joined = pd.concat(parts, ignore_index=True)
    are_known = joined[_OPTIONS_KNOWN].eq(other=True)
    unreported = joined[_UNREPORTED] if _UNREPORTED in joined else pd.Series([()] * len(joined))
    for name in option_columns(joined):
        joined[name] = joined[name].astype(object)
        known = are_known & ~pd.Series(
            [name in (names or ()) for names in unreported], index=joined.index
        )
        joined.loc[known & joined[name].isna(), name] = option_value(name, None)
    return joined


def fact_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are facts: those of the registry, and every option of fio."""
    return [name for name in FACTS if name in rows.columns] + option_columns(rows)


def option_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are options of fio; none where the rows have no options."""
    if _OPTIONS_KNOWN not in rows:
        return []
    known = {*_SUMMARY, *FACTS, *STEADY, *SUMS, VOLUME_KEY, *_ADDED, "side", "origin"}
    return [
        name for name in rows.columns if name not in known and not name.startswith(LABEL_PREFIX)
    ]


def _fact_row(
    view: RunView | None, group: str, options: Sequence[str], clients: Counter[int]
) -> dict[str, object]:
    if view is None:
        names = VOLUME_KEY, *_ADDED, *_PLANNED, *_OF_HOST, *OF_VOLUME, *options
        return dict.fromkeys(names)
    run = view.run
    return {
        VOLUME_KEY: _volume_key(view),
        **_reported_facts(run, group),
        "clients": clients.get(run.step, 1),
        "until": str(run.until.window_s) if run.until else NOT_SET,
        **_attributes(view.host, _OF_HOST),
        **_attributes(view.volume, OF_VOLUME),
        **option_values(run, group, options),
    }


def _reported_facts(run: Run, group: str) -> dict[str, object]:
    return {
        STEP: f"{run.step}/{run.repeat}" if run.step else run.id,
        BESIDE: beside(run),
        _OPTIONS_KNOWN: run.reports_options(section_of(run, group)),
        _UNREPORTED: () if run.imported is None else run.imported.unreported_flags,
    }


def _volume_key(view: RunView) -> str:
    """Return the identity of a volume; machines, unknown ones by campaign, may share its name."""
    run, host, volume = view.run, view.host, view.volume
    machine = host.machine if host and host.machine else ""
    if not machine and run.host == UNKNOWN:
        machine = f"{view.campaign.name} {view.campaign.created_utc}"
    volume_id = (volume.serial if volume else "") or (host.persistent_volume if host else "")
    labels = "|".join(run.imported.labels.values()) if run.imported else ""
    return f"{run.host}|{machine}|{run.volume.target}|{volume_id}" + (labels and f"|{labels}")


def _attributes(facts: object | None, names: dict[str, str]) -> dict[str, object]:
    """Return facts of a host or volume, None where the machine does not report them."""
    values = {name: getattr(facts, attribute, None) for name, attribute in names.items()}
    return {name: None if value in (None, "") else value for name, value in values.items()}


def with_steady(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Add the steady rates to rows of the summary.

    Returns:
        The rows with `STEADY_IOPS` and `STEADY_BW` (bytes a second): the median of the steady
        stretch at the end, and that times the mean size of an I/O. NaN where a direction was not
        shown to be steady in the end, or where several fio sections share one verdict.
    """
    keys = ["run", "direction"]
    levels = verdicts.drop_duplicates(keys).set_index(keys)["steady_iops"].astype("float64")
    index = pd.MultiIndex.from_frame(rows[keys])
    alone = ~rows.duplicated(keys, keep=False).to_numpy()
    level = levels.reindex(index).where(alone).to_numpy()
    share = level / rows["iops"].astype("float64").to_numpy()
    bandwidth = share * rows["bw_bytes_per_s"].astype("float64").to_numpy()
    return rows.assign(**{STEADY_IOPS: level, STEADY_BW: bandwidth})


def with_sums(rows: pd.DataFrame, aggregate: pd.DataFrame) -> pd.DataFrame:
    """Add the aggregate over the clients of each step: `SUMS`, missing without several clients.

    Args:
        rows: with `STEP`, as `with_facts` returns them.
        aggregate: the frame; its rates are missing where no time is known in which all ran.
    """
    steps = aggregate["step"].astype(str) + "/" + aggregate["repeat"].astype(str)
    named = aggregate.rename(columns={name: f"aggregate_{name}" for name in _SUMMED})
    keys = ["campaign", STEP, "group", "direction"]
    sums = named.assign(**{STEP: steps})[[*keys, *SUMS]]
    return rows.merge(sums.drop_duplicates(keys), on=keys, how="left").set_axis(rows.index)


def steadiness_remarks(rows: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return remarks on missing steady rates, and on means that include a climb."""
    steady = [name for name in columns if name in STEADY]
    remarks = []
    for side, side_rows in rows.groupby("side", sort=False) if steady else ():
        lost = side_rows[side_rows[steady].isna().any(axis=1)]["run"].nunique()
        if lost:
            runs = side_rows["run"].nunique()
            remarks.append(f"{side}: {lost} of {runs} runs not shown to be steady, left out")
    has_climbs = "until" in rows and bool((rows["until"].fillna(NOT_SET) != NOT_SET).any())
    if len(steady) < len(columns) and has_climbs:
        remarks.append(
            "means and percentiles of runs with until: steady include the climb to it;"
            f" --metric {STEADY_IOPS} leaves it out"
        )
    return remarks
