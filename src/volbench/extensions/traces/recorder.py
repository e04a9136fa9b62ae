"""Recorder of block requests: a host's agent reads the kernel's events, this machine keeps them.

Nothing is written on the host. Events that find the buffer of their CPU full are lost; the kernel
counts them.
"""

from __future__ import annotations

import base64
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from volbench.errors import (
    ArchiveError,
    InputError,
    RefusedError,
    TransportError,
    VolbenchError,
    quoted,
)
from volbench.execute.agent.observation.request_recorder import PAGES
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor, OperationError
from volbench.extensions.traces.anonymiser import Anonymiser
from volbench.extensions.traces.request_pairs import (
    COMPLETION,
    ISSUE,
    RequestPairs,
    completions_of,
    device_number,
    issues_of,
)
from volbench.extensions.traces.ring_pages import EventFormat, events_of
from volbench.extensions.traces.trace_file import TraceFacts, TraceWriter, parts_of, row_count
from volbench.store.journal import utc_now
from volbench.store.layout import TRACE
from volbench.units import SECTOR_BYTES, format_duration

_SILENCE_S = 30.0  # Of a host that reads its buffers ten times a second
_MAX_PAGE_BYTES = 1 << 16  # Of a kernel with pages of 64 KiB
_MAX_FIELD_BYTES = 64  # Of an event: names of processes have 16
_DAMAGED = (ValueError, KeyError, IndexError, TypeError, OverflowError, zlib.error)
_HINTS = {
    "denied": "run volbench watch --trace as root; for hosts, log in as root or set sudo: yes",
    "missing": "it needs tracefs and the events of block devices (CONFIG_BLK_DEV_IO_TRACE); in a "
    "container, record on the host",
    "failed": "check free memory (16 MiB per CPU) and that tracefs is writable",
}


def check_recordable(executor: Executor, devices: Sequence[Sequence[str]]) -> None:
    """Check that requests of devices can be recorded.

    Args:
        devices: kernel names of each device, and of those below it.

    Raises:
        RefusedError: the user may not record there, or the kernel cannot.
        InputError: no device has requests.
    """
    try:
        executor.ask("recordable_disks", stacks=[[*stack] for stack in devices])
    except OperationError as error:
        raise _explained(error, executor) from error


def _explained(error: OperationError, executor: Executor) -> VolbenchError:
    where = f" on {executor.host}" if executor.is_remote else ""
    if error.kind == "refused":
        return InputError(
            f"{error.reason}: no requests can be recorded{where}",
            hint="name a disk: lsblk -s shows the disks below",
        )
    if error.kind not in _HINTS:
        return error
    return RefusedError(f"I/Os cannot be recorded{where}: {error.reason}", hint=_HINTS[error.kind])


class Recorder:
    """A recording that is under way, in a thread of its own until `stop`."""

    def __init__(
        self,
        folder: Path,
        devices: Sequence[Sequence[str]],
        *,
        is_anonymised: bool,
        executor: Executor | None = None,
    ) -> None:
        self._folder = folder
        self._executor = executor or LocalExecutor()
        self._is_anonymised = is_anonymised
        self._lost = 0
        self._is_nonsense = False  # whether the host sent what no kernel does
        self._error: Exception | None = None
        self._facts: TraceFacts | None = None
        self._issues: list[npt.NDArray[Any]] = []
        self._completions: list[npt.NDArray[Any]] = []
        self._begun = threading.Event()
        stacks = [[*stack] for stack in devices]
        self._thread = threading.Thread(target=self._follow, args=(stacks,), daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._facts is None:
            self._thread.join()
            raise self._error or self._malformed("")

    def _follow(self, stacks: list[list[str]]) -> None:
        try:
            self._executor.stream(
                "record_requests",
                self._take,
                within_s=_SILENCE_S,
                stacks=stacks,
                is_packed=self._executor.is_remote,
            )
        except OperationError as error:
            self._error = _explained(error, self._executor)
        except Exception as error:  # noqa: BLE001 - raised again in the thread of the verb
            self._error = error
        finally:
            self._begun.set()

    def _take(self, part: object) -> None:
        try:
            match part:
                case {
                    "formats": formats,
                    "disks": disks,
                    "page_bytes": page,
                    "start_ns": start,
                } if self._facts is None:
                    self._begin(formats, disks, int(page), int(start))
                case {"cpu": int(cpu), "pages": pages} if self._facts is not None:
                    events = events_of(self._unpacked(pages))
                    self._issues.append(issues_of(events, self._formats[0], cpu))
                    self._completions.append(completions_of(events, self._formats[1]))
                case {"is_read": True} if self._facts is not None:
                    issues = np.concatenate([np.zeros(0, ISSUE), *self._issues])
                    ended = np.concatenate([np.zeros(0, COMPLETION), *self._completions])
                    self._writer.add(self._pairs.add(issues, ended))
                    self._issues, self._completions = [], []
                    self._read_s = time.monotonic()
                case {"lost": int(lost)}:
                    self._lost = lost
                case None:
                    pass
                case _:
                    raise self._malformed(part)
        except _DAMAGED as error:
            raise self._malformed(part) from error

    def _malformed(self, part: object) -> VolbenchError:
        self._is_nonsense = True
        return TransportError(
            f"events of {self._executor.host} cannot be read: {repr(part)[:80]}",
            hint="check that its kernel is a 64-bit one; otherwise, do not trust this host",
        )

    def _unpacked(self, pages: object) -> npt.NDArray[Any]:
        """Return pages as uint8 of shape (pages, bytes of a page)."""
        if isinstance(pages, str):
            most = PAGES * self._page_bytes
            pages = zlib.decompressobj().decompress(base64.b64decode(pages), most)
        content: npt.NDArray[Any] = np.frombuffer(pages, np.uint8)  # type: ignore[call-overload]  # what a host sends
        return content.reshape(-1, self._page_bytes)

    def _begin(
        self, formats: Sequence[str], disks: Mapping[str, Sequence[Any]], page: int, start_ns: int
    ) -> None:
        """Open the trace."""
        self._formats = [EventFormat.parse(text) for text in formats]
        sizes = [size for each in self._formats for size in each.sizes.values()]
        if not 0 < page <= _MAX_PAGE_BYTES or max(sizes) > _MAX_FIELD_BYTES:
            raise self._malformed(formats)
        self._page_bytes = page
        self._pairs = RequestPairs({device_number(disks[name][0]): name for name in disks})
        self._pairs.start_ns, self._began_s = start_ns, time.monotonic()
        self._read_s = self._began_s  # when the events of all CPUs had arrived
        sectors = {name: int(size) for name, (_, size) in disks.items()}
        facts = TraceFacts(
            source="tracefs",
            start_utc=utc_now(),
            device_bytes={name: count * SECTOR_BYTES for name, count in sectors.items()},
        )
        self._writer: TraceWriter = TraceWriter(self._folder / TRACE, facts)
        self._facts = facts
        self._begun.set()

    def stop(self) -> TraceFacts:
        """End the recording, write the trace, and remove what it needed on the host.

        Raises:
            VolbenchError: the recording failed; the trace has what arrived before that.
        """
        assert self._facts is not None  # noqa: S101 - for the type checker
        duration_s = time.monotonic() - self._began_s
        if self._thread.is_alive():
            try:
                self._executor.ask("end_recording")
            except VolbenchError as error:
                self._error = error
        self._thread.join()
        if self._is_nonsense or not isinstance(self._error, VolbenchError | None):
            raise self._error or self._malformed("")
        if self._error is not None:
            duration_s = self._read_s - self._began_s
        facts = self._facts.model_copy(
            update={
                "lost_events": self._lost,
                "duration_s": round(duration_s, 3),
                "ended_early": self._error is not None,
            }
        )
        self._write(facts)
        if self._error is not None:
            after = format_duration(duration_s)
            self._error.message += f"; the recording ended after {after}"
            self._error.hint = (
                f"the I/Os until then are in the trace: volbench trace show {quoted(self._folder)}"
            )
            raise self._error
        return facts

    def _write(self, facts: TraceFacts) -> None:
        """Write the trace."""
        change = None
        if self._is_anonymised:
            anonymiser = Anonymiser(facts.device_bytes)
            facts, change = anonymiser.facts(facts), anonymiser.rows
        try:
            self._writer.add(self._pairs.rest())
            self._writer.close(facts, change)
        except ArchiveError as error:
            if parts_of(self._folder):
                error.hint = (
                    "make room on the disk, then import the I/Os that were saved: "
                    f"volbench trace import {quoted(self._folder)} -o trace.parquet"
                )
            raise


@contextmanager
def recorded(
    folder: Path,
    devices: Sequence[Sequence[str]],
    tell: Callable[[str], None],
    *,
    is_anonymised: bool,
    executor: Executor | None = None,
) -> Iterator[None]:
    """Record all requests of devices while the block runs, into ``trace.parquet`` in a folder.

    Args:
        tell: called in the end with a sentence on the trace.
        executor: of their host; None for this machine.
    """
    recorder = Recorder(folder, devices, is_anonymised=is_anonymised, executor=executor)
    try:
        yield
    finally:
        facts = recorder.stop()
        count = row_count(folder / TRACE)
        tell(f"trace: {folder / TRACE}, {count:,} I/Os, {lost_sentence(facts)}")


def lost_sentence(facts: TraceFacts) -> str:
    """Return how many events were lost, in words."""
    if facts.ended_early:
        return "ended early, so the number of lost events is unknown"
    return f"{facts.lost_events:,} events lost" if facts.lost_events else "no events lost"
