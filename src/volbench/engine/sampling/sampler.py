"""A Run's surroundings in, ``device.log`` out: the host's own counters, looked at beside the Run.

One process on the target copies lines of /proc: Python where it is, else a POSIX shell. What it
prints is kept as it is, with marks of when the measured process started and ended.
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files

from volbench.analyse.device.kernel_counters import Sample, SampleReader
from volbench.engine.run.process_watch import goes_on
from volbench.engine.run.run_directory import RunDirectory
from volbench.errors import ArchiveError, TransportError
from volbench.execute.protocol import Executor, Process

FIRST_SAMPLE_S = 5.0
"""How long each of the two programs is given to deliver its first sample."""

_LAST_SAMPLE_S = 2.0
_POLL_S = 0.02
_LIFE_SLACK_S = 600.0
"""How much longer than the Run's deadline the sampler lives when nobody ends it."""
_MOST_LIFE_S = 30 * 86400.0
"""It ends after a month beside a Run without a deadline, such as the replay of a log."""


def sampler_commands(
    executor: Executor, devices: Sequence[str], *, interval_s: float, life_s: float
) -> list[list[str]]:
    """Return what can be started to sample, the cheaper first.

    Args:
        executor: the machine.
        devices: kernel names of the block devices to look at.
        interval_s: seconds between samples.
        life_s: seconds after which the process ends whatever happens.
    """
    source = files("volbench.engine.sampling")
    arguments = [f"{interval_s:.2f}", f"{math.ceil(min(life_s, _MOST_LIFE_S))}", *devices]
    commands = []
    if (python := executor.which("python3")) is not None:
        script = source.joinpath("proc_sampler.py").read_text(encoding="utf-8")
        commands.append([python, "-I", "-S", "-c", script, *arguments])
    if (shell := executor.which("sh")) is not None:
        script = source.joinpath("sample.sh").read_text(encoding="utf-8")
        commands.append([shell, "-c", script, "sample", *arguments])
    return commands


_MARK = re.compile(r"\n! [^\n]*\n")
"""A mark as it stands in the log, between what the process printed."""


def _mark(text: str) -> str:
    return f"\n! {text}\n"


class Sampler:
    """One sampling process and the log of what it printed.

    Args:
        place: of the Run beside which it samples.

    Attributes:
        samples: every whole sample so far.
        problem: why nothing more comes; empty while all is well.
    """

    def __init__(self, place: RunDirectory) -> None:
        self.samples: list[Sample] = []
        self.problem = ""
        self._place = place
        self._log = place.folder.samples
        self._errors = self._log.with_suffix(".stderr").name
        self._reader = SampleReader()
        self._process: Process | None = None

    def start(self, commands: Sequence[Sequence[str]], *, longest_s: float = 3600.0) -> None:
        """Start the first command that delivers a sample; `problem` tells when none does.

        Args:
            commands: the one to prefer first.
            longest_s: it ends after this time whatever becomes of the controller.
        """
        problem = "neither python3 nor sh is there"
        for argv in commands:
            self.problem = ""
            try:
                self._process = self._place.start(argv, stderr=self._errors, longest_s=longest_s)
            except TransportError as error:
                problem = error.message
                continue
            if self._delivers():
                return
            self.stop()
            problem = self._said().rpartition("\n")[2] or f"{argv[0]} printed no sample"
        self.problem = problem

    @property
    def expected_handle(self) -> str:
        """What will find the first process that is started; empty when it ends with us."""
        return self._place.executor.handle_of(self._place.place_of(self._errors))

    @property
    def handle(self) -> str:
        """What finds the process again; empty without one."""
        return "" if self._process is None else self._process.handle

    def take_over(self, process: Process | None) -> None:
        """Go on with a log that an earlier controller began, and with its process.

        Args:
            process: which goes on, or has ended; it tells only what is not in the log yet. None
                when there was none.
        """
        text = self._log.read_text(encoding="utf-8") if self._log.exists() else ""
        self.samples += self._reader.feed(text)
        self._process = process
        if process is not None:
            process.skip_output(len(_MARK.sub("", text).encode()))

    def _delivers(self) -> bool:
        """Tell whether a sample comes, soon."""
        until = time.monotonic() + FIRST_SAMPLE_S
        while not self.samples and not self.problem and time.monotonic() < until:
            self.collect(wait_s=_POLL_S)
        return bool(self.samples)

    def collect(self, *, wait_s: float = 0.0) -> None:
        """Keep what was printed since the last call, or is within a time."""
        if self._process is None:
            return
        ended = self._process.wait(wait_s) is not None
        self._keep(self._process.read_output())
        if ended:
            self._process = None
            self.problem = "the sampler ended early"

    def mark(self, text: str) -> None:
        """Note an event between two samples."""
        self.collect()
        if self.samples:
            # What a killed sampler left unfinished must not swallow the mark.
            self._keep(_mark(text))

    def beside(self, tell: Callable[[str, float], None]) -> Callable[[str, float], None]:
        """Return a listener of the measured process that also collects samples."""

        def tell_and_collect(text: str, elapsed_s: float) -> None:
            self.collect()
            tell(text, elapsed_s)

        return tell_and_collect

    def stop(self) -> None:
        """End the process after one last sample; one that does not obey is killed."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.signal(number)
            if self._process.wait(_LAST_SAMPLE_S) is not None:
                break
        self._keep(self._process.read_output())
        self._process = None

    def tidy(self) -> None:
        """Remove the file for the sampler's complaints when there are none."""
        if self._said() == "":
            self._place.executor.remove(self._place.place_of(self._errors))

    def _said(self) -> str:
        """Return its complaints."""
        path = self._place.place_of(self._errors)
        return (self._place.executor.read_text(path) or "").strip()

    def _keep(self, text: str) -> None:
        if not text:
            return
        self.samples += self._reader.feed(text)
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ArchiveError(
                f"{self._log} can't be written: {error.strerror}",
                hint="check free space",
                context={"path": str(self._log)},
            ) from error


@contextmanager
def sampling(
    place: RunDirectory,
    devices: Sequence[str],
    *,
    interval_s: float,
    life_s: float,
) -> Iterator[Sampler]:
    """Sample for the length of the block; nothing is left behind whatever happens in it.

    Args:
        place: of the Run.
        devices: kernel names of the block devices to look at.
        interval_s: seconds between samples; 0 to leave it.
        life_s: seconds the block may take at most.
    """
    sampler = Sampler(place)
    if interval_s <= 0:
        yield sampler
        return
    life_s += _LIFE_SLACK_S
    with ended_after(sampler):
        sampler.start(
            sampler_commands(place.executor, devices, interval_s=interval_s, life_s=life_s),
            longest_s=life_s,
        )
        yield sampler


@contextmanager
def ended_after(sampler: Sampler) -> Iterator[None]:
    """End a sampler with the block, unless the measured process goes on without us."""
    try:
        yield
    except BaseException as error:
        if not goes_on(sampler.handle, error):
            sampler.stop()
            sampler.tidy()
        raise
    sampler.stop()
    sampler.tidy()
