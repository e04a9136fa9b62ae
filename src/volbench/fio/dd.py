"""Command line of dd runs, and parser of dd's report."""

from __future__ import annotations

import re

from volbench.errors import InputError, OutputError
from volbench.fio.jobs.render_job import dd_file, writes
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.fio_options import check_dd_option
from volbench.model.results.result import Direction, DirectionResult, JobResult, RunOutput

_REPORT = re.compile(
    r"^(\d+) bytes?(?: \([^)]*\))? (?:copied|transferred)(?: in|,) "
    r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?) s",
    re.MULTILINE,
)
_MAX_DIGITS = 15  # Of a number of bytes: below 1 PB, so that sums fit in 64 bits
_MAX_SECONDS = 1e9
_VERSION = re.compile(r"(?<![\d.])\d+\.\d+(?:\.\d+)*")


def dd_argv(run: Run) -> list[str]:
    """Return the argument list of a dd run."""
    options = dict(check_dd_option(*item) for item in run.effective(run.sections[0]).items())
    path = _place(run)
    block, size = int(options.get("bs", "512")), int(options.get("size", "0"))
    if not size or size % block:
        raise InputError(
            f"job {run.job}: size {size} must be a multiple of bs {block}",
            hint="give a dd job a size of whole blocks",
        )
    reads = not writes(run)
    if run.volume.kind is VolumeKind.DEVICE and not reads:
        # dd must not create a file for a mistyped device.
        options["conv"] = ",".join([*filter(None, [options.get("conv")]), "nocreat"])
    argv = [
        "dd",
        f"if={path if reads else options.get('if', '/dev/zero')}",
        f"of={'/dev/null' if reads else path}",
        f"bs={block}",
        f"count={size // block}",
    ]
    return argv + [
        f"{name}={options[name]}" for name in ("iflag", "oflag", "conv") if name in options
    ]


def _place(run: Run) -> str:
    if run.volume.kind is VolumeKind.NBD:
        raise InputError("dd cannot access an NBD export", hint="use a device, file or directory")
    path = dd_file(run) or run.volume.node
    if "\x00" in path:
        raise InputError(f"{path!r} is not a valid path", hint="remove the NUL character")
    return path


def dd_problems(*, exit_status: int, stderr: str) -> tuple[str, ...]:
    """Return why a dd run failed, with dd's messages; empty for success."""
    if exit_status == 0:
        return ()
    messages = [line for line in stderr.splitlines() if line.startswith("dd:")]
    return (
        f"dd exited with {exit_status}: {' '.join(messages) or stderr.strip() or 'no message'}",
    )


def parse_dd(stderr: str, *, run: Run, elapsed_s: float, version: str) -> RunOutput:
    """Return the result in dd's report.

    dd reports bytes and seconds only: IOPS, latencies and percentiles are None. Its seconds have
    six significant digits and include the flush only with ``conv=fsync`` or ``conv=fdatasync``.

    Args:
        elapsed_s: of the whole process, stored in addition to dd's own seconds.
        version: such as ``dd-9.1``.
    """
    reports = list(_REPORT.finditer(stderr))
    if not reports:
        raise OutputError(
            f"dd printed no report: {stderr.strip()[-300:] or 'no output'}",
            hint="run the command in command.txt yourself to see its messages",
        )
    io_bytes, seconds = _reported(reports[-1])
    options = run.effective(run.sections[0])
    wanted = int(options.get("size", "0"))
    if io_bytes < wanted:
        raise OutputError(
            f"dd moved {io_bytes} of {wanted} bytes",
            hint="the source ended early: make size smaller, or add iflag: fullblock",
        )
    reads = not writes(run)
    direction = DirectionResult(
        direction=Direction.READ if reads else Direction.WRITE,
        io_bytes=io_bytes,
        total_ios=None,
        runtime_s=seconds,
        iops=None,
        bw_bytes_per_s=io_bytes / seconds if seconds else None,
    )
    job = JobResult(
        name=run.sections[0].name,
        groupid=0,
        error=0,
        directions=(direction,),
        options=dict(options),
        elapsed_s=elapsed_s,
    )
    return RunOutput(tool_version=version, jobs=(job,), diagnostics=stderr)


def _reported(report: re.Match[str]) -> tuple[int, float]:
    """Return the bytes and seconds of a report."""
    digits, seconds = report[1], float(report[2])
    if len(digits) > _MAX_DIGITS or seconds > _MAX_SECONDS:
        raise OutputError(
            f"dd's report has implausible numbers: {report[0][:60]}",
            hint="check dd.txt, and measure again",
        )
    return int(digits), seconds


def parse_dd_version(text: str) -> str:
    """Return ``dd-9.1`` for the output of ``dd --version``; ``dd`` when there is no version."""
    match = _VERSION.search(text.partition("\n")[0])
    return f"dd-{match.group()}" if match else "dd"
