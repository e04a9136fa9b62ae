"""Rows of the series frame, from the log files of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from volbench.fio.logs.direction_series import DirectionSeries
from volbench.fio.logs.log_rows import BadRows, Log
from volbench.fio.logs.section_logs import parse_log_name, read_series
from volbench.fio.logs.time_grid import Recording
from volbench.fio.version import parse_version
from volbench.ingest.device_rows import utc_text
from volbench.ingest.run_summary import TOGETHER
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.profile.profile_model import Tool
from volbench.model.results.result import RunOutput
from volbench.store.layout import RunFolder
from volbench.store.log_files import open_log, plain_name
from volbench.store.parquet_tables import Block

_UNEVEN = 2  # Intervals without all jobs from which these are held to have ended at different times
_MEASURED = tuple(
    field.name
    for field in fields(DirectionSeries)
    if field.name not in {"direction", "t_s", "utc_s"}
)


@dataclass(frozen=True)
class SectionSeries:
    """Content of the logs of one section."""

    section: Section  # the section
    directions: Sequence[DirectionSeries]  # its series, one for each direction in its logs
    bad_rows: Sequence[BadRows]  # lines of its logs that could not be used

    @property
    def bad_row_count(self) -> int:
        """Return the number of lines left out of the series."""
        return sum(log.bad_rows for log in self.bad_rows)


def read_section_series(run: Run, folder: RunFolder, output: RunOutput) -> Iterable[SectionSeries]:
    """Yield the series of each section of a run, `numjobs` summed."""
    for section, logs, recording in section_logs(run, folder, output):
        reading = read_series(logs, recording)
        yield SectionSeries(section, reading.directions, reading.bad_rows)


def section_logs(
    run: Run, folder: RunFolder, output: RunOutput
) -> Iterable[tuple[Section, list[Log], Recording]]:
    """Yield each section of a run with its logs and their recording parameters; none for dd.

    fio numbers logs from 1 over all jobs of all sections, in the order of the job file.
    """
    if run.tool is not Tool.FIO or not run.sample_s:
        return
    logs = _logs(folder)
    first = 1 if run.imported is None else run.imported.first_job_number
    for section in run.sections:
        options = run.effective(section)
        jobs = _log_count(run, section)
        mine = [log for log in logs if first <= log.job_number < first + jobs]
        first += jobs
        runtime_s = _runtime_s(output, section)
        recording = Recording(
            interval_s=_interval_s(run),
            fio_version=parse_version(output.tool_version),
            runtime_s=runtime_s,
            epoch_start_s=_recorded_start_s(run, output, section),
            begun_by_s=_begun_by_s(output, runtime_s),
            window_values=options.get(
                "log_window_value", "avg" if run.reports_options(section) else None
            ),
        )
        yield section, mine, recording


def _log_count(run: Run, section: Section) -> int:
    for job in run.imported.jobs if run.imported else ():
        if job.section == section.name:
            return job.numjobs
    return int(run.effective(section).get("numjobs", "1"))


def _interval_s(run: Run) -> float:
    """Return the width of fio's windows, which are whole milliseconds."""
    return max(1, round(run.sample_s * 1000)) / 1000


def _logs(folder: RunFolder) -> list[Log]:
    """Return a run's logs; a plain one counts where its compression did not come to an end."""
    logs: dict[tuple[str, int], Log] = {}
    for path in sorted(folder.path.iterdir(), key=_plain_last):
        found = parse_log_name(plain_name(path))
        if found is not None:
            logs[found] = Log(*found, name=str(path), open=partial(open_log, path))
    return list(logs.values())


def _plain_last(path: Path) -> tuple[bool, str]:
    return plain_name(path) == path.name, path.name


def _runtime_s(output: RunOutput, section: Section) -> float | None:
    """Return the longest runtime of a section's directions."""
    runtimes = [
        direction.runtime_s
        for job in output.jobs
        if job.name == section.name
        for direction in job.directions
    ]
    return max(runtimes, default=None)


def _recorded_start_s(run: Run, output: RunOutput, section: Section) -> float | None:
    """Return when an imported section began, for logs without the time of day."""
    if run.imported is None:
        return None
    jobs = [job for job in output.jobs if job.name == section.name]
    return min((job.start_utc_s for job in jobs if job.start_utc_s), default=None)


def _begun_by_s(output: RunOutput, runtime_s: float | None) -> float | None:
    """Return an instant at which I/O had begun: fio reports its end with its result."""
    if output.ended_utc_s is None or runtime_s is None:
        return None
    # Old versions report whole seconds only, truncated.
    cut_s = 1.0 if output.ended_utc_s.is_integer() else 0.0
    return output.ended_utc_s + cut_s - runtime_s


def while_all_ran(
    directions: Sequence[DirectionSeries], result: Mapping[str, object]
) -> dict[str, object]:
    """Return rates over the intervals in which all jobs ran; empty where they ended together.

    Args:
        result: row of the summary, of one direction of it; without any for logs alone.
    """
    for series in directions:
        if series.direction.value == result.get("direction"):
            return _while_all_ran(series)
    return {}


def _while_all_ran(series: DirectionSeries) -> dict[str, object]:
    running = series.jobs_running[~np.isnan(series.jobs_running)]
    whole = series.jobs_running == running.max(initial=0)
    count = int(np.count_nonzero(whole))
    if len(running) - count < max(_UNEVEN, (1 - TOGETHER) * len(running)):
        return {}
    rates = {
        name: fmean(values.tolist())
        for name in ("iops", "bw_bytes_per_s")
        if not np.isnan(values := getattr(series, name)[whole]).any()
    }
    return {"parallel_s": count * float(series.t_s[1] - series.t_s[0]), **rates}


def series_block(identity: Mapping[str, object], series: DirectionSeries) -> Block:
    """Return the rows of the series frame for one direction of a section."""
    utc = np.full(len(series.t_s), None, dtype=object)
    if series.utc_s is not None:
        utc[:] = [utc_text(instant) for instant in series.utc_s.tolist()]
    return Block(
        {**identity, "direction": series.direction.value},
        {
            "t_s": series.t_s,
            "utc": utc,
            **{name: getattr(series, name) for name in _MEASURED},
        },
    )
