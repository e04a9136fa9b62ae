"""Bytes by process: what is recorded of a known load, and by whom it may be seen."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import volbench
from tests.command_line import call
from tests.extensions.watching.loaded import LONGEST, loaded
from tests.waiting import Started, until
from volbench.execute.agent.observation import process_io
from volbench.execute.agent.observation.process_io import sample_processes
from volbench.extensions.watching.disk_logs import WatchLog
from volbench.extensions.watching.live_table import top_lines
from volbench.ingest import watched_processes
from volbench.ingest.watched_processes import Interval, Process, parse_intervals, read_intervals
from volbench.present.tables.processes_table import processes_table
from volbench.present.tables.render_table import render_table
from volbench.store.layout import RunFolder

READS, BLOCK_BYTES = 100, 65536
BYTES = READS * BLOCK_BYTES
RAW_NAME = "a b\n.\nP 1"  # a process may call itself anything of 15 bytes
NAME = "a b . P 1"
READER = f"""
import mmap, os, sys
open("/proc/self/comm", "w").write({RAW_NAME!r})
print("named", flush=True)
sys.stdin.readline()
page, disk = mmap.mmap(-1, {BLOCK_BYTES}), os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
for block in range({READS}):
    os.preadv(disk, [page], block * {BLOCK_BYTES})
print("read", flush=True)
sys.stdin.readline()
"""
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def reader(loop: str) -> list[str]:
    """Return the command of a process that reads a known number of bytes past the page cache.

    It waits for a line before, and another one before it ends.
    """
    return [sys.executable, "-c", READER, loop]


def let_go(process: subprocess.Popen[str]) -> None:
    """Send a line to a process."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> str:
    """Return the next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at processes at each interval, whatever it costs on a busy machine."""
    monkeypatch.setattr(process_io, "_SHARE", 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_a_process_has_the_bytes_that_it_read(loop: str, tmp_path: Path) -> None:
    """Under its whole name, once, in frame, table and export; the name cannot forge a line."""
    log = tmp_path / "w/runs" / f"001-watch-r1-{Path(loop).name}" / "processes.log"
    with Started[str](reader(loop), **PIPES) as process:

        def looks() -> int:
            return log.read_text().count("P ") if log.exists() else 0

        def load() -> None:
            for word in ("named", "read"):
                assert heard(process) == word
                seen = looks()
                until(lambda seen=seen: looks() > seen + 1)  # type: ignore[misc]  # mypy cannot infer it
                let_go(process)

        with loaded(tmp_path / "w", load):
            done = call("watch", "--on", loop, *LONGEST, "--every", "200ms", "-o", tmp_path / "w")
    assert done.returncode == 0, done.stderr
    frame = volbench.open_campaign(tmp_path / "w").frame("processes")
    mine = frame[frame["process"] == NAME]
    assert mine["pid"].nunique() == 1
    assert BYTES <= mine["read_bytes"].sum() < 2 * BYTES  # and the pages of its libraries
    assert (mine["write_bytes"] == 0).all()
    assert (mine["read_bytes"] >= BYTES / 2).any()
    assert (frame["interval_s"] >= 1).all()
    shown = call("show", tmp_path / "w", "--processes", "--json")
    (row,) = [row for row in json.loads(shown.stdout) if row["process"] == NAME]
    assert row["read_bytes"] == mine["read_bytes"].sum()
    assert "on all disks of its host" in call("show", tmp_path / "w", "--processes").stdout
    assert "saturated" in call("show", tmp_path / "w").stdout
    lines = render_table(processes_table(frame), "table", width=80).splitlines()
    assert max(map(len, lines)) <= 80
    exported = call("export", tmp_path / "w", "--frame", "processes", "-o", tmp_path / "p.csv")
    assert exported.returncode == 0, exported.stderr
    assert str(BYTES)[:2] in (tmp_path / "p.csv").read_text()
    assert call("check", "--files", tmp_path / "w").returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_a_child_that_ended_counts_once(loop: str) -> None:
    """The kernel adds its counters to those of the parent that waited for it."""
    command = ["sh", "-c", '"$@"; read -r end', "sh", *reader(loop)]
    parts, found = sample_processes(0.3), list[Interval]()

    def look() -> None:
        count = len(found)
        while len(found) == count:
            found.extend(parse_intervals((next(parts) or "").splitlines()))

    with Started[str](command, **PIPES) as shell:
        assert heard(shell) == "named"
        look()
        let_go(shell)
        assert heard(shell) == "read"
        look()
        let_go(shell)
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        until(lambda: not children.read_text())
        look()
        let_go(shell)
    counts = [each for interval in found for each in interval.counts.items()]
    assert sum(read for process, (read, _, _) in counts if process.name == NAME) >= BYTES
    assert sum(read for process, (read, _, _) in counts if process.pid == shell.pid) < BYTES / 2


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_a_process_shorter_than_the_interval_counts_for_its_parent(loop: str) -> None:
    """Nobody has seen it, but its bytes are not lost."""
    parts = sample_processes(1.0)
    assert next(parts) is None  # it has looked once
    subprocess.run(reader(loop), check=True, stdin=subprocess.DEVNULL)
    (found,) = parse_intervals(next(filter(None, parts)).splitlines())
    own = {process.pid: counts for process, counts in found.counts.items()}
    assert own[os.getpid()][0] >= BYTES


def test_a_parent_that_did_not_wait_keeps_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that init reaped is not in the counters of its parent, and is not taken from them."""
    alive: dict[str, tuple[bytes, bytes]] = dict.fromkeys("12", (b"", b""))
    monkeypatch.setattr("os.listdir", lambda _: [*alive])
    monkeypatch.setattr(process_io, "read", lambda path: alive[path.split("/")[2]][path[-1] == "t"])
    looks = process_io._Looks()  # noqa: SLF001 - its kernel
    for own, child in ((0, 0), (0, 9000), (500, None)):
        for pid, size in (("1", own), ("2", child)):
            counts = b"\nread_bytes: %d\nwrite_bytes: 0\ncancelled_write_bytes: 0\n" % (size or 0)
            alive[pid] = (counts, b"%s (p) S 1" % pid.encode())
        if child is None:
            del alive["2"]
        grown = looks.take()
    assert grown == {"1": [500, 0, 0]}


def test_only_root_is_told() -> None:
    """Another user may read the counters of own processes only, which would mislead."""
    code = (
        "import os; from volbench.execute.agent.observation import process_io as told;"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        "print(list(told.sample_processes(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def logged(folder: RunFolder, texts: list[str]) -> None:
    """Write the log of a run."""
    log = WatchLog(folder.processes)
    for text in texts:
        log.write(text)
    log.close()


def text(second: int, *, read: int) -> str:
    """Return an interval of a second with one process."""
    return f"P {1_700_000_000 + second}.000 1.000 9\n7 {read} 0 0 dd%20b\n.\n"


def test_intervals_of_a_long_watch_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours, so that all bytes and seconds stay."""
    monkeypatch.setattr(watched_processes, "MAX_INTERVALS", 4)
    folder = RunFolder(tmp_path)
    logged(folder, [text(second, read=second) for second in range(19)])
    kept = read_intervals(folder, max_bytes=1 << 20)
    assert [each.interval_s for each in kept] == [8, 8, 3]
    process = Process(7, "dd b")
    assert [each.counts[process][0] for each in kept] == [sum(range(8)), sum(range(8, 16)), 51]


@pytest.mark.parametrize(
    "damaged",
    ["P x 1 1", "P 1 nan 1", "P 1 0 1", "P 1", "P inf 1 1", "7 1 1 1", "7 -1 0 0 dd", "P"],
)
def test_damaged_lines_count_for_nothing(damaged: str) -> None:
    """The intervals around them are whole."""
    lines = [*text(0, read=1).splitlines(), damaged, ".", *text(1, read=2).splitlines()]
    assert [list(each.counts.values()) for each in parse_intervals(lines)] == [
        [(1, 0, 0)],
        [(2, 0, 0)],
    ]


def test_the_live_table_names_the_busiest() -> None:
    """All processes of a name together, in one line of at most 79 columns."""
    counts = {Process(n, "mysqld" if n < 3 else f"p{n}"): (n * 10**7, 0, 0) for n in range(9)}
    (line,) = top_lines({"local": Interval(0.0, 2.0, counts)})
    assert line.startswith("top: p8 40 MB/s, p7 35 MB/s, ")
    assert "mysqld 15 MB/s" in line
    assert len(line) <= 79
    unknown = {Process(4, ""): (0, 10**6, 0)}
    lines = top_lines({"vm0": Interval(0.0, 1.0, unknown), "vm1": "sudo requires a password"})
    assert lines == ["top: vm0:pid 4 1 MB/s", "vm1: no processes: sudo requires a password"]
