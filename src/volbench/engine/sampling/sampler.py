"""Sampler of the host's kernel counters during a run, and its log ``device.log``.

One process on the target copies lines of /proc: a Python script, or a POSIX shell script where
Python is missing. Its output is stored verbatim, with marks at the start and the end of the
measured process.
"""

from __future__ import annotations

import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files

from volbench.analyse.frames.kernel_counters import Sample, SampleReader
from volbench.engine.run.process_watch import continues_after
from volbench.engine.run.run_directory import RunDirectory
from volbench.errors import ArchiveError, TransportError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor, Process
from volbench.execute.waiting_work import Wait

FIRST_SAMPLE_S = 5.0  # Time within which each of the two programs must deliver its first sample

_LAST_SAMPLE_S = 2.0
_POLL_S = 0.005
_LIFE_SLACK_S = 600.0  # Time from the run's deadline to the end of the sampler without a controller
# Maximum runtime for runs without a deadline, such as the replay of an I/O log: a month
_MAX_LIFE_S = 30 * 86400.0


def sampler_commands(
    executor: Executor, devices: Sequence[str], *, interval_s: float, life_s: float
) -> list[list[str]]:
    """Return the commands that can sample on a machine, the cheaper first.

    Args:
        interval_s: seconds between samples.
        life_s: seconds after which the process ends in any case.
    """
    source = files("volbench.engine.sampling")
    arguments = [f"{interval_s:.2f}", f"{math.ceil(min(life_s, _MAX_LIFE_S))}", *devices]
    commands = []
    if (python := python_of(executor)) is not None:
        script = source.joinpath("proc_sampler.py").read_text(encoding="utf-8")
        commands.append([python, "-I", "-S", "-c", script, *arguments])
    if (shell := executor.which("sh")) is not None:
        script = source.joinpath("sample.sh").read_text(encoding="utf-8")
        commands.append([shell, "-c", script, "sample", *arguments])
    return commands


def python_of(executor: Executor) -> str | None:
    """Return the interpreter to sample with.

    On this machine it is the controller's own: ``python3`` on PATH may be a version manager's shell
    script, which takes 100 ms to start the interpreter.
    """
    own = executor.which(sys.executable) if isinstance(executor, LocalExecutor) else None
    return own or executor.which("python3")


_MARK = re.compile(r"\n! [^\n]*\n")  # A mark in the log, between the lines of the process


class Sampler:
    """One sampling process and the log of its output."""

    def __init__(self, directory: RunDirectory) -> None:
        self.samples: list[Sample] = []  # every complete sample so far
        self.problem = ""  # reason why sampling stopped; empty while it works
        self._directory = directory
        self._log = directory.folder.samples
        self._errors = self._log.with_suffix(".stderr").name
        self._reader = SampleReader()
        self._process: Process | None = None

    def start(self, commands: Sequence[Sequence[str]], *, longest_s: float = 3600.0) -> None:
        """Start the first command that delivers a sample; set `problem` if none does.

        Args:
            commands: in order of preference.
            longest_s: time limit of the process, enforced even without a controller.
        """
        problem = "neither python3 nor sh was found"
        for argv in commands:
            self.problem = ""
            try:
                self._process = self._directory.start(
                    argv, stderr=self._errors, longest_s=longest_s
                )
            except TransportError as error:
                problem = error.message
                continue
            if self._delivers():
                return
            self.stop()
            problem = self._stderr().rpartition("\n")[2] or f"{argv[0]} printed no sample"
        self.problem = problem

    @property
    def expected_handle(self) -> str:
        """Handle of the first process to start; empty if it ends with the controller."""
        return self._directory.executor.handle_of(self._directory.path_of(self._errors))

    @property
    def handle(self) -> str:
        """Handle for a takeover of the process; empty without a process."""
        return "" if self._process is None else self._process.handle

    def take_over(self, process: Process | None) -> None:
        """Continue the log and the process of an earlier controller.

        Args:
            process: running or ended; output already in the log is skipped. None if there was no
                sampler.
        """
        text = self._log.read_text(encoding="utf-8") if self._log.exists() else ""
        self.samples += self._reader.feed(text)
        self._process = process
        if process is not None:
            process.skip_output(len(_MARK.sub("", text).encode()))

    def _delivers(self) -> bool:
        """Return whether the first sample arrives in time."""
        until = time.monotonic() + FIRST_SAMPLE_S
        while not self.samples and not self.problem and time.monotonic() < until:
            self.collect(wait_s=_POLL_S)
        return bool(self.samples)

    def collect(self, *, wait_s: float = 0.0) -> None:
        """Store the output since the last call, after waiting at most `wait_s` for the end."""
        if self._process is None:
            return
        ended = self._process.wait(wait_s) is not None
        self._keep(self._process.read_output())
        if ended:
            self._process = None
            self.problem = "the sampler ended early"

    def pause(self, seconds: float) -> Wait:
        """Return a wait for the end of the process."""
        return Wait(seconds, self._process)

    def mark(self, text: str) -> None:
        """Write an event between two samples."""
        self.collect()
        if self.samples:
            # The mark starts on a new line: a killed sampler may have left an incomplete line.
            self._keep(f"\n! {text}\n")

    def beside(self, on_output: Callable[[str, float], None]) -> Callable[[str, float], None]:
        """Return a listener of the measured process that also collects samples."""

        def report_and_collect(text: str, elapsed_s: float) -> None:
            self.collect()
            on_output(text, elapsed_s)

        return report_and_collect

    def stop(self) -> None:
        """End the process after one last sample; kill it if it does not end."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.signal(number)
            if self._process.wait(_LAST_SAMPLE_S) is not None:
                break
        self._keep(self._process.read_output())
        self._process = None

    def tidy(self) -> None:
        """Remove the sampler's standard error file when it is empty; a fetched one later."""
        if self._directory.is_here and not self._stderr():
            self._directory.executor.remove(self._directory.path_of(self._errors))

    def _stderr(self) -> str:
        path = self._directory.path_of(self._errors)
        return (self._directory.executor.read_text(path) or "").strip()

    def _keep(self, text: str) -> None:
        if not text:
            return
        self.samples += self._reader.feed(text)
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ArchiveError(
                f"{self._log} cannot be written: {error.strerror}",
                hint="check free space",
                path=str(self._log),
            ) from error


@contextmanager
def sampling(
    directory: RunDirectory,
    devices: Sequence[str],
    *,
    interval_s: float,
    life_s: float,
) -> Iterator[Sampler]:
    """Sample while the block runs, and end the sampler with it.

    Args:
        interval_s: seconds between samples; 0 for no sampling.
    """
    sampler = Sampler(directory)
    if interval_s <= 0:
        yield sampler
        return
    life_s += _LIFE_SLACK_S
    with ended_after(sampler):
        sampler.start(
            sampler_commands(directory.executor, devices, interval_s=interval_s, life_s=life_s),
            longest_s=life_s,
        )
        yield sampler


@contextmanager
def ended_after(sampler: Sampler) -> Iterator[None]:
    """End a sampler with the block, unless the measured process outlives the controller."""
    try:
        yield
    except BaseException as error:
        if not continues_after(sampler.handle, error):
            sampler.stop()
            sampler.tidy()
        raise
    sampler.stop()
    sampler.tidy()
