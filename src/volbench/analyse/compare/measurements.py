"""Results that expectations are about: rows of frames by job, campaign and profile."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.job_frames import labels, measured, of_measured, plain_rows
from volbench.analyse.frames.run_options import BESIDE, with_sums
from volbench.analyse.frames.workload_words import cell_text
from volbench.model.frames.expectation import SYNC, Expectation
from volbench.model.profile.profile_settings import MIN_ROUNDS
from volbench.model.results.finding import Severity
from volbench.model.results.steadiness import State

_RESULT = ["run", "group", "direction"]  # Columns that identify a result
_OF_RUN = ["campaign", "profile", "job", "run"]
# Findings of a host or a neighbour that slowed a run
_SLOWER = ("cpu-bound", "cpu-throttled", "host-noise", "neighbour", "other-load")
STEP = ["campaign", "profile", "job", "repeat"]  # Columns that the clients of a repeat share


class Measurements:
    """Finished measured results, with the runs that decide nothing marked.

    Args:
        frames: ``summary`` with the options of fio, ``verdicts``, ``aggregate`` and ``findings`` of
            the same runs.
        in_rounds: profiles that repeat until steady; their last rounds are the measurement.
        absent: campaign to the hosts that it went on without.
        unstarted: campaign, profile, job and ID of measured runs that never started.
    """

    def __init__(
        self,
        frames: Mapping[str, pd.DataFrame],
        *,
        in_rounds: Collection[str] = (),
        absent: Mapping[str, Sequence[str]] = MappingProxyType({}),
        unstarted: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self._absent = absent
        summary, findings = _last_rounds(frames["summary"], in_rounds), frames["findings"]
        invalid = findings.loc[findings["severity"] == Severity.INVALID, ["run", "direction"]]
        self._invalid = {(str(run), direction) for run, direction in invalid.to_numpy(object)}
        rows = summary[summary["phase"] == "measured"]
        rows = rows[rows["status"].isin(["failed", "interrupted", "damaged"])]
        self.unfinished = [*plain_rows(rows[_OF_RUN]), *unstarted]
        finished = measured(summary)
        severe = findings[findings["severity"] != Severity.NOTE]
        slow = severe[severe["rule"].isin(_SLOWER)].groupby("run")["rule"].agg(joined)
        slowed = finished["run"].map(slow)
        runs = _summed(finished.assign(_invalid=self._is_invalid(finished), _slowed=slowed))
        verdicts = of_measured(frames["verdicts"], summary)
        clients = finished.drop_duplicates("run").set_index("run")["client"]
        verdicts = verdicts.assign(
            client=verdicts["run"].map(clients),
            _invalid=self._is_invalid(verdicts),
            steady=verdicts["verdict"].map(
                lambda state: math.nan if state == State.TOO_SHORT else float(state == State.STEADY)
            ),
        )
        steps = runs.groupby(STEP, dropna=False).agg(
            {"_invalid": "any", "runtime_s": "max", "sync_calls": joined}
        )
        verdicts["runtime_s"] = verdicts["run"].map(finished.groupby("run")["runtime_s"].max())
        sums = frames["aggregate"].assign(host="", volume="", client=math.nan)
        # pandas cannot join empty frames of Arrow texts.
        if sums.empty or steps.empty:
            sums = sums.assign(_invalid=False, runtime_s=math.nan, sync_calls="")
        else:
            sums = sums.join(steps, on=STEP)
        named = runs.assign(_label=_names_of_results(runs))
        of_cell = named.drop_duplicates(_RESULT).set_index(_RESULT)["_label"]
        leaders = verdicts.assign(run=verdicts["run"].replace(_leaders(finished)))
        judged = of_cell.reindex(pd.MultiIndex.from_frame(leaders[_RESULT])).to_numpy()
        self.frames = {
            "summary": named,
            "verdicts": verdicts.assign(_label=judged),
            "aggregate": sums.assign(_label=labels(sums)),
        }

    def _is_invalid(self, rows: pd.DataFrame) -> list[bool]:
        whole = {run for run, direction in self._invalid if pd.isna(direction)}
        return [
            run in whole or (run, direction) in self._invalid
            for run, direction in zip(rows["run"], rows["direction"], strict=True)
        ]

    def rows(self, expectation: Expectation, campaign: str, profile: str) -> pd.DataFrame:
        """Return the rows that an expectation is about; of one client its own for the sum."""
        of_jobs = self._rows_of_jobs(self.frames[expectation.frame], expectation, campaign, profile)
        if expectation.frame == "aggregate" and of_jobs.empty:
            of_jobs = self._rows_of_jobs(self.frames["summary"], expectation, campaign, profile)
        wanted = expectation.direction
        is_sync = (of_jobs["direction"] == SYNC).fillna(value=False).astype(bool)
        if wanted == SYNC:
            return of_jobs[is_sync]
        moving = of_jobs[~is_sync]
        return moving[moving["direction"] == wanted] if wanted else moving

    def left_out(self, rows: pd.DataFrame) -> list[str]:
        """Return the hosts that the campaigns of some rows went on without."""
        return [host for name in rows["campaign"].unique() for host in self._absent.get(name, ())]

    def lost(self, expectation: Expectation, campaign: str, profile: str) -> dict[str, int]:
        """Return the number of measured runs that did not finish, or not start, by job."""
        rows = pd.DataFrame(self.unfinished, columns=_OF_RUN)
        rows = self._rows_of_jobs(rows, expectation, campaign, profile)
        return {str(job): int(n) for job, n in rows.groupby("job")["run"].nunique().items()}

    @staticmethod
    def _rows_of_jobs(
        rows: pd.DataFrame, expectation: Expectation, campaign: str, profile: str
    ) -> pd.DataFrame:
        wanted = rows["job"].map(lambda job: expectation.matches(str(job))).astype(bool)
        for column, name in (("campaign", campaign), ("profile", profile)):
            if name:
                wanted &= (rows[column] == name).fillna(value=False)
        return rows[wanted]


def _summed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows; those of imported processes at the same time on one volume as their sum."""
    if not (leaders := _leaders(rows)):
        return rows
    of_step = rows.groupby(rows["run"].replace(leaders))["_invalid"].transform("any")
    sums = with_sums(plain_rows(rows.assign(_invalid=of_step)), lambda row: row[BESIDE])
    return pd.DataFrame([*sums], columns=[*rows])


def _leaders(rows: pd.DataFrame) -> dict[str, str]:
    """Return imported runs at the same time on one volume to the first of them."""
    if BESIDE not in rows:
        return {}
    members = rows[rows[BESIDE].notna()]
    first = members.groupby(["campaign", BESIDE, "group"])["run"].transform("first")
    return dict(zip(members["run"], first, strict=True))


def _names_of_results(runs: pd.DataFrame) -> list[str]:
    """Return the name of each row: its job, or in words what an imported result did.

    Rows of one name are repeats of each other.
    """
    names, rows = labels(runs).tolist(), plain_rows(runs)
    design = design_of(rows)
    for cell in design.cells:
        if all(rows[place].get("import_folder") is not None for place in cell.places):
            for place in cell.places:
                names[place] = cell_text(design, cell)
    return names


def joined(names: pd.Series) -> str:
    """Return the different names, in order."""
    return ", ".join(sorted(set(names.dropna().astype(str))))


def _last_rounds(summary: pd.DataFrame, in_rounds: Collection[str]) -> pd.DataFrame:
    """Return a summary without the rounds before the window of the steady-state criterion."""
    if not in_rounds or measured(summary).empty:
        return summary
    last = measured(summary).groupby(["campaign", "profile"])["repeat"].max().rename("_last")
    first = summary.join(last, on=["campaign", "profile"])["_last"] - MIN_ROUNDS
    is_early = summary["profile"].isin(list(in_rounds)) & (summary["repeat"] <= first)
    return summary[~is_early.fillna(value=False).astype(bool)]
