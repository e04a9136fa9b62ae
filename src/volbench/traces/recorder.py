"""Recorder of block requests from tracefs, in an instance with buffers of its own.

Raw pages of the buffers are read ten times a second. Events that find the buffer of their CPU full
are lost; the kernel counts them. Nothing is written to the devices.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from volbench.errors import InputError, RefusedError
from volbench.store.journal import utc_now
from volbench.traces.anonymiser import Anonymiser
from volbench.traces.request_pairs import (
    RequestPairs,
    completions_of,
    device_number,
    issues_of,
)
from volbench.traces.ring_pages import EventFormat, events_of
from volbench.traces.trace_file import FILE_NAME, TraceFacts, TraceWriter, row_count
from volbench.units import SECTOR_BYTES

_TRACEFS = Path("/sys/kernel/tracing")
_PREFIX = "volbench-"
_EVENTS = ("block_rq_issue", "block_rq_complete")
# Per CPU: the events of a second at 100,000 IOPS. Noticed by: benchmarks/trace.py
_BUFFER_KB = 16 << 10
_MAX_BUFFERS_KB = 512 << 10  # of all CPUs. A trade-off: memory against lost events
# Between two reads of the buffers: a tenth of the time that they last. Noticed by:
# benchmarks/trace.py
_POLL_S = 0.1
# Pages that are read at once: 4 MB, enough that numpy costs little a page. Noticed by:
# benchmarks/trace.py
_PAGES = 1 << 10
_SYS = Path("/sys/class/block")


def find_tracefs() -> Path:
    """Return the root of tracefs; mount it if it is not.

    Raises:
        RefusedError: this user may not record, or the kernel cannot.
    """
    if os.geteuid():
        raise RefusedError("only root can record I/Os", hint="run volbench watch --trace as root")
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[2] == "tracefs":
            return Path(fields[1])
    mounted = subprocess.run(  # noqa: S603 - fixed words
        ["mount", "-t", "tracefs", "tracefs", str(_TRACEFS)],  # noqa: S607 - found on PATH
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode or not (_TRACEFS / "events/block/block_rq_issue").is_dir():
        raise RefusedError(
            f"this kernel cannot record I/Os: {mounted.stderr.strip() or 'no events'}",
            hint="it needs tracefs and the events of block devices (CONFIG_BLK_DEV_IO_TRACE); in a "
            "container, record on the host",
        )
    return _TRACEFS


def disks_of(stacks: Sequence[Sequence[str]]) -> dict[str, Path]:
    """Return the disks whose requests can be recorded, with their folders in sysfs.

    A partition stands for its disk, and a device without requests of its own, such as dm, for the
    disks below it.

    Args:
        stacks: kernel names of each device, and of those below it.

    Raises:
        InputError: none has requests.
    """
    found = {}
    for stack in stacks:
        folders = [(_SYS / name).resolve() for name in stack]
        disks = [path.parent if (path / "partition").exists() else path for path in folders]
        with_requests = [path for path in disks if (path / "mq").is_dir()]
        own = with_requests[:1] if with_requests[:1] == disks[:1] else with_requests
        found.update({path.name.replace("!", "/"): path for path in own})
    if not found:
        raise InputError(
            f"{', '.join(stack[0] for stack in stacks)}: no requests can be recorded",
            hint="name a disk: lsblk -s shows the disks below",
        )
    return found


def remove_left_instances(root: Path) -> None:
    """Remove the instances of recorders that were killed; those in use cannot be removed."""
    for folder in (root / "instances").glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX)
        if pid.isdecimal() and not Path("/proc", pid).exists():
            with suppress(OSError):  # in use by a process of another container
                folder.rmdir()


class Recorder:
    """A recording that is under way, in a thread of its own until `stop`."""

    def __init__(
        self, folder: Path, devices: Sequence[Sequence[str]], *, is_anonymised: bool
    ) -> None:
        self._root = find_tracefs()
        self._disks = disks_of(devices)
        self._is_anonymised = is_anonymised
        numbers = {
            device_number((path / "dev").read_text(encoding="ascii")): name
            for name, path in self._disks.items()
        }
        self._formats = [
            EventFormat.parse((self._root / f"events/block/{name}/format").read_text("utf-8"))
            for name in _EVENTS
        ]
        self._ending = threading.Event()
        self._error: Exception | None = None
        self._open = ExitStack()
        self._instance = self._made_instance(numbers)
        try:
            self._begin(folder, numbers)
        except BaseException:
            self._open.close()
            raise

    def _begin(self, folder: Path, numbers: Mapping[int, str]) -> None:
        """Open the buffers and the trace, and record from now on."""
        self._pipes = self._opened_pipes()
        size = int((self._instance / "buffer_subbuf_size_kb").read_text("ascii")) * 1024
        self._pages = np.zeros((_PAGES, size), np.uint8)
        self._pairs = RequestPairs(numbers)
        start_utc, self._pairs.start_ns = utc_now(), time.monotonic_ns()
        self._facts = TraceFacts(
            source="tracefs",
            start_utc=start_utc,
            device_bytes={
                name: int((path / "size").read_text("ascii")) * SECTOR_BYTES
                for name, path in self._disks.items()
            },
        )
        self._writer = TraceWriter(folder / FILE_NAME, self._facts)
        (self._instance / "tracing_on").write_text("1")
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> TraceFacts:
        """End the recording, write the trace, and remove the instance."""
        with self._open:
            (self._instance / "tracing_on").write_text("0")
            self._ending.set()
            self._thread.join()
            lost = self._lost()
        if self._error is not None:
            raise self._error
        self._writer.add(self._pairs.rest())
        facts = self._facts.model_copy(update={"lost_events": lost})
        change = None
        if self._is_anonymised:
            anonymiser = Anonymiser(facts.device_bytes)
            facts, change = anonymiser.facts(facts), anonymiser.rows
        self._writer.close(facts, change)
        return facts

    def _made_instance(self, numbers: Mapping[int, str]) -> Path:
        remove_left_instances(self._root)
        instance = self._root / "instances" / f"{_PREFIX}{os.getpid()}"
        buffer_kb = min(_BUFFER_KB, _MAX_BUFFERS_KB // (os.cpu_count() or 1))
        chosen = " || ".join(f"dev == {number}" for number in numbers)
        try:
            instance.mkdir()
            self._open.callback(instance.rmdir)
            for name, text in (
                ("tracing_on", "0"),
                ("trace_clock", "mono"),
                ("options/overwrite", "0"),
                ("buffer_size_kb", str(buffer_kb)),
                *((f"events/block/{event}/filter", chosen) for event in _EVENTS),
                *((f"events/block/{event}/enable", "1") for event in _EVENTS),
            ):
                (instance / name).write_text(text)
        except OSError as error:
            self._open.close()
            raise RefusedError(
                f"{instance} cannot be set up: {error.strerror or error}",
                hint="check free memory (16 MiB per CPU) and that tracefs is writable",
            ) from error
        return instance

    def _opened_pipes(self) -> list[tuple[int, int]]:
        """Return CPU and descriptor of each buffer."""
        pipes = []
        for folder in (self._instance / "per_cpu").glob("cpu*"):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(folder / "trace_pipe_raw", flags)
            self._open.callback(os.close, descriptor)
            pipes.append((int(folder.name.removeprefix("cpu")), descriptor))
        return pipes

    def _follow(self) -> None:
        try:
            while not self._ending.wait(_POLL_S):
                self._read()
            self._read()
        except Exception as error:  # noqa: BLE001 - raised again by `stop`, in the thread of the verb
            self._error = error

    def _read(self) -> None:
        """Read all buffers until they are empty."""
        is_more = True
        while is_more:
            is_more = False
            issues, completions = [], []
            for cpu, descriptor in self._pipes:
                count = self._filled(descriptor)
                is_more |= count == _PAGES
                events = events_of(self._pages[:count])
                issues.append(issues_of(events, self._formats[0], cpu))
                completions.append(completions_of(events, self._formats[1]))
            self._writer.add(self._pairs.add(np.concatenate(issues), np.concatenate(completions)))

    def _filled(self, descriptor: int) -> int:
        """Read pages of a buffer; return how many."""
        for count, page in enumerate(self._pages):
            try:
                if not os.readv(descriptor, [page.data]):
                    return count
            except BlockingIOError:
                return count
        return len(self._pages)

    def _lost(self) -> int:
        """Return the events that found their buffer full."""
        lost = 0
        for folder in (self._instance / "per_cpu").glob("cpu*"):
            for line in (folder / "stats").read_text("ascii").splitlines():
                name, _, value = line.partition(": ")
                if name in {"overrun", "dropped events", "commit overrun"}:
                    lost += int(value)
        return lost


@contextmanager
def recorded(
    folder: Path,
    devices: Sequence[Sequence[str]],
    tell: Callable[[str], None],
    *,
    is_anonymised: bool,
) -> Iterator[None]:
    """Record all requests of devices while the block runs, into ``trace.parquet`` in a folder.

    Args:
        tell: called in the end with a sentence on the trace.
    """
    recorder = Recorder(folder, devices, is_anonymised=is_anonymised)
    try:
        yield
    finally:
        facts = recorder.stop()
        count = row_count(folder / FILE_NAME)
        tell(f"trace: {folder / FILE_NAME}, {count:,} I/Os, {lost_sentence(facts)}")


def lost_sentence(facts: TraceFacts) -> str:
    """Return how many events were lost, in words."""
    return f"{facts.lost_events:,} events lost" if facts.lost_events else "no events lost"
