"""The log files of one Run in, rows of the series frame out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from volbench.fio.logs import LogText, parse_log_name, read_series
from volbench.fio.version import parse_version
from volbench.model.profile import Tool
from volbench.model.result import RunOutput, SeriesPoint
from volbench.model.run import Run, Section
from volbench.store.layout import COMPRESSED, RunFolder
from volbench.store.logs import read_log


def series_rows(
    run: Run, folder: RunFolder, output: RunOutput
) -> Iterator[tuple[Section, dict[str, object]]]:
    """Yield the series of each section of a Run, clones summed.

    fio numbers logs from 1 over all clones of all sections, in the order of the job file.
    """
    if run.tool is not Tool.FIO or not run.sample_s:
        return
    logs = _read_logs(folder)
    first = 1
    for section in run.sections:
        clones = int(run.effective(section).get("numjobs", "1"))
        texts = [log for log in logs if first <= log.clone < first + clones]
        first += clones
        points = read_series(
            texts,
            interval_s=run.sample_s,
            runtime_s=_runtime_s(output, section),
            fio_version=parse_version(output.tool_version),
        )
        for point in points:
            yield section, _row(point)


def _read_logs(folder: RunFolder) -> list[LogText]:
    logs = []
    for path in sorted(folder.path.iterdir()):
        found = parse_log_name(path.name.removesuffix(COMPRESSED))
        if found is not None:
            kind, clone = found
            logs.append(LogText(kind, clone, read_log(path)))
    return logs


def _runtime_s(output: RunOutput, section: Section) -> float | None:
    """Return the longest runtime of a section's directions."""
    runtimes = [
        direction.runtime_s
        for job in output.jobs
        if job.name == section.name
        for direction in job.directions
    ]
    return max(runtimes, default=None)


def _row(point: SeriesPoint) -> dict[str, object]:
    return {
        "direction": point.direction.value,
        "t_s": point.t_s,
        "utc": None if point.utc_s is None else _utc(point.utc_s),
        "iops": point.iops,
        "bw_bytes_per_s": point.bw_bytes_per_s,
        "lat_mean_s": point.lat_mean_s,
        "lat_p50_s": point.lat_p50_s,
        "lat_p99_s": point.lat_p99_s,
        "lat_p999_s": point.lat_p999_s,
        "lat_max_s": point.lat_max_s,
    }


def _utc(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
