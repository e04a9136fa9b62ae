"""Trials of jobs with ``within``: which rate each asks for, and when the search is over.

Like that of rounds, the decision depends on the files and the journal alone, so that a resume
repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock

from volbench.analyse.bottleneck.volume_context import MIN_INVALID_EMPTY
from volbench.analyse.compare.rate_search import RateSearch, Trial, asked_iops, trial_of
from volbench.analyse.frames.run_options import turns_of
from volbench.engine.campaign.round_stopping import Decision, ResultsJudge
from volbench.ingest.campaign_tables import read_run
from volbench.ingest.run_files import read_facts
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.frames.columns import Row
from volbench.model.frames.expectation import SYNC
from volbench.store.layout import Layout


class RateJudge(ResultsJudge):
    """Judges the trials of the jobs in a campaign that have ``within``."""

    def __init__(
        self,
        layout: Layout,
        campaign: Campaign,
        *,
        is_finished: Callable[[Run], bool],
        chosen: Mapping[str, Mapping[str, str]],
        choose: Callable[[Run, dict[str, str]], None],
    ) -> None:
        super().__init__(layout, campaign, is_finished=is_finished)
        self._chosen, self._choose = chosen, choose
        self._lock = RLock()
        self._rows: dict[str, Sequence[Row]] = {}
        self._turns = turns_of(campaign)

    def before(self, run: Run) -> Decision | None:
        """Return the decision before a trial that is not needed; None for all others."""
        if not run.within or run.id in self._chosen:
            return None
        last = (self._clients(run, run.repeat - back) for back in (1, 2))
        missing = [{each.host for each in runs if not self._is_finished(each)} for runs in last]
        if lost := set.intersection(*missing):
            reason = f"{', '.join(sorted(lost))} finished none of two trials of {run.job}"
        elif any(map(self._read_nothing, self._clients(run, run.repeat - 1))):
            reason = (
                f"most blocks that {run.job} read hold no data, or only zeros, so its latencies"
                " may not be those of the volume; write to it first: volbench warmup"
            )
        elif self._search(run).next_rate() is None:
            reason = f"the search for the rate of {run.job} has ended"
        else:
            return None
        return Decision(True, reason, frozenset({run.job}))

    def chosen(self, run: Run) -> Run:
        """Return a run with the rate that it asks for, which is recorded first."""
        if not run.within:
            return run
        with self._lock:
            if run.id not in self._chosen:
                rate = self._search(run).next_rate() or 0.0
                self._choose(run, self._options(run, rate))
        return run.with_options(self._chosen[run.id])

    def _search(self, run: Run) -> RateSearch:
        """Return the search that a run is a trial of, with the trials that all clients finished."""
        found = (self._trial(self._clients(run, repeat)) for repeat in range(1, run.repeat))
        return RateSearch([trial for trial in found if trial is not None])

    def _clients(self, run: Run, repeat: int) -> Sequence[Run]:
        """Return the runs of one trial: of hosts in turn, each of which searches, only of one."""
        wanted = run.profile, run.job, repeat, self._turns.get(run.host)
        return [
            other
            for other in self._campaign.runs
            if (other.profile, other.job, other.repeat, self._turns.get(other.host)) == wanted
        ]

    def _read_nothing(self, run: Run) -> bool:
        """Return whether most blocks that a finished trial was to read held no data."""
        facts = read_facts(self._layout.run(run.id)) if self._is_finished(run) else None
        return bool(facts and facts.blocks and facts.blocks.empty_share >= MIN_INVALID_EMPTY)

    def _trial(self, clients: Sequence[Run]) -> Trial | None:
        chosen = self._chosen
        if not all(self._is_finished(run) and run.id in chosen for run in clients):
            return None
        rows = [
            {**row, "rate_iops": chosen[run.id].get("rate_iops")}
            for run in clients
            for row in self._summary_of(run)
            if row.get("direction") != SYNC
        ]
        return trial_of(rows, clients[0].within)

    def _summary_of(self, run: Run) -> Sequence[Row]:
        with self._lock:
            if run.id not in self._rows:
                folder = self._layout.run(run.id)
                rows = read_run(self._campaign, run, RunState.FINISHED, folder)
                self._rows[run.id] = rows.summary
        return self._rows[run.id]

    def _options(self, run: Run, rate: float) -> dict[str, str]:
        """Return the options of a client that is asked for its share of a rate; none for 0."""
        if not rate:
            return {}
        return {"rate_iops": asked_iops(run, rate / len(self._clients(run, run.repeat)))}
