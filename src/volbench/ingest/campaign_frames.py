"""Raw files of a campaign in, rows of every frame out; frames can always be rebuilt from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from volbench.errors import ArchiveError, OutputError
from volbench.fio.results.latency_bins import bin_edges_ns
from volbench.fio.results.merge_jobs import merge_clones
from volbench.ingest.clock_correction import clock_offset_s, shifted_utc, start_columns
from volbench.ingest.device_rows import begun_utc_s, device_rows, read_samples
from volbench.ingest.run_files import read_facts, read_run_output, read_status
from volbench.ingest.series_rows import SectionSeries, read_section_series
from volbench.model.campaign.planned_run import Campaign, Run, RunState, Section
from volbench.model.frames.columns import DAMAGED, LABEL_PREFIX, PERCENTILES
from volbench.model.profile.profile_model import Tool
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency, RunOutput
from volbench.store.journal import History
from volbench.store.layout import Layout, RunFolder

Row = dict[str, object]

_LATENCIES = ("lat", "clat", "slat")


@dataclass
class Rows:
    """Rows of every frame that is read from raw files, in the order of the plan."""

    summary: list[Row] = field(default_factory=list)
    series: list[Row] = field(default_factory=list)
    device: list[Row] = field(default_factory=list)
    percentiles: list[Row] = field(default_factory=list)
    histogram: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What is known of one Run besides its numbers."""

    run: Run
    status: str
    started_utc: str | None


@dataclass
class Damage:
    """What files in the folder of a Run could not be read, in the words of each error."""

    folder: RunFolder
    found: list[str] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Go on after a file that can't be used: one is no reason to lose all others."""
        try:
            yield
        except (ArchiveError, OutputError) as error:
            name = Path(str(error.context.get("path", ""))).name
            words = error.message.replace(f"{self.folder.path}/", "")
            self.found.append(words if name in words else f"{name}: {words}")

    @property
    def words(self) -> str:
        """Everything that was found; "" for nothing."""
        return "; ".join(self.found)


def ingest(layout: Layout, campaign: Campaign, history: History) -> Rows:
    """Read every Run that has ended.

    A Run without readable output keeps its row in the summary, with its state and no numbers. A
    file that was damaged later is named in that row, in the column `damage`.

    Returns:
        Rows in the order of the plan.
    """
    rows = Rows()
    for run in campaign.runs:
        state = history.states.get(run.id, RunState.PLANNED)
        if state not in {RunState.PLANNED, RunState.RUNNING, RunState.NOT_NEEDED}:
            _add_run(rows, campaign, run, state, layout.run(run.id))
    return rows


def _add_run(rows: Rows, campaign: Campaign, run: Run, state: RunState, folder: RunFolder) -> None:
    """Add what the files of one Run tell; what is damaged is told in its row, and left out."""
    before, damage = len(rows.summary), Damage(folder)
    timed = len(rows.series), len(rows.device)
    status: Mapping[str, object] = {}
    with damage.noted():
        status = read_status(folder)
    started, ahead_s = status.get("started_utc"), clock_offset_s(status)
    outcome = Outcome(run, state.value, None if started is None else str(started))
    output = None
    # Where the tool failed, the journal holds why, and there need be no output.
    with damage.noted() if state is RunState.FINISHED else suppress(OutputError):
        output = read_run_output(run, folder)
    if output is not None:
        _add_output(rows, campaign, outcome, output)
    else:
        lost = replace(outcome, status=DAMAGED) if damage.words else outcome
        rows.summary.append(_summary_row(campaign, lost, run.sections[0]))
    if output is not None and state is RunState.FINISHED:
        with damage.noted():
            _add_series(rows, campaign, run, list(read_section_series(run, folder, output)))
        if run.imported is not None and run.imported.read_as:
            _tell_directions(rows, run)
    with damage.noted():
        there = replace(outcome, started_utc=shifted_utc(outcome.started_utc, by_s=ahead_s))
        _add_device(rows, campaign, there, folder, output)
    # Until here all is by the host's own clock, as fio and the samples told it.
    for row in (*rows.series[timed[0] :], *rows.device[timed[1] :]):
        row["utc"] = shifted_utc(row["utc"], by_s=-ahead_s)
    for row in rows.summary[before:]:
        row |= {"damage": damage.words or None, **start_columns(status)}


def _add_series(
    rows: Rows, campaign: Campaign, run: Run, sections: Sequence[SectionSeries]
) -> None:
    for series in sections:
        identity = run_identity(campaign, run, series.section.name)
        rows.series.extend({**identity, **row} for row in series.rows)
        _tell_bad_rows(rows, identity, series.bad_row_count)


def _tell_directions(rows: Rows, run: Run) -> None:
    """Let the row of a Run that has logs only become one for each direction that they tell."""
    told = list(dict.fromkeys(row["direction"] for row in rows.series if row["run"] == run.id))
    if told:
        row = rows.summary.pop()
        rows.summary.extend({**row, "direction": direction} for direction in told)


def _add_output(rows: Rows, campaign: Campaign, outcome: Outcome, output: RunOutput) -> None:
    by_name = {section.name: section for section in outcome.run.sections}
    before = len(rows.summary)
    for job in merge_clones(output.jobs):
        section = by_name.get(job.name, outcome.run.sections[0])
        for direction in job.directions:
            rows.summary.append(
                _summary_row(campaign, outcome, section)
                | _numbers(section, outcome.run, job, direction)
                | {"fio_version": output.tool_version or None}
            )
            identity = run_identity(campaign, outcome.run, section.name)
            identity["direction"] = direction.direction.value
            for name, latency in _latencies(direction):
                rows.percentiles.extend(_percentile_rows(identity, name, latency))
                rows.histogram.extend(_histogram_rows(identity, name, latency))
    if len(rows.summary) == before:
        rows.summary.append(_summary_row(campaign, outcome, outcome.run.sections[0]))


def _add_device(
    rows: Rows,
    campaign: Campaign,
    outcome: Outcome,
    folder: RunFolder,
    output: RunOutput | None = None,
) -> None:
    """Add what the host's own counters say of a Run; its device is the same for every section."""
    run = outcome.run
    identity = run_identity(campaign, run, run.sections[0].name)
    series = (row for row in rows.series if row["run"] == run.id)
    begun = begun_utc_s(output, series, started_utc=outcome.started_utc)
    found = device_rows(read_samples(folder), read_facts(folder), begun_utc_s=begun)
    rows.device.extend({**identity, **row} for row in found)


def _tell_bad_rows(rows: Rows, identity: Row, count: int) -> None:
    """Put what was left out of a section's series beside its numbers."""
    for row in reversed(rows.summary):
        if row["run"] != identity["run"]:
            return
        if row["group"] == identity["group"]:
            row["bad_log_rows"] = count


def run_identity(campaign: Campaign, run: Run, group: str) -> Row:
    """Return the columns that every frame shares, for one section of a Run."""
    return {
        "campaign": campaign.name,
        "run": run.id,
        "host": run.host,
        "profile": run.profile,
        "job": run.job,
        "group": group,
        "role": run.volume.role,
        "volume": run.volume.target,
        "repeat": run.repeat,
        "phase": run.phase.value,
    }


def _told(run: Run, section: Section) -> dict[str, str]:
    """Return a section's options with what the tool does when it is not told."""
    if not run.tells(section):
        return run.effective(section)
    unsaid = {"rw": "write", "bs": "512"} if run.tool is Tool.DD else {"rw": "read", "bs": "4096"}
    return {**unsaid, **run.effective(section)}


def _summary_row(campaign: Campaign, outcome: Outcome, section: Section) -> Row:
    """Return the columns that are known without any output."""
    run = outcome.run
    options, told = _told(run, section), run.tells(section)
    unsaid = "1" if told else ""
    return {
        **run_identity(campaign, run, section.name),
        "tool": run.tool.value,
        "rw": options.get("rw"),
        "rwmixread": _read_percent(options),
        "direct": _is_direct(options) if told or "direct" in options else None,
        "iodepth": _whole(options.get("iodepth", unsaid)),
        "numjobs": _whole(options.get("numjobs", unsaid)),
        "ioengine": options.get("ioengine"),
        "size_bytes": _whole(options.get("size", "")),
        "volume_bytes": None if run.volume.pin is None else run.volume.pin.size_bytes,
        "status": outcome.status,
        "started_utc": outcome.started_utc,
        "limit_iops": run.limits.iops,
        "limit_bw_bytes_per_s": run.limits.bandwidth_bytes_per_s,
        "note": run.note or None,
        "start_offset_s": run.start_offset_s if run.step else None,
        "client": run.client or None,
        **_labels(campaign, run.host),
    }


def _labels(campaign: Campaign, name: str) -> Row:
    """Return the labels of a host by their columns."""
    labels = next((host.labels for host in campaign.hosts if host.name == name), {})
    return {f"{LABEL_PREFIX}{label}": told for label, told in labels.items()}


def _is_direct(options: Mapping[str, str]) -> bool:
    flags = f"{options.get('oflag', '')},{options.get('iflag', '')}".split(",")
    return options.get("direct", "0") == "1" or "direct" in flags


def _read_percent(options: Mapping[str, str]) -> int | None:
    """Return the share of reads in a mixed pattern; half of it without an option (fio HOWTO)."""
    if options.get("rw", "").partition(":")[0] not in {"rw", "readwrite", "randrw"}:
        return None
    if "rwmixwrite" in options and "rwmixread" not in options:
        return 100 - int(options["rwmixwrite"])
    return int(options.get("rwmixread", "50"))


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


_POSITION = {Direction.READ: 0, Direction.WRITE: 1, Direction.TRIM: 2}


def _block_bytes(options: Mapping[str, str], direction: Direction) -> int | None:
    """Return the block size of a direction; fio's triples inherit the value before them."""
    if direction is Direction.SYNC or "bssplit" in options or "bsrange" in options:
        return None
    sizes = [_whole(part) for part in options.get("bs", "").split(",")]
    known = [size for size in sizes[: _POSITION.get(direction, 0) + 1] if size is not None]
    return known[-1] if known else None


def _numbers(section: Section, run: Run, job: JobResult, direction: DirectionResult) -> Row:
    options = _told(run, section)
    return {
        "direction": direction.direction.value,
        **({} if run.extent is None else {"numjobs": job.members}),
        "block_bytes": _block_bytes(options, direction.direction),
        "runtime_s": direction.runtime_s,
        "io_bytes": direction.io_bytes,
        "total_ios": direction.total_ios,
        "iops": direction.iops,
        "iops_min": direction.iops_min,
        "iops_max": direction.iops_max,
        "iops_stddev": direction.iops_stddev,
        "bw_bytes_per_s": direction.bw_bytes_per_s,
        "cpu_usr": job.cpu_usr,
        "cpu_sys": job.cpu_sys,
        "error": job.error,
        **_latency_columns(direction),
    }


def _latencies(direction: DirectionResult) -> list[tuple[str, Latency]]:
    found = ((name, getattr(direction, name)) for name in _LATENCIES)
    return [(name, latency) for name, latency in found if latency is not None]


def _latency_columns(direction: DirectionResult) -> Row:
    row: Row = {}
    for name, latency in _latencies(direction):
        row |= {
            f"{name}_mean_s": latency.mean_s,
            f"{name}_stddev_s": latency.stddev_s,
            f"{name}_min_s": latency.min_s,
            f"{name}_max_s": latency.max_s,
        }
        row |= {
            f"{name}_{label}_s": latency.percentiles.get(percentile)
            for label, percentile in PERCENTILES.items()
        }
    return row


def _percentile_rows(identity: Row, name: str, latency: Latency) -> Sequence[Row]:
    return [
        {**identity, "latency": name, "percentile": percentile, "value_s": value_s}
        for percentile, value_s in latency.percentiles.items()
    ]


def _histogram_rows(identity: Row, name: str, latency: Latency) -> Sequence[Row]:
    rows = []
    for mid_ns, count in latency.bins.items():
        low_ns, high_ns = bin_edges_ns(mid_ns)
        rows.append(
            {
                **identity,
                "latency": name,
                "bin_s": mid_ns / 1e9,
                "bin_low_s": low_ns / 1e9,
                "bin_high_s": high_ns / 1e9,
                "count": count,
            }
        )
    return rows
