"""Python interface to one campaign folder: its frames, charts, findings and provenance.

campaign = volbench.open_campaign("results/quick")
campaign.summary()[["job", "iops", "lat_p99_s"]]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from volbench.errors import ArchiveError, InputError
from volbench.model.campaign.planned_run import Campaign, RunNote, RunState
from volbench.model.frames.columns import DERIVED, FRAMES, IDENTITY, ON_DEMAND
from volbench.present.formatting import printable
from volbench.store.archive import Archive, Provenance, is_held, read_campaign
from volbench.store.atomic_files import read_text
from volbench.store.journal import read_history
from volbench.store.layout import Layout, results_cache
from volbench.store.parquet_tables import (
    StoredTables,
    columns_of,
    fingerprint_of,
    frame_of,
    joined_tables,
    read_table,
    rows_of,
)
from volbench.store.worker_processes import NOBODY, Tell
from volbench.units import counted_noun

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from volbench.analyse.bottleneck.campaign_context import Context


_READ = tuple(name for name in FRAMES if name not in DERIVED)
# Columns of the series that no rule reads
_UNJUDGED = frozenset(
    {"lat_p50_s", "lat_p99_s", "lat_p999_s", "lat_max_s", "clat_mean_s", "slat_mean_s"}
)


class CampaignData:
    """A campaign folder opened for reading.

    Every frame has the columns of `volbench help frames`, a row for each run that has
    ended, in the order of the plan, and a plain integer index. Unknown values are NaN or missing.

    Frames are made once and kept as Parquet. They are recomputed when the raw files, or the rules
    that judge them, have changed. A notebook shows a campaign with its answer, charts and results.
    """

    def __init__(self, layout: Layout, archive: Archive) -> None:
        self._layout = layout
        self._planned = archive
        self._journal_bytes = -1
        self._processes, self._tell = 1, NOBODY
        self._forget()

    def _forget(self) -> None:
        """Start from the journal as it is now: frames are all of one moment."""
        self._journal_bytes = self._layout.journal_bytes
        self._history = read_history(self._layout.journal)
        campaign = self._planned.campaign.with_chosen(self._history.chosen)
        self._archive = self._planned.model_copy(update={"campaign": campaign})
        self._stored: StoredTables | None = None
        self._tables: dict[str, pa.Table] = {}
        self._rows: dict[str, tuple[pa.Table, list[dict[str, object]]]] = {}
        self._frames: dict[str, pd.DataFrame] = {}
        self._context: Context | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        return self._layout.root

    @property
    def report_folder(self) -> Path:
        """Where charts and the report go unless another place is named; may not exist yet."""
        return self._layout.report

    @property
    def is_cached(self) -> bool:
        """Whether these are results of fio in a cache, which is removed some day."""
        return results_cache() in self.path.absolute().parents

    @property
    def is_running(self) -> bool:
        """Whether a controller on this machine is running the campaign."""
        return is_held(self._layout)

    @property
    def campaign(self) -> Campaign:
        """The plan."""
        return self._archive.campaign

    @property
    def provenance(self) -> Provenance:
        """Hosts, volumes and software that the numbers were measured with."""
        return self._archive.provenance

    @property
    def runs(self) -> Mapping[str, RunNote]:
        """Every run of the plan, in order, with its state; without a controller none is running."""
        states, reasons = self._history.states, self._history.reasons
        if RunState.RUNNING in states.values() and not self.is_running:
            running = (run_id for run_id, state in states.items() if state is RunState.RUNNING)
            states = states | dict.fromkeys(running, RunState.INTERRUPTED)
        return {
            run.id: RunNote(states.get(run.id, RunState.PLANNED), reasons.get(run.id, ""), run)
            for run in self.campaign.runs
        }

    @property
    def imprecise(self) -> Sequence[str]:
        """A sentence for each workload whose repeats did not become precise (`repeat.until`)."""
        return self._history.imprecise

    def job_text(self, run_id: str) -> str:
        """Return the job file exactly as it was used; "" before it started."""
        path = self._layout.run(run_id).job_file
        return read_text(path) if path.exists() else ""

    def summary(self) -> pd.DataFrame:
        """Return one row for each run, fio job section and direction."""
        return self.frame("summary")

    def series(self) -> pd.DataFrame:
        """Return one row for each run, section, direction and interval; finished runs only."""
        return self.frame("series")

    def facts(self) -> pd.DataFrame:
        """Return the summary with options, host, volume and steady rates of each run.

        Columns beyond the summary's are those of `volbench.model.frames.metadata`, and every option
        of fio that changes the I/O.
        """
        from volbench.analyse.frames.run_facts import with_facts, with_steady, with_sums  # noqa: PLC0415 - brings pandas

        summary = with_steady(self.frame("summary"), self.frame("verdicts"))
        version = self.provenance.volbench_version
        rows = with_facts(summary, self.context().views, volbench_version=version)
        return with_sums(rows, self.frame("aggregate"))

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name; a copy, so that callers may change it.

        Raises:
            InputError: no frame has that name.
        """
        return self._shared_frame(name).copy()

    def frame_once(self, name: str) -> pd.DataFrame:
        """Return a frame that the campaign does not keep, as charts read it.

        Latency bins, most rows of a campaign, have texts as categories, and no more than `BINS`.
        """
        from volbench.analyse.frames.aggregate import BINS  # noqa: PLC0415 - brings pandas

        columns = BINS if name == "histogram" else None
        file = self.table_file(name)
        if file is None:
            return frame_of(columns_of(self.table(name), columns))
        return frame_of(read_table(file, columns), is_done=True)

    def _shared_frame(self, name: str) -> pd.DataFrame:
        table = self.table(name)
        if name not in self._frames:
            self._frames[name] = frame_of(table)
        return self._frames[name]

    def _judged_frame(self, name: str) -> pd.DataFrame:
        """Return a frame as judgements need it: of its identity only run and section.

        Latencies over time are not judged: with them a large campaign takes a tenth more memory.
        """
        stored = self._storage()
        is_kept = name not in self._tables and stored.is_current(name) and stored.is_intact(name)
        if name == "summary" or not is_kept:
            return self._shared_frame(name)  # which rebuilds it
        unread = {column.name for column in IDENTITY} - {"run", "group"} | _UNJUDGED
        if not any(run.step for run in self.campaign.runs):
            unread.add("utc" if name == "series" else "")  # only clients of a step share a clock
        columns = [column.name for column in FRAMES[name] if column.name not in unread]
        return frame_of(read_table(stored.path(name), columns), is_done=True)

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a frame by name as plain rows, None for what is unknown, without pandas.

        Raises:
            InputError: no frame has that name.
        """
        table = self.table(name)
        if name not in self._rows or self._rows[name][0] is not table:
            self._rows[name] = table, rows_of(table)
        return self._rows[name][1]

    def table(self, name: str) -> pa.Table:
        """Return a frame by name as an Arrow table, with units and meanings as metadata.

        Raises:
            InputError: no frame has that name.
        """
        if name not in FRAMES and name not in ON_DEMAND:
            raise InputError(
                f"there is no frame {name!r}", hint=f"choose one of {', '.join(FRAMES)}"
            )
        if name not in self._tables:
            self._load(name)
        return self._tables[name]

    def table_file(self, name: str) -> Path | None:
        """Return the Parquet file of a frame, up to date; None where none can be kept."""
        self.store_tables()
        stored = self._storage()
        if stored.is_current(name) and not stored.is_intact(name):
            stored.keep([self._judged_tables()] if name in DERIVED else self._read_tables())
        return stored.path(name) if stored.is_current(name) else None

    def store_tables(self, *, processes: int = 1, tell: Tell = NOBODY) -> None:
        """Make every frame that is not up to date, and keep it beside the raw files.

        Args:
            processes: to read and judge runs in; more than one only where no other thread runs.
            tell: is called with the progress.
        """
        self._processes, self._tell = processes, tell
        stored = self._storage()
        for name in (_READ[0], DERIVED[0]):
            if not stored.is_current(name):
                self.table(name)

    def changed_tables(self) -> list[str]:
        """Return the stored frames that differ from what the raw files give again.

        Frames that are not stored, or not up to date, are left out: they are rebuilt when read.
        """
        stored = self._storage()
        current = [name for name in FRAMES if stored.is_current(name)]
        kept: dict[str, pa.Table | None] = {}
        for name in current:
            kept[name] = None
            with suppress(ArchiveError):  # a damaged file is a changed one
                kept[name] = stored.read(name)
        self._forget()
        self._tables |= joined_tables(self._read_tables()) if current else {}
        self._tables |= self._judged_tables() if {*current} & {*DERIVED} else {}
        return [name for name, table in kept.items() if not same_rows(table, self._tables[name])]

    def context(self) -> Context:
        """Return the runs side by side, with judgements that verdicts and findings share."""
        if self._context is None:
            from volbench.analyse.bottleneck.campaign_context import Context  # noqa: PLC0415 - slow
            from volbench.api.opened_runs import opened_runs  # noqa: PLC0415 - the same

            views = opened_runs(self._layout, self._archive, self._judged_frame)
            self._context = Context(tuple(views))
        return self._context

    def __repr__(self) -> str:
        """Return name, folder and number of finished runs."""
        finished = sum(note.state is RunState.FINISHED for note in self.runs.values())
        count = f"{finished} of {counted_noun(len(self.runs), 'run')} finished"
        return printable(f"<CampaignData {self.campaign.name}: {count}, in {self.path}>")

    def _storage(self) -> StoredTables:
        if self._layout.journal_bytes != self._journal_bytes:
            self._forget()
        if self._stored is None:
            mark = fingerprint_of(self._layout, self.campaign, self._history)
            self._stored = StoredTables(self._layout, mark, self.campaign)
        return self._stored

    def _load(self, name: str) -> None:
        """Read a frame from its file where that is up to date, else make all of its kind."""
        stored = self._storage()
        if name in ON_DEMAND:
            from volbench.ingest.campaign_tables import read_latency_maps  # noqa: PLC0415 - slow

            self._tables[name] = read_latency_maps(self._layout, self.campaign, self._history)
        else:
            if stored.is_current(name):
                with suppress(ArchiveError):  # a damaged table is rebuilt
                    self._tables[name] = stored.read(name)
                    return
            if name in DERIVED:
                made = self._judged_tables()
                stored.keep([made])
            elif stored.keep(self._read_tables()) and stored.is_intact(name):
                # The others stay on disk until they are asked for.
                made = {name: stored.read(name)}
            else:
                made = joined_tables(self._read_tables())
            self._tables |= made

    def _read_tables(self) -> Iterator[dict[str, pa.Table]]:
        from volbench.ingest.campaign_tables import read_tables  # noqa: PLC0415 - slow

        plan, history, tell = self.campaign, self._history, self._tell
        return read_tables(self._layout, plan, history, processes=self._processes, tell=tell)

    def _judged_tables(self) -> dict[str, pa.Table]:
        from volbench.api.opened_runs import judged_tables  # noqa: PLC0415 - slow to import

        return judged_tables(
            self.campaign,
            self.context(),
            self._shared_frame,
            processes=self._processes,
            tell=self._tell,
        )


def campaign_data(path: str | os.PathLike[str]) -> CampaignData:
    """Open a campaign folder.

    Args:
        path: the folder that ``volbench run`` wrote.

    Raises:
        ArchiveError: no campaign there, damaged, or written by a newer volbench.
    """
    layout, archive = read_campaign(Path(path))
    return CampaignData(layout, archive)


def same_rows(table: pa.Table | None, other: pa.Table) -> bool:
    """Return whether two tables have the same columns and values; NaN equals NaN."""
    has_columns = table is not None and table.schema == other.schema
    return has_columns and frame_of(table).equals(frame_of(other))
