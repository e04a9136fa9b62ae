"""Recordings of a loop device whose I/Os are known, from the kernel's own events."""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import subprocess
import time
import zlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from tests.command_line import COMMAND, call
from tests.extensions.watching.loaded import LONGEST, loaded
from tests.extensions.watching.two_machines import tell_hosts_apart
from tests.loopback_fleet import loopback_fleet
from tests.waiting import Started, until
from volbench.errors import ArchiveError, ConnectError, InputError, RefusedError, TransportError
from volbench.execute.agent.observation import request_recorder
from volbench.execute.agent.observation.request_recorder import (
    end_recording,
    find_tracefs,
    record_requests,
)
from volbench.execute.channels import connection_lost
from volbench.execute.local import LocalExecutor
from volbench.extensions.traces import trace_file
from volbench.extensions.traces.recorder import Recorder, check_recordable, recorded
from volbench.extensions.traces.trace_file import (
    Flags,
    Kind,
    parts_of,
    read_batches,
    read_facts,
    read_span,
)

pytestmark = [pytest.mark.root, pytest.mark.real_time]

READS, WRITES = 90, 40


def load(device: str) -> None:
    """Read and write a device past the page cache, and flush it."""
    copies = (
        (f"if={device}", "of=/dev/null", "bs=64k", f"count={READS}", "iflag=direct"),
        ("if=/dev/zero", f"of={device}", "bs=4k", f"count={WRITES}", "oflag=direct", "seek=100"),
    )
    for copy in copies:
        subprocess.run(["dd", *copy], check=True, capture_output=True, timeout=60)


def rows_in(folder: Path) -> list[dict[str, object]]:
    """Return the rows of the trace in a folder that the load made."""
    rows = pa.Table.from_batches(list(read_batches(folder / "trace.parquet"))).to_pylist()
    return [row for row in rows if row["process"] == "dd"]


def test_every_io_is_recorded_as_it_was_made(loop: str, tmp_path: Path) -> None:
    """Offset, size, direction, process, queue and latency of each I/O are those of the load."""
    notes: list[str] = []
    with recorded(tmp_path, [(Path(loop).name,)], notes.append, is_anonymised=False):
        load(loop)
        time.sleep(1)
    rows = rows_in(tmp_path)
    last_ns, _ = read_span(tmp_path / "trace.parquet")
    assert 1e9 * read_facts(tmp_path / "trace.parquet").duration_s > last_ns + 9e8
    reads = [row for row in rows if row["kind"] == Kind.READ]
    writes = [row for row in rows if row["kind"] == Kind.WRITE]
    assert [row["offset_bytes"] for row in reads] == [65536 * n for n in range(READS)]
    assert {row["size_bytes"] for row in reads} == {65536}
    assert [row["offset_bytes"] for row in writes] == [4096 * (100 + n) for n in range(WRITES)]
    assert {row["size_bytes"] for row in writes} == {4096}
    assert all(int(str(row["flags"])) & Flags.SYNC for row in writes)
    assert all(0 < int(str(row["latency_ns"])) < 10**9 for row in rows)
    assert all(int(str(row["queue"])) >= 0 for row in rows)
    assert {row["device"] for row in rows} == {Path(loop).name}
    facts = read_facts(tmp_path / "trace.parquet")
    assert facts.lost_events == 0
    assert facts.device_bytes == {Path(loop).name: 16 << 20}
    assert "no events lost" in notes[0]
    assert not Path(find_tracefs(), "instances", f"volbench-{os.getpid()}").exists()


def test_recording_may_end_right_after_it_began(loop: str) -> None:
    """A busy machine may let the end overtake what follows the first part."""
    parts = record_requests([[Path(loop).name]], is_packed=False)
    next(parts)
    end_recording()
    assert [*islice(parts, 50)][-1] == {"lost": 0}


def test_lost_events_are_counted(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A buffer that is too small loses events, which the facts and the note state."""
    monkeypatch.setattr(request_recorder, "_BUFFER_KB", 8)
    monkeypatch.setattr(request_recorder, "_POLL_S", 5.0)
    notes: list[str] = []
    with recorded(tmp_path, [(Path(loop).name,)], notes.append, is_anonymised=False):
        for _ in range(10):
            load(loop)
    lost = read_facts(tmp_path / "trace.parquet").lost_events
    assert lost > 0
    assert f"{lost:,} events lost" in notes[0]
    assert 0 < len(rows_in(tmp_path)) < 10 * (READS + WRITES)


def test_a_watch_records_and_the_trace_is_shown(loop: str, tmp_path: Path) -> None:
    """`watch --trace` leaves a trace in the campaign, also on SIGTERM; verbs can read it."""
    with Started(
        [
            *COMMAND,
            "watch",
            loop,
            "--trace",
            "--anonymise",
            "--every",
            "200ms",
            "-o",
            tmp_path / "w",
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stderr is not None
        assert "Press Ctrl-C" in watch.stderr.readline()  # it records by now
        load(loop)
        assert "1 disk, " in watch.stderr.readline()  # it has two samples by now
        watch.send_signal(signal.SIGTERM)
        _, told = watch.communicate(timeout=60)
    assert watch.returncode == 0, told
    assert "I/Os, no events lost" in told
    shown = call("trace", "show", tmp_path / "w", "--json")
    assert shown.returncode == 0, shown.stderr
    ios = {row["kind"]: row["ios"] for row in json.loads(shown.stdout)}
    assert ios["read"] >= READS
    assert ios["write"] >= WRITES
    assert "anonymised" in shown.stderr
    assert Path(loop).name not in shown.stdout
    assert call("check", "--files", tmp_path / "w").returncode == 0
    for name in ("trace.parquet", "campaign.json"):
        file = tmp_path / "w" / name
        before = file.read_bytes()
        file.write_bytes(before + b"\n")
        found = call("check", "--files", tmp_path / "w")
        assert (found.returncode, name in found.stdout) == (7, True), found
        file.write_bytes(before)
    (tmp_path / "w" / "trace-b").mkdir()
    (tmp_path / "w" / "trace-b" / "trace.parquet").write_bytes(b"")
    found = call("check", "--files", tmp_path / "w")
    assert (found.returncode, "trace-b/trace.parquet" in found.stdout) == (7, True), found


def test_what_a_killed_recording_left_is_kept_and_removed(loop: str, tmp_path: Path) -> None:
    """The next recording removes the instance; the parts can be imported as a trace."""
    code = (
        "import sys, time; from pathlib import Path;"
        "from volbench.extensions.traces import trace_file;"
        "trace_file._PART_S = 0.2; from volbench.extensions.traces.recorder import Recorder;"
        "Recorder(Path(sys.argv[1]), [(sys.argv[2],)], is_anonymised=False);"
        "print(flush=True); time.sleep(60)"
    )
    command = [COMMAND[0], "-c", code, str(tmp_path), Path(loop).name]
    with Started(command, stdout=subprocess.PIPE) as recording:
        assert recording.stdout is not None
        recording.stdout.readline()
        load(loop)
        until(lambda: any((tmp_path / "trace-parts").glob("*.parquet")))
        recording.kill()
    left = Path(find_tracefs(), "instances", f"volbench-{recording.pid}")
    assert left.is_dir()
    refused = call("trace", "show", tmp_path)
    assert refused.returncode == 2
    assert "ended before its trace was written" in refused.stderr
    (tmp_path / "next").mkdir()
    with recorded(tmp_path / "next", [(Path(loop).name,)], print, is_anonymised=False):
        assert not left.exists()
    done = call("trace", "import", tmp_path, "-o", tmp_path / "kept.parquet")
    assert done.returncode == 0, done.stderr
    kept = pa.Table.from_batches(list(read_batches(tmp_path / "kept.parquet")))
    assert "dd" in kept["process"].to_pylist()


def test_what_cannot_be_recorded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users other than root, and devices without requests, are refused in words."""
    with pytest.raises(InputError, match="no requests can be recorded"):
        check_recordable(LocalExecutor(), [("ram-none",)])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RefusedError, match="only root"):
        check_recordable(LocalExecutor(), [("ram-none",)])


def test_each_host_has_a_trace_of_its_own(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of its name, which verbs of traces read."""
    tell_hosts_apart(monkeypatch)
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        options = ("--trace", "-o", tmp_path / "w", "--inventory", fleet.inventory)
        with loaded(tmp_path / "w", lambda: load(loop), logs=2):
            done = call("watch", loop, *LONGEST, *options)
    assert done.returncode == 0, done.stderr
    for name in ("vm0", "vm1"):
        assert len(rows_in(tmp_path / "w" / f"trace-{name}")) == READS + WRITES
        shown = call("trace", "show", tmp_path / "w" / f"trace-{name}")
        assert shown.returncode == 0, shown.stderr


class Host(LocalExecutor):
    """A host that sends what it wants."""

    def __init__(self, *parts: object) -> None:
        super().__init__("vm0")
        self.parts = parts

    def stream(self, operation: str, take: Callable[[object], None], **_: object) -> None:
        """Send the parts."""
        assert operation == "record_requests"
        for part in self.parts:
            take(part)


FORMAT = "ID: 7\nfield:dev_t dev; offset:8; size:{size}; signed:0;\n"
BEGUN = {
    "formats": [FORMAT.format(size=4)] * 2,
    "disks": {"sda": ["8:0", 100]},
    "page_bytes": 4096,
    "start_ns": 1,
}


@pytest.mark.parametrize(
    "parts",
    [
        ({**BEGUN, "page_bytes": 1 << 30},),
        ({**BEGUN, "formats": ["x", "y"]},),
        ({**BEGUN, "formats": [FORMAT.format(size=1 << 40)] * 2},),
        ({**BEGUN, "disks": {"sda": 8}},),
        (),
    ],
)
def test_a_host_that_sends_nonsense_is_named(tmp_path: Path, parts: tuple[object, ...]) -> None:
    """Before there is a trace."""
    with (
        pytest.raises(TransportError, match="events of vm0 cannot be read"),
        recorded(tmp_path, [("sda",)], print, is_anonymised=False, executor=Host(*parts)),
    ):
        pass
    assert not (tmp_path / "trace.parquet").exists()


class Link(LocalExecutor):
    """A connection that can be cut."""

    is_cut = has_ended = False
    rounds = 0  # in which the buffers of all CPUs were read

    def stream(
        self,
        operation: str,
        take: Callable[[object], None],
        *,
        within_s: float,
        **arguments: object,
    ) -> None:
        """Pass parts on until the connection is cut."""

        def checked(part: object) -> None:
            if self.is_cut:
                raise connection_lost("vm0", "", sent=True)
            take(part)
            self.rounds += part == {"is_read": True}

        try:
            super().stream(operation, checked, within_s=within_s, **arguments)
        finally:
            self.has_ended = True


def test_what_arrived_before_the_connection_broke_is_kept(loop: str, tmp_path: Path) -> None:
    """The trace and the error say when it ended, and not that no events were lost."""
    link = Link("vm0")
    recorder = Recorder(tmp_path, [(Path(loop).name,)], is_anonymised=False, executor=link)
    load(loop)
    read = link.rounds + 2
    until(lambda: link.rounds >= read)
    link.is_cut = True
    until(lambda: link.has_ended)
    with pytest.raises(ConnectError) as failed:
        recorder.stop()
    assert "vm0 was lost; the recording ended after" in failed.value.message
    assert failed.value.hint.endswith(f"volbench trace show {tmp_path}")
    assert len(rows_in(tmp_path)) >= READS + WRITES
    shown = call("trace", "show", tmp_path)
    assert "ended early, so the number of lost events is unknown" in shown.stdout


def test_a_full_disk_leaves_what_was_saved(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint says how to import it."""
    monkeypatch.setattr(trace_file, "PART_ROWS", 1)
    recorder = Recorder(tmp_path, [(Path(loop).name,)], is_anonymised=False)
    load(loop)
    until(lambda: parts_of(tmp_path))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(trace_file, "replaced_file", full)
    with pytest.raises(ArchiveError) as failed:
        recorder.stop()
    assert f"volbench trace import {tmp_path} -o trace.parquet" in failed.value.hint
    assert parts_of(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        {"cpu": 0, "pages": "no base64 %"},
        {"cpu": 0, "pages": base64.b64encode(zlib.compress(b"1")).decode()},
        {"cpu": 0, "pages": base64.b64encode(b"plain").decode()},
        {"cpu": 0, "pages": 7},
        {"cpu": "x", "pages": ""},
        BEGUN,
    ],
)
def test_damaged_events_of_a_host_are_no_trace(tmp_path: Path, part: object) -> None:
    """Told in the end, with the name of the host."""
    host = Host(BEGUN, part)
    with (
        pytest.raises(TransportError, match="events of vm0 cannot be read"),
        recorded(tmp_path, [("sda",)], print, is_anonymised=False, executor=host),
    ):
        pass
    assert not (tmp_path / "trace.parquet").exists()
