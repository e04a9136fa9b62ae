"""The Python interface: a campaign folder in, pandas frames out.

campaign = volbench.open_campaign("results/quick")
campaign.summary()[["job", "iops", "lat_p99_s"]]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from volbench.analyse.frames.run_view import RunView, run_views
from volbench.analyse.time.cold_volume import ColdProbe
from volbench.engine.conditioning.cold_probe import read_probe
from volbench.errors import ArchiveError, InputError, OutputError
from volbench.ingest.campaign_frames import Rows, ingest
from volbench.ingest.latency_map_rows import latency_map_rows
from volbench.ingest.run_files import read_facts
from volbench.model.campaign.host import label_names
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.model.frames.columns import DERIVED, FRAMES, ON_DEMAND
from volbench.model.results.provenance import VolumeFacts
from volbench.store.archive import Archive, Provenance, read_campaign, write_atomic
from volbench.store.journal import History, read_history
from volbench.store.layout import Layout
from volbench.store.parquet_tables import frame_of, read_table, table_of, write_table

if TYPE_CHECKING:
    from volbench.analyse.frames.campaign_context import Context

TABLES_VERSION = "8"
"""Raised whenever rows are made differently, so that older tables are rebuilt."""

_READ = tuple(name for name in FRAMES if name not in DERIVED)


@dataclass(frozen=True)
class RunNote:
    """Where a Run stands and why.

    Attributes:
        state: planned, running, finished, failed, interrupted or not needed.
        reason: empty when finished.
    """

    state: RunState
    reason: str = ""


class CampaignData:
    """A campaign folder opened for reading.

    Every frame has the columns documented in docs/reference/frames.md, a row for each Run that has
    ended, in the order of the plan, and a plain integer index. Unknown values are NaN or missing.
    """

    def __init__(self, layout: Layout, archive: Archive) -> None:
        self._layout = layout
        self._archive = archive
        self._history = read_history(layout.journal)
        self._frames: dict[str, pd.DataFrame] = {}
        self._stamp = ""
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
    def campaign(self) -> Campaign:
        """The plan."""
        return self._archive.campaign

    @property
    def provenance(self) -> Provenance:
        """What the numbers were measured with."""
        return self._archive.provenance

    @property
    def runs(self) -> Mapping[str, RunNote]:
        """Every Run of the plan, in order, with its state."""
        states, reasons = self._history.states, self._history.reasons
        return {
            run.id: RunNote(states.get(run.id, RunState.PLANNED), reasons.get(run.id, ""))
            for run in self.campaign.runs
        }

    def job_text(self, run_id: str) -> str:
        """Return the job file, or the dd command, exactly as it was used; "" before it started."""
        folder = self._layout.run(run_id)
        for path in (folder.job_file, folder.dd_command):
            if path.exists():
                return path.read_text(encoding="utf-8")
        return ""

    def summary(self) -> pd.DataFrame:
        """Return one row for each Run, fio job section and direction."""
        return self.frame("summary")

    def series(self) -> pd.DataFrame:
        """Return one row for each Run, section, direction and interval; finished Runs only."""
        return self.frame("series")

    def device(self) -> pd.DataFrame:
        """Return one row for each Run, block device and sample of the host's counters."""
        return self.frame("device")

    def verdicts(self) -> pd.DataFrame:
        """Return one row for each Run and direction: whether it is steady, and what binds it."""
        return self.frame("verdicts")

    def findings(self) -> pd.DataFrame:
        """Return one row for each doubt about a Run, with its evidence."""
        return self.frame("findings")

    def aggregate(self) -> pd.DataFrame:
        """Return one row for each step of several clients, section and direction: their sums."""
        return self.frame("aggregate")

    def percentiles(self) -> pd.DataFrame:
        """Return one row for each latency percentile that fio reported."""
        return self.frame("percentiles")

    def latency_map(self) -> pd.DataFrame:
        """Return latencies over time, from logs of single I/Os or histograms; empty without."""
        rows = latency_map_rows(self._layout, self.campaign, self._history)
        return frame_of(table_of("latency_map", rows))

    def histogram(self) -> pd.DataFrame:
        """Return one row for each latency bin that is not empty."""
        return self.frame("histogram")

    def views(self) -> Iterator[RunView]:
        """Yield all that is known of each Run that has ended, in the order of the plan."""
        facts = {run.id: self._facts(run.id) for run in self.campaign.runs}
        return run_views(
            self.campaign,
            {name: self.frame(name) for name in _READ},
            volumes={run: told for run, told in facts.items() if told is not None},
            hosts={host.host: host for host in self.provenance.hosts},
            colds=self._colds(),
        )

    def _facts(self, run_id: str) -> VolumeFacts | None:
        # Where they are damaged, the summary says so.
        with suppress(OutputError):
            return read_facts(self._layout.run(run_id))
        return None

    def context(self) -> Context:
        """Return the Runs side by side, so that what is judged of them is judged once."""
        if self._context is None:
            from volbench.analyse.frames.campaign_context import Context  # noqa: PLC0415 - slow to import

            self._context = Context(tuple(self.views()))
        return self._context

    def _colds(self) -> Mapping[str, ColdProbe]:
        """Return role to what its volume's cold probe told, where there was one."""
        found = {
            role: read_probe(self._layout.probe(role)) for role in self.campaign.cold_probe_roles
        }
        return {role: one.cold for role, one in found.items() if one and one.cold}

    def table_file(self, name: str) -> Path | None:
        """Return the Parquet file of a frame, up to date; None where none is kept.

        Frames that are judged from others have no file, and none can be kept in a folder that
        may not be written.
        """
        if name not in _READ:
            return None
        if not _is_current(self._layout):
            self._read(name)
        return self._layout.tables / f"{name}.parquet" if _is_current(self._layout) else None

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name; a copy, so that callers may change it.

        Raises:
            InputError: no frame has that name.
        """
        if name not in FRAMES and name not in ON_DEMAND:
            raise InputError(
                f"there is no frame {name!r}", hint=f"choose one of {', '.join(FRAMES)}"
            )
        if name not in self._frames:
            if name in _READ:
                self._read(name)
            else:
                self._frames[name] = _derive(name, self)
        return self._frames[name].copy()

    def _read(self, name: str) -> None:
        """Read a frame: it alone from its file where that is up to date, else all from raw files.

        A campaign that goes on while it is read has all of its frames from one moment.
        """
        stamp = _stamp(self._layout)
        if _is_current(self._layout) and self._stamp in {"", stamp}:
            self._frames[name] = frame_of(read_table(self._layout.tables / f"{name}.parquet"))
        else:
            self._history, self._context = read_history(self._layout.journal), None
            self._frames = _made_frames(self._layout, self.campaign, self._history, stamp=stamp)
        self._stamp = stamp


def open_campaign(path: str | os.PathLike[str]) -> CampaignData:
    """Open a campaign folder.

    Args:
        path: the folder that ``volbench run`` wrote.

    Raises:
        ArchiveError: no campaign there, damaged, or written by a newer volbench.
    """
    layout, archive = read_campaign(Path(path))
    return CampaignData(layout, archive)


def _made_frames(
    layout: Layout, campaign: Campaign, history: History, *, stamp: str
) -> dict[str, pd.DataFrame]:
    """Return every frame from the raw files, and keep them as Parquet."""
    rows: Rows = ingest(layout, campaign, history)
    labels = {"summary": label_names(campaign.hosts)}
    tables = {
        name: table_of(name, getattr(rows, name), labels=labels.get(name, ())) for name in _READ
    }
    if os.access(layout.root, os.W_OK):
        # Tables only save time: on a full disk the frames are complete without them.
        with suppress(ArchiveError):
            _keep(layout, tables, stamp=stamp)
    return {name: frame_of(table) for name, table in tables.items()}


def _derive(name: str, data: CampaignData) -> pd.DataFrame:
    """Judge the frames that were read; scipy and its kin are imported only now."""
    rows: Sequence[Mapping[str, object]] = ()
    if name == "verdicts":
        from volbench.analyse.bottleneck.run_verdicts import verdict_rows  # noqa: PLC0415 - slow to import

        rows = verdict_rows(data.context())
    elif name == "findings":
        from volbench.analyse.findings import finding_rows  # noqa: PLC0415 - slow to import

        rows = finding_rows(data.context())
    elif name == "aggregate":
        from volbench.analyse.frames.aggregate import total_rows  # noqa: PLC0415 - slow to import

        rows = total_rows(data.campaign, {one: data.frame(one) for one in _READ})
    elif name in ON_DEMAND:
        return data.latency_map()
    return frame_of(table_of(name, rows))


def _keep(layout: Layout, tables: Mapping[str, pa.Table], *, stamp: str) -> None:
    """Write the tables, and last the stamp that says they are whole."""
    for name, table in tables.items():
        write_table(layout.tables / f"{name}.parquet", table)
    write_atomic(layout.tables / "stamp", stamp)


def _stamp(layout: Layout) -> str:
    """Return what tables of the journal as it is now are stamped with."""
    return f"{TABLES_VERSION} {layout.journal.stat().st_size if layout.journal.exists() else 0}\n"


def _is_current(layout: Layout) -> bool:
    file = layout.tables / "stamp"
    return file.exists() and file.read_text(encoding="utf-8") == _stamp(layout)
