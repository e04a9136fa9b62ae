"""The trace file: order, facts, size, and what is not a trace."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import COMMAND, call
from tests.extensions.traces.made_traces import made_rows, made_trace
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.extensions.traces import trace_file
from volbench.extensions.traces.fidelity import read_recorded
from volbench.extensions.traces.trace_file import (
    TraceFacts,
    TraceWriter,
    find_trace,
    read_batches,
    read_facts,
    read_rows,
    row_count,
    trace_path,
)


def test_rows_out_of_order_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of parts that overlap end sorted by time, none lost, each with its own texts."""
    monkeypatch.setattr(trace_file, "PART_ROWS", 100)
    monkeypatch.setattr(trace_file, "BATCH_ROWS", 7)
    random = np.random.default_rng(3)
    times = random.permutation(5000)
    names = np.array([f"p{time % 40}" for time in times])
    tables = [
        made_rows(part, offset_bytes=part * 512, process=pa.array(own))
        for part, own in zip(np.split(times, 50), np.split(names, 50), strict=True)
    ]
    path = made_trace(tmp_path / "trace.parquet", *tables, lost_events=3)
    rows = pa.Table.from_batches(list(read_batches(path)))
    assert rows["time_ns"].to_pylist() == list(range(5000))
    assert rows["offset_bytes"].to_pylist() == [512 * time for time in range(5000)]
    assert rows["process"].to_pylist() == [f"p{time % 40}" for time in range(5000)]
    assert row_count(path) == 5000
    assert read_facts(path).lost_events == 3
    assert [file.name for file in tmp_path.iterdir()] == ["trace.parquet"]


def test_a_trace_is_small(tmp_path: Path) -> None:
    """A random load takes at most 20 bytes an I/O."""
    random = np.random.default_rng(4)
    count = 200_000
    rows = made_rows(
        random.integers(1_000, 30_000, count).cumsum(),
        offset_bytes=random.integers(0, 1 << 28, count) * 4096,
        latency_ns=random.integers(50_000, 5_000_000, count),
        queue=random.integers(0, 16, count),
    )
    path = made_trace(tmp_path / "trace.parquet", rows)
    assert path.stat().st_size < 20 * count


def test_an_empty_trace_can_be_read(tmp_path: Path) -> None:
    """A recording without I/Os has its columns and facts."""
    path = made_trace(tmp_path / "trace.parquet")
    assert row_count(path) == 0
    assert list(read_batches(path, ["time_ns"])) == []


def test_other_files_are_no_traces(tmp_path: Path) -> None:
    """Text, other tables, and facts of another version are refused, with the reason."""
    text = tmp_path / "text.parquet"
    text.write_text("0 1 R")
    table = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": [1]}), table)
    newer = tmp_path / "newer.parquet"
    schema = trace_file.SCHEMA.with_metadata({"volbench.trace": '{"version":2,"source":"tracefs"}'})
    pq.write_table(schema.empty_table(), newer)
    for path, reason in ((text, "Parquet"), (table, "no entry volbench.trace"), (newer, "version")):
        with pytest.raises(InputError, match=reason):
            read_facts(path)


KILLED = """
import os, sys
from pathlib import Path
from tests.extensions.traces.made_traces import made_rows
from volbench.extensions.traces import trace_file

trace_file.PART_ROWS = 1
facts = trace_file.TraceFacts(source=sys.argv[2])
writer = trace_file.TraceWriter(Path(sys.argv[1]), facts)
writer.add(made_rows([1, 2, 3]))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("source", ["alibaba", "tracefs"])
def test_parts_of_a_killed_import_are_replaced(tmp_path: Path, source: str) -> None:
    """Those of a killed recording are not, nor those of a writer that is still there."""
    path, parts = tmp_path / "trace.parquet", tmp_path / "trace-parts"
    subprocess.run([sys.executable, "-c", KILLED, path, source], check=False)
    assert len([*parts.iterdir()]) == 1
    if source == "tracefs":
        with pytest.raises(InputError, match="holds a recording that was killed"):
            TraceWriter(path)
        assert len([*parts.iterdir()]) == 1
        return
    writer = TraceWriter(path)
    with pytest.raises(InputError, match="is in use"):
        TraceWriter(path)
    writer.add(made_rows(np.arange(10)))
    writer.close(TraceFacts(source="alibaba"))
    assert row_count(path) == 10
    assert not parts.exists()


def test_a_removed_folder_of_parts_is_named(tmp_path: Path) -> None:
    """Permissions, which a file that cannot be written usually lacks, are not the reason."""
    writer = TraceWriter(tmp_path / "trace.parquet")
    writer.add(made_rows([1]))
    (tmp_path / "trace-parts").rmdir()
    with pytest.raises(ArchiveError, match="trace-parts was removed during the recording"):
        writer.close(TraceFacts(source="tracefs"))


def test_parts_are_not_written_through_a_link(tmp_path: Path) -> None:
    """A planted link to another folder is refused, and that folder left as it is."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "000001.parquet").write_text("kept")
    (tmp_path / "trace-parts").symlink_to(tmp_path / "precious")
    with pytest.raises(RefusedError, match="trace-parts is a symbolic link"):
        TraceWriter(tmp_path / "trace.parquet")
    assert (tmp_path / "precious" / "000001.parquet").read_text() == "kept"


def test_pandas_is_imported_before_pyarrow_does() -> None:
    """An interrupt of the import that pyarrow does was lost, and its lock stayed taken."""
    code = "import sys, volbench.extensions.traces.trace_file; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("planted", "command"),
    [
        ("trace.parquet", "replay {folder} --on {folder}"),
        ("trace.parquet", "trace show {folder}"),
        ("trace-parts/000000.parquet", "trace import {folder} -o {folder}/new"),
        ("fifo.blk", "trace import {folder}/fifo.blk -o {folder}/new"),
        ("fifo.blk", "trace import {folder}/fifo.blk --from blkparse -o {folder}/new"),
    ],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_planted_files_are_refused(
    planted: str, command: str, tmp_path: Path, *, is_link: bool
) -> None:
    """A pipe is not waited for, and a link in a folder not followed."""
    path = tmp_path / planted
    path.parent.mkdir(exist_ok=True)
    if is_link:
        path.symlink_to("/etc/passwd" if planted != "fifo.blk" else "/dev/zero")
    else:
        os.mkfifo(path)
    words = command.format(folder=tmp_path).split()
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert str(path) in done.stderr
    expected = "symbolic link" if is_link and planted != "fifo.blk" else "not a regular file"
    assert expected in " ".join(done.stderr.split())
    assert not (tmp_path / "new").exists()


def test_a_link_is_followed_only_if_the_user_named_it(tmp_path: Path) -> None:
    """One that is planted in a folder once its name is known is refused when it is opened."""
    (tmp_path / "folder").mkdir()
    trace = made_trace(tmp_path / "trace.parquet", made_rows([0]))
    planted = trace_path(tmp_path / "folder")
    planted.symlink_to(trace)
    for read in (read_facts, row_count, read_rows):
        with pytest.raises(InputError, match="symbolic link, which is not followed"):
            read(planted)
    assert row_count(find_trace(planted)) == 1


def test_a_trace_without_ios_is_named(tmp_path: Path) -> None:
    """A recording of an idle disk cannot be shown, replayed, compared or imported."""
    path = made_trace(tmp_path / "trace.parquet")
    for words in (
        ("show", path),
        ("show", path, "--chart", tmp_path / "t.png"),
        ("import", path, "-o", tmp_path / "new.parquet"),
    ):
        done = call("trace", *words)
        assert (done.returncode, f"{path} has no I/Os\n" in done.stderr) == (2, True)
    done = call("replay", path, "--on", tmp_path)
    assert (done.returncode, f"{path} has no I/Os\n" in done.stderr) == (2, True)
    with pytest.raises(InputError, match="has no I/Os"):
        read_recorded(path)


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("offset_bytes", [0, -4096, 0], "row 2: offset_bytes is -4096"),
        ("offset_bytes", [0, 0, 1 << 62], "row 3: offset_bytes is 4611686018427387904"),
        ("size_bytes", [4096, 4096, -1], "row 3: size_bytes is -1"),
        ("kind", [9, 0, 0], "row 1: kind is 9"),
        ("latency_ns", [0, 0, -2], "row 3: latency_ns is -2"),
        ("time_ns", [0, 0, 10**18], "row 3: time_ns is 1000000000000000000"),
        ("time_ns", [7, 6, 8], "row 2: its time_ns is before that of the row above"),
        ("time_ns", [0, None, 8], "row 2: time_ns is missing"),
        ("device", ["a", "b", None], "row 3: device is missing"),
    ],
)
def test_a_trace_with_impossible_values_is_refused(
    column: str, values: list[object], reason: str, tmp_path: Path
) -> None:
    """File, row and value are named, whichever verb reads it."""
    rows = made_rows([0, 1, 2])
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    plain = pa.array(values).dictionary_encode() if column == "device" else pa.array(values)
    schema = trace_file.SCHEMA.with_metadata({"volbench.trace": '{"source":"tracefs"}'})
    path = tmp_path / "trace.parquet"
    pq.write_table(rows.set_column(place, field, plain.cast(field.type)).cast(schema), path)
    for words in (
        ("trace", "show", path),
        ("trace", "import", path, "-o", tmp_path / "new.parquet"),
        ("replay", path, "--on", tmp_path, "--dry-run"),
        ("profile", "from-trace", path),
    ):
        done = call(*words)
        assert (done.returncode, f"{path} is damaged: {reason}" in done.stderr) == (2, True), done


@pytest.mark.parametrize(
    "command",
    [
        "trace show {folder}",
        "trace import {folder} -o {folder}/new",
        "replay {folder} --on {folder}",
        "profile from-trace {folder}",
    ],
)
def test_a_recording_that_has_not_ended_is_named(command: str, tmp_path: Path) -> None:
    """Before its first minute it has saved nothing; afterwards, what it has can be imported."""
    parts = tmp_path / "trace-parts"
    parts.mkdir()
    words = command.format(folder=tmp_path).split()
    done = call(*words)
    assert done.returncode == 2
    assert f"the recording in {tmp_path} ended before it saved an I/O" in done.stderr
    lock = os.open(parts, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert f"the recording in {tmp_path} is still running" in call(*words).stderr
    os.close(lock)
    made_trace(parts / "000001.parquet", made_rows([1, 2]))
    done = call(*words)
    if "import" in words:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert f"volbench trace import {tmp_path} -o trace.parquet" in done.stderr
    parts.rename(tmp_path / "other")
    assert f"there is no trace {tmp_path / 'trace.parquet'}" in call(*words).stderr
