"""Block devices written by runs: held from the guard's check to the end of the run.

The first and last MiB are recorded at the end of a run and compared before the next run. They count
as unknown while a run writes, and after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

from volbench.engine.guard.scratch_files import Log
from volbench.engine.hosts.described_volumes import parse_answer
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor, HeldDevice
from volbench.fio.jobs.render_job import writes
from volbench.model.campaign.planned_run import Run


@dataclass(frozen=True)
class OpenDevice:
    """Result of opening a device for the guard."""

    # the open device; None if there is nothing to hold, or the open failed
    held: HeldDevice | None = None
    # digest of its first and last MiB after volbench's last write, empty if unknown; None to skip
    # the check of its content
    edges: str | None = None
    refusal: RefusedError | None = None  # reason of a failed open
    is_shared: bool = False  # another client of the campaign writes to it


@dataclass
class _Use:
    """A device in use by the runs of one or more clients."""

    held: HeldDevice | None  # None on another machine
    count: int = 0
    is_written: bool = False
    is_unknown: bool = False


class HeldDevices:
    """Devices of a campaign on one machine, shared by its clients."""

    def __init__(self, executor: Executor, log: Log, edges: Mapping[str, str]) -> None:
        self._executor = executor
        self._log = log
        self._edges = dict(edges)
        self._uses: dict[str, _Use] = {}
        self._lock = RLock()

    @contextmanager
    def holding(self, run: Run) -> Iterator[OpenDevice]:
        """Hold the device that a run writes; a read-only run holds none.

        On another machine the run's own program holds it.
        When the last run on a device ends, its first and last MiB are recorded.
        """
        number = number_of(run)
        if not number or not writes(run):
            yield OpenDevice()
            return
        try:
            opened = self._open(number, run)
        except RefusedError as refusal:
            # The guard gives a more precise reason: mounted, swap, RAID member.
            yield OpenDevice(edges=self._expected(number, run), refusal=refusal)
            return
        try:
            yield opened
        except BaseException:
            self._uses[number].is_unknown = True
            raise
        finally:
            self._release(number, run)

    def _open(self, number: str, run: Run) -> OpenDevice:
        with self._lock:
            use = self._uses.get(number)
            if use is None:
                is_remote = bool(self._executor.handle_of("stderr"))
                hold = self._executor.hold
                use = _Use(None if is_remote else hold(run.volume.target, exclusive=True))
                self._uses[number] = use
            use.count += 1
            # While another client writes, the content cannot be verified.
            is_shared = use.count > 1
            edges = None if is_shared else self._expected(number, run)
            return OpenDevice(use.held, edges, is_shared=is_shared)

    def _expected(self, number: str, run: Run) -> str:
        return self._edges.get(number, run.volume.pin.edges if run.volume.pin else "")

    def begin(self, run: Run) -> None:
        """Record that a run is about to write: the content is unknown until it ends."""
        number = number_of(run)
        with self._lock:
            use = self._uses.get(number)
            if use is None:
                return
            use.is_written = True
            use.is_unknown |= _trims(run)
            self._record(number, "")

    def _release(self, number: str, run: Run) -> None:
        with self._lock:
            use = self._uses[number]
            use.count -= 1
            if use.count:
                return
            del self._uses[number]
            try:
                if use.is_written and not use.is_unknown and run.volume.pin is not None:
                    self._record(number, self._digest(use, run, run.volume.pin.size_bytes))
            finally:
                if use.held is not None:
                    use.held.close()

    def _digest(self, use: _Use, run: Run, size_bytes: int) -> str:
        """Return the digest of the first and last MiB; empty if they cannot be read."""
        if use.held is not None:
            return use.held.digest(size_bytes)
        path = run.volume.target
        answer = self._executor.ask("edges_digest", path=path, size_bytes=size_bytes)
        return parse_answer(str, answer, host=self._executor.host)

    def _record(self, number: str, digest: str) -> None:
        if self._edges.get(number) != digest:
            self._edges[number] = digest
            self._log.write("edges", host=self._executor.host, target=number, digest=digest)


def number_of(run: Run) -> str:
    """Return the number of a run's device; empty for other volumes."""
    pin = run.volume.pin
    return f"{pin.major}:{pin.minor}" if pin is not None else ""


def _trims(run: Run) -> bool:
    """Return whether a run trims: the content of trimmed blocks is undefined."""
    options = (run.effective(section) for section in run.sections)
    return any("trim" in names.get("rw", "") or "trim_percentage" in names for names in options)
