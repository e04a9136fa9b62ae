"""Imports of small traces in each format: units, order, and damaged lines."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.command_line import call
from tests.extensions.traces.made_traces import made_rows, made_trace
from volbench.errors import InputError
from volbench.extensions.traces.import_traces import Imported, import_trace
from volbench.extensions.traces.trace_file import Flags, Kind, read_batches
from volbench.extensions.traces.trace_options import FORMATS

CASES = Path(__file__).parents[2] / "cases/traces"
COLUMNS = ("time_ns", "offset_bytes", "size_bytes", "kind", "flags", "latency_ns", "device")


def imported(
    path: Path, folder: Path, *, is_anonymised: bool = False
) -> tuple[Imported, list[tuple[object, ...]]]:
    """Import a file; return what was said of it, and its rows."""
    target = folder / "imported.parquet"
    done = import_trace(path, target, source=None, is_anonymised=is_anonymised)
    table = pa.Table.from_batches(list(read_batches(target)))
    assert done.count == len(table)
    return done, list(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))


def test_alibaba_is_in_bytes_and_microseconds(tmp_path: Path) -> None:
    """Rows are sorted, time 0 is the first I/O, and damaged lines are counted."""
    done, rows = imported(CASES / "alibaba.csv", tmp_path)
    assert rows == [
        (0, 8192, 16384, Kind.WRITE, 0, -1, "1"),
        (580_000, 126703644672, 4096, Kind.READ, 0, -1, "0"),
        (1_580_000, 126703648768, 4096, Kind.WRITE, 0, -1, "0"),
    ]
    assert done.facts.start_utc == "2019-12-31T16:00:00.000Z"
    assert done.facts.damaged_lines == 2
    assert done.example == "broken line"
    assert done.facts.device_bytes == {"0": 126703652864, "1": 24576}


def test_tencent_is_in_sectors_and_seconds(tmp_path: Path) -> None:
    """Sectors have 512 bytes; a type other than 0 or 1 is damaged."""
    done, rows = imported(CASES / "tencent.csv", tmp_path)
    assert rows == [
        (0, 6610407424, 65536, Kind.READ, 0, -1, "1063"),
        (10**9, 3245408256, 4096, Kind.WRITE, 0, -1, "1627"),
        (10**9, 974902476800, 196608, Kind.READ, 0, -1, "1360"),
    ]
    assert done.facts.damaged_lines == 1


def test_thesios_is_in_bytes_and_decimal_seconds(tmp_path: Path) -> None:
    """Nanoseconds are exact; headers in between are not damaged lines."""
    done, rows = imported(CASES / "thesios.csv", tmp_path)
    assert rows == [
        (0, 1050624, 262144, Kind.READ, 0, 12_500_000, "file-a"),
        (1_249_999_875, 0, 8192, Kind.WRITE, 0, 400_000, "file-b"),
    ]
    assert done.facts.damaged_lines == 1


def test_iologs_of_fio(tmp_path: Path) -> None:
    """Version 3 has microseconds; in version 2 waits add up."""
    done, rows = imported(CASES / "iolog3.log", tmp_path)
    assert [row[0] for row in rows] == [0, 23_940_000, 45_415_000, 45_473_000]
    assert [row[3] for row in rows] == [Kind.READ, Kind.WRITE, Kind.DISCARD, Kind.FLUSH]
    assert done.facts.damaged_lines == 1
    done, rows = imported(CASES / "iolog2.log", tmp_path)
    assert [row[:4] for row in rows] == [
        (0, 249856, 4096, Kind.READ),
        (1_500_000, 3104768, 8192, Kind.WRITE),
        (2_000_000, 0, 0, Kind.FLUSH),
    ]
    assert done.facts.damaged_lines == 0


def test_an_iolog_that_fio_writes_has_microseconds(tmp_path: Path) -> None:
    """The times in an iolog of the installed fio are those of its run."""
    log = tmp_path / "written.log"
    options = ("--rw=read", "--bs=4k", "--size=64k", "--thinktime=50ms", "--thinktime_blocks=1")
    subprocess.run(
        ["fio", "--name=a", f"--filename={tmp_path}/f", f"--write_iolog={log}", *options],
        check=True,
        capture_output=True,
        timeout=60,
    )
    _, rows = imported(log, tmp_path)
    assert len(rows) == 16
    assert 15 * 50e6 <= float(str(rows[-1][0])) < 60e9


def test_blkparse_pairs_issue_and_completion(tmp_path: Path) -> None:
    """Sectors, letters and names are read; a request without completion has no latency."""
    done, rows = imported(CASES / "blkparse.txt", tmp_path)
    assert rows == [
        (0, 1048576, 4096, Kind.WRITE, Flags.SYNC, 150_000, "8:16"),
        (197_000, 2097152, 131072, Kind.READ, 0, 700_000, "8:16"),
        (247_000, 0, 0, Kind.FLUSH, 0, -1, "8:16"),
        (997_000, 4194304, 8192, Kind.READ, Flags.METADATA | Flags.READAHEAD, -1, "8:16"),
    ]
    assert done.facts.damaged_lines == 1


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    """Compression is told from the name."""
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress((CASES / "tencent.csv").read_bytes()))
    assert imported(packed, tmp_path)[0].count == 3


def test_an_anonymised_trace_keeps_what_matters(tmp_path: Path) -> None:
    """Times, sizes, kinds and distances within a chunk stay; places, names and dates do not."""
    chunk, count = 256 << 10, 4096  # of the device of 1 GiB
    offsets = [place * chunk + part * 4096 for place in range(count) for part in (0, 1)]
    rows = made_rows(list(range(len(offsets))), offset_bytes=pa.array(offsets))
    source = made_trace(tmp_path / "own.parquet", rows, start_utc="2026-01-01T00:00:00.000Z")
    done, shared = imported(source, tmp_path, is_anonymised=True)
    moved = [int(str(row[1])) for row in shared]
    assert sorted(moved) == sorted(offsets)
    assert sum(new == old for new, old in zip(moved, offsets, strict=True)) < len(offsets) / 100
    assert {second - first for first, second in zip(moved[::2], moved[1::2], strict=True)} == {4096}
    assert {row[-1] for row in shared} == {"disk1"}
    table = pa.Table.from_batches(list(read_batches(tmp_path / "imported.parquet")))
    assert set(table["process"].to_pylist()) == {""}
    assert done.facts.anonymised
    assert done.facts.start_utc == ""
    assert done.facts.device_bytes == {"disk1": 1 << 30}


def test_the_verb_says_what_it_left_out(tmp_path: Path) -> None:
    """Damaged lines are counted and shown, in the import and in the trace."""
    target = tmp_path / "t.parquet"
    done = call("trace", "import", CASES / "alibaba.csv", "-o", target)
    assert done.returncode == 0, done.stderr
    assert "3 I/Os from alibaba" in done.stderr
    assert "2 damaged lines skipped, the first: 'broken line'" in done.stderr
    shown = call("trace", "show", target)
    assert "2 damaged lines" in shown.stdout


@pytest.mark.parametrize("content", ["", "hello\n", "1,2\n"])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    """A file in no known format is refused, and nothing is left beside the target."""
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="no known format"):
        import_trace(path, tmp_path / "t.parquet", source=None, is_anonymised=False)
    for source in FORMATS:
        with pytest.raises(InputError):
            import_trace(path, tmp_path / "t.parquet", source=source, is_anonymised=False)
    assert [found.name for found in tmp_path.iterdir()] == ["other.csv"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A million and a half lines take at most 400 MB more than a few."""
    code = (
        "import resource, sys; from pathlib import Path;"
        "from volbench.extensions.traces.import_traces import import_trace;"
        "import_trace(Path(sys.argv[1]), Path(sys.argv[2]), source=None, is_anonymised=False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for count in (1_000, 1_500_000):
        path = tmp_path / f"{count}.csv"
        path.write_text(
            "".join(f"{n % 50},R,{4096 * n},4096,{1577808000000000 + n}\n" for n in range(count))
        )
        command = [sys.executable, "-c", code, str(path), str(tmp_path / f"{count}.parquet")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] - peaks[0] < 400e6
