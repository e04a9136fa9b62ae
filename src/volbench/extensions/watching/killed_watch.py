"""What a killed watch leaves: its samples are kept, and its runs end with their last one."""

from __future__ import annotations

import time

from volbench.extensions.watching.watch_loop import Ending, conclude_run
from volbench.ingest.watched_load import read_watched
from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.store.archive import hold_campaign
from volbench.store.journal import Journal, read_history, utc_at, utc_now
from volbench.store.layout import Layout


def conclude_killed(layout: Layout, campaign: Campaign) -> int:
    """Record the end of the runs that a killed watch left open; return how many there were.

    Raises:
        ArchiveError: the watch still runs, or its folder cannot be written.
    """
    with hold_campaign(layout), Journal(layout.journal) as journal:
        states = read_history(layout.journal).states
        left = [run for run in campaign.runs if states.get(run.id) is RunState.RUNNING]
        for run in left:
            conclude_run(journal, layout, run, _ending(layout, run))
    return len(left)


def _ending(layout: Layout, run: Run) -> Ending:
    """Return the end of a run; times are by the clock of its host, which wrote the samples."""
    folder = layout.run(run.id)
    since_s = time.time() - folder.facts.stat().st_mtime
    output = read_watched(run, folder, elapsed_s=since_s).output
    began_s, ended_s = output.jobs[0].start_utc_s, output.ended_utc_s
    if began_s is None or ended_s is None or ended_s <= began_s:
        reason = "it was killed before the second sample"
        return Ending(RunState.FAILED, reason, utc_now(), 0.0, 0.0)
    return Ending(RunState.FINISHED, "", utc_at(began_s), ended_s - began_s, 0.0)
