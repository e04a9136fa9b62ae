"""Reads of the cold-volume probe: latencies by offset, and the share of zero blocks.

Each pass is one fio process with ``--readonly``: jobs that write fail to parse, and the volume is
opened for reading only.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from volbench.engine.run.process_watch import Ending, watch
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import ArchiveError, FioError, OutputError, StoppedError, unwritten
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import render
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import Expected, problems_of
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.results.result import Direction, RunOutput
from volbench.plan.expansion.estimate import PROBE_READ_S
from volbench.store.atomic_files import read_text
from volbench.store.layout import FIO_OUTPUT, JOB_FILE, ProbeFolder, RunFolder

RUNTIME_S = round(PROBE_READ_S)  # Time limit of all first reads, or of all second reads
# Parts of the sample, each read twice before the next, so that a load that changes meets both.
# Noticed by: test_cold_probe.py::test_reads_take_turns
ROUNDS = 8
LATE_S = 600.0  # Grace period of a pass beyond its time limit; the same as for a run

# Reads per pass: ten lie above the 99th percentile. Noticed by: benchmarks/truth.py
MAX_READS = 1024
READ_BYTES = 4096
SPREAD_BYTES = 1 << 20  # Alignment of the reads, so that each falls into a different backing chunk
# Number of offsets on a small volume, where they are closer together.
# Noticed by: test_cold_probe.py::test_both_passes_read_the_same_offsets
MIN_OFFSETS = 64
# Blocks compared with zeros, 256 MiB in all: a share of 1 % has a standard error of 0.16 %.
# Noticed by: test_cold_probe.py::test_zeros_are_counted_block_by_block
MAX_SAMPLES = 4096
SAMPLE_BYTES = 64 << 10

_LOG = "reads"
_LATENCY_LOG = f"{_LOG}_lat.1.log"
_LATENCY_COLUMN, _OFFSET_COLUMN = 1, 4
_MISMATCH = 84  # EILSEQ: fio's error when a block differs from the pattern


@dataclass(frozen=True)
class Reader:
    """Reads of one probe."""

    executor: Executor  # the machine
    volume: Volume  # a device, a file with content, or an NBD export
    size_bytes: int | None  # of the volume; None if only fio can detect it
    folder: ProbeFolder  # of the probe; created when missing
    fio: str  # path of the binary
    seed: int  # of the offsets of the first part, above 0
    stop: StopRequest  # the user's stop request

    def latencies_s(self, name: str, part: int) -> dict[int, float]:
        """Read the blocks of a part of the sample sequentially and return offset to latency.

        Every pass over a part has its own name and reads the same offsets. They lie elsewhere in
        their chunks than those of other probes, which are warm.
        """
        spread = spread_bytes(self.size_bytes)
        # fio draws offsets with replacement: twice as many draws as offsets hit 86 % of them.
        offsets = MAX_READS if self.size_bytes is None else self.size_bytes // spread
        options = {
            "ioengine": "psync",
            "bs": str(READ_BYTES),
            "number_ios": str(max(1, min(MAX_READS, 2 * offsets) // ROUNDS)),
            "runtime": f"{RUNTIME_S * 1000 // ROUNDS}ms",
            "randseed": str(self.seed + part),
            "offset": str(self.seed * READ_BYTES % spread),
            "write_lat_log": _LOG,
            "log_avg_msec": "0",
            "log_offset": "1",
        }
        step = self._step(f"{name}-{part + 1}")
        self._read_blocks(step, name, {**options, "blockalign": str(spread)})
        return read_offset_log(step.path / _LATENCY_LOG)

    def zero_share(self, *, reach_bytes: int) -> float | None:
        """Return the share of sampled blocks that contain only zeros; None when none was read.

        fio verifies the blocks against a pattern of zeros and counts the mismatches.
        """
        spread = spread_bytes(self.size_bytes)
        options = {
            "ioengine": "libaio",
            "iodepth": "16",
            "bs": str(min(spread, SAMPLE_BYTES)),
            "blockalign": str(spread),
            "number_ios": str(min(MAX_SAMPLES, max(1, 2 * (reach_bytes // spread)))),
            "verify": "pattern",
            "verify_pattern": "0x00",
            "verify_fatal": "0",
            "verify_state_save": "0",
            "continue_on_error": "verify",
        }
        output = self._read_blocks(self._step("zeros"), "zeros", options, expected_error=_MISMATCH)
        job = output.jobs[0]
        read = job.direction(Direction.READ)
        return 1 - job.total_errors / read.total_ios if read and read.total_ios else None

    def _step(self, name: str) -> RunFolder:
        step = self.folder.step(name)
        make_folder(step.path)
        return step

    def _read_blocks(
        self, step: RunFolder, name: str, options: Mapping[str, str], *, expected_error: int = 0
    ) -> RunOutput:
        self._check_stop()
        argv = [self.fio, "--readonly", "--output-format=json", f"--output={FIO_OUTPUT}", JOB_FILE]
        directory = RunDirectory(self.executor, step, name=f"probe-{secrets.token_hex(4)}")
        try:
            directory.put(JOB_FILE, render(self._plan(name, options)))
            directory.sync()
            watched = watch(
                directory.start(argv, stderr=step.stderr.name),
                deadline_s=RUNTIME_S + LATE_S,
                stop=self.stop,
                on_output=lambda _text, _s: None,
            )
            directory.fetch()
        finally:
            directory.remove()
        if watched.ending is Ending.STOPPED:
            self._check_stop()
        status = -9 if watched.exit_status is None else watched.exit_status
        return self._checked_result(step, name, status, expected_error)

    def _check_stop(self) -> None:
        if self.stop.requested:
            raise StoppedError("stopped while the volume was probed", hint="start it again")

    def _plan(self, name: str, options: Mapping[str, str]) -> Run:
        shared = {
            "rw": "randread",
            "runtime": f"{RUNTIME_S}s",
            # fio ignores randseed unless randrepeat is off.
            "randrepeat": "0",
            "randseed": str(self.seed),
            **options,
        }
        if self.volume.kind is not VolumeKind.NBD:
            shared |= {"direct": "1"}
        if self.volume.kind is VolumeKind.FILE:
            shared |= {"allow_file_create": "0"}
        return Run(
            id=name,
            profile="cold-probe",
            job=name,
            volume=self.volume,
            sections=(Section(name=name, options=shared),),
            sample_s=0,
            device_sample_s=0,
        )

    def _checked_result(
        self, step: RunFolder, name: str, exit_status: int, expected_error: int
    ) -> RunOutput:
        """Return the results of a process, or raise an error with fio's message."""
        stderr = read_text(step.stderr)
        expected = (Expected(name=name, entries=1, directions=(Direction.READ,)),)
        try:
            output = parse_output(read_text(step.fio_output), path=str(step.fio_output))
        except OutputError as error:
            problems = problems_of(None, exit_status=exit_status, stderr=stderr, expected=expected)
            raise self._probe_error((*problems, error.message)) from error
        if expected_error and output.jobs and output.jobs[0].error == expected_error:
            return output
        problems = problems_of(output, exit_status=exit_status, stderr=stderr, expected=expected)
        if problems:
            raise self._probe_error(problems)
        return output

    def _probe_error(self, problems: tuple[str, ...]) -> FioError:
        reasons = " ".join(f"{problem.rstrip('.')}." for problem in problems)
        return FioError(
            f"{self.volume.target} cannot be probed: {reasons}",
            hint="devices need root; files need a file system that supports direct I/O",
        )


def spread_bytes(size_bytes: int | None) -> int:
    """Return the alignment of offsets: a power of two, smaller on a small volume."""
    spread = SPREAD_BYTES
    while size_bytes is not None and spread > READ_BYTES and spread * MIN_OFFSETS > size_bytes:
        spread //= 2
    return spread


def read_offset_log(path: Path) -> dict[int, float]:
    """Return offset to latency in seconds from a log with one line per read.

    Of several reads of one offset, only the first counts: the others are warm.
    """
    latencies: dict[int, float] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) <= _OFFSET_COLUMN or not all(cell.isdecimal() for cell in cells[:5]):
            raise OutputError(
                f"{path} line {number} is not a line of a latency log with offsets",
                hint="the disk that holds the logs may be full",
                path=str(path),
                line=number,
            )
        # 0 means that the clock did not advance between its two readings.
        latency_ns = max(1, int(cells[_LATENCY_COLUMN]))
        latencies.setdefault(int(cells[_OFFSET_COLUMN]), latency_ns / 1e9)
    if not latencies:
        raise OutputError(f"{path} contains no reads", hint="see the file stderr beside it")
    return latencies


def make_folder(path: Path) -> None:
    """Create a folder and its parents, unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message, hint = unwritten(path, error, hint="check permissions", verb="created")
        raise ArchiveError(message, hint=hint, path=str(path)) from error
