"""Tables of a campaign: computed once, stored, and read whatever wrote them."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import volbench
from tests.finished_campaign import finish, half_finished
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.frames.run_view import RunView
from volbench.api import opened_runs
from volbench.api.many_campaigns import store_tables
from volbench.api.one_campaign import campaign_data
from volbench.errors import ArchiveError, InputError
from volbench.ingest import campaign_tables
from volbench.model.frames import columns
from volbench.model.frames.columns import DERIVED, FRAMES
from volbench.store import parquet_tables
from volbench.store.layout import Layout
from volbench.store.log_files import compress_logs
from volbench.store.parquet_tables import frame_of, read_table, table_of, write_tables
from volbench.store.worker_processes import in_processes


@pytest.fixture(name="layout")
def _layout(tmp_path: Path) -> Layout:
    """Return a campaign of two runs, the first of them finished, without tables."""
    return half_finished(tmp_path / "c")


@pytest.fixture(name="calls")
def _calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often raw files are read, and verdicts and findings are computed."""
    counted: Counter[str] = Counter()

    def count(module: object, name: str) -> None:
        original: Callable[..., object] = getattr(module, name)

        def counting(*arguments: object, **options: object) -> object:
            counted[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, counting)

    count(campaign_tables, "read_tables")
    count(opened_runs, "finding_rows")
    count(opened_runs, "verdict_rows")
    return counted


ONCE = {"read_tables": 1, "finding_rows": 1, "verdict_rows": 1}


def rows(layout: Layout, name: str = "findings") -> list[dict[str, object]]:
    """Return the rows of a frame of a campaign that is opened anew."""
    return volbench.open_campaign(layout.root).rows(name)


def test_all_frames_are_stored_once(layout: Layout, calls: Counter[str]) -> None:
    """Storing again, or reading any frame, computes nothing."""
    store_tables(volbench.open_campaign(layout.root))
    store_tables(volbench.open_campaign(layout.root))
    for name in ("summary", "series", *DERIVED):
        assert (layout.tables / f"{name}.parquet").exists()
        rows(layout, name)
    assert calls == ONCE


@pytest.mark.parametrize(("version", "reads"), [("RULES_VERSION", 1), ("TABLES_VERSION", 2)])
def test_a_new_version_recomputes(
    layout: Layout, calls: Counter[str], monkeypatch: pytest.MonkeyPatch, version: str, reads: int
) -> None:
    """New rules recompute findings and verdicts without raw files; a new reader does all."""
    before = rows(layout)
    monkeypatch.setattr(parquet_tables, version, "next")
    assert rows(layout) == before
    rows(layout)
    assert calls == {"read_tables": reads, "finding_rows": 2, "verdict_rows": 2}


def test_new_columns_recompute(
    layout: Layout, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that an older volbench stored without a column are made again, not read."""
    rows(layout)
    series = (*columns.FRAMES["series"], columns.text("mood", "Mood of the volume."))
    monkeypatch.setitem(columns.FRAMES, "series", series)
    assert "mood" in volbench.open_campaign(layout.root).frame("series").columns
    assert calls == {"read_tables": 2, "finding_rows": 1, "verdict_rows": 1}
    findings = (*columns.FRAMES["findings"], columns.text("mood", "Mood of the reader."))
    monkeypatch.setitem(columns.FRAMES, "findings", findings)
    rows(layout)
    assert calls == {"read_tables": 2, "finding_rows": 2, "verdict_rows": 2}


def test_a_table_without_a_column_is_unreadable(layout: Layout) -> None:
    """A file that does not have what its stamp promises is named, with what to do."""
    path = layout.root / "other.parquet"
    parquet.write_table(pa.table({"run": ["a"]}), path)
    with pytest.raises(ArchiveError, match=r"other\.parquet cannot be read.*mood") as caught:
        parquet_tables.read_table(path, ["run", "mood"])
    assert "delete the tables folder" in caught.value.hint


def test_changed_raw_file_recomputes(layout: Layout, calls: Counter[str]) -> None:
    """A result that was cut short after the tables were stored becomes a finding."""
    assert "damaged-files" not in {row["rule"] for row in rows(layout)}
    output = layout.run("001-mix-r1").fio_output
    output.write_bytes(output.read_bytes()[:200])
    assert "damaged-files" in {row["rule"] for row in rows(layout)}
    assert calls == {"read_tables": 2, "finding_rows": 2, "verdict_rows": 2}


def test_moved_folder_keeps_its_tables(layout: Layout, calls: Counter[str]) -> None:
    """Names and sizes are stamped, neither times nor the place."""
    before = rows(layout)
    moved = layout.root.rename(layout.root.with_name("moved"))
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    assert volbench.open_campaign(moved).rows("findings") == before
    assert calls == ONCE


def test_rows_are_returned_even_if_they_cannot_be_stored(
    layout: Layout, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk or a read-only folder costs time on each call, not the answer."""
    expected = volbench.open_campaign(layout.root)
    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.ParquetWriter.write_table", _refuse)
        opened = volbench.open_campaign(layout.root)
        answer = opened.rows("findings")
        assert opened.rows("findings") == answer
        assert calls == ONCE | {"read_tables": 2}, "rows that were written are not held"
        assert campaign_data(layout.root).table_file("findings") is None
    assert not [path for path in layout.tables.iterdir() if path.is_file()]
    assert expected.rows("findings") == answer


@pytest.mark.parametrize("failing", range(len(DERIVED)))
def test_interrupted_write_is_not_taken_for_complete(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """A stamp is written last: when any table fails, none of its kind counts as stored."""
    rows(layout, "summary")
    written: list[str] = []

    def write_some(folder: Path, parts: Iterable[Mapping[str, pa.Table]]) -> None:
        for part in parts:
            for name, table in part.items():
                if len(written) == failing:
                    raise ArchiveError("no space", hint="")
                written.append(name)
                write_tables(folder, [{name: table}])

    with monkeypatch.context() as patched:
        patched.setattr(parquet_tables, "write_tables", write_some)
        rows(layout)
    assert len(written) == failing
    assert not (layout.tables / "rules-stamp").exists()
    rows(layout)
    assert (layout.tables / "rules-stamp").exists()
    assert all((layout.tables / f"{name}.parquet").exists() for name in DERIVED)


@pytest.mark.parametrize("damage", ["cut", "flipped", "removed"])
def test_damaged_table_is_made_again(layout: Layout, calls: Counter[str], damage: str) -> None:
    """A table is trusted only if it is as it was written: one changed byte is enough."""
    before = rows(layout)
    table = layout.tables / "findings.parquet"
    content = table.read_bytes()
    flipped = bytes([*content[:-20], content[-20] ^ 1, *content[-19:]])
    table.unlink()
    if damage != "removed":
        table.write_bytes(content[:100] if damage == "cut" else flipped)
    assert rows(layout) == before
    assert calls["finding_rows"] == 2
    assert table.read_bytes() == content


def _refuse(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_run_that_cannot_be_judged_does_not_affect_other_verdicts(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody expected is the finding of its run; later commands read the rest."""
    finish(layout, "002-mix-r2")

    def fail(context: Context, views: Sequence[RunView]) -> list[dict[str, object]]:
        if views[0].run.id == "001-mix-r1":
            raise ZeroDivisionError("float division by zero")
        return verdict_rows(context, views)

    monkeypatch.setattr(opened_runs, "verdict_rows", fail)
    findings = [row for row in rows(layout) if row["run"] == "001-mix-r1"]
    assert [row["severity"] for row in findings] == ["invalid"]
    assert "ZeroDivisionError: float division by zero" in str(findings[0]["message"])
    monkeypatch.undo()
    assert {row["run"] for row in rows(layout, "summary")} == {"001-mix-r1", "002-mix-r2"}


@pytest.mark.parametrize("name", FRAMES)
def test_empty_frame_has_every_column(name: str) -> None:
    """A campaign without results still gives frames of the documented shape."""
    frame = frame_of(table_of(name, []))
    assert list(frame.columns) == [column.name for column in FRAMES[name]]
    assert len(frame) == 0


def test_values_survive_parquet_exactly(tmp_path: Path) -> None:
    """Integers beyond 2**53 and unknown values are the same after a round trip."""
    row = {"run": "001-a", "io_bytes": 2**60 + 1, "iops": 0.1 + 0.2, "direct": True}
    parts = [{"summary": table_of("summary", [each])} for each in (row, {"run": "002-b"})]
    write_tables(tmp_path, parts)
    frame = frame_of(read_table(tmp_path / "summary.parquet"))
    assert frame["io_bytes"].tolist()[0] == 2**60 + 1
    assert frame["iops"].tolist()[0] == 0.1 + 0.2
    assert bool(frame["direct"].tolist()[0]) is True
    assert frame_of(read_table(tmp_path / "summary.parquet"), is_done=True).equals(frame)
    assert frame.loc[1, ["io_bytes", "iops", "direct"]].isna().all()


def test_only_large_logs_are_compressed_at_once(tmp_path: Path) -> None:
    """Between two runs only what would fill a disk is compressed; afterwards everything is."""
    small, large = tmp_path / "series_bw.1.log", tmp_path / "series_lat.1.log"
    small.write_text("1000, 1, 0, 0\n")
    large.write_text("1000, 1, 0, 0\n" * 100)
    compress_logs(tmp_path, min_bytes=1000)
    assert small.exists()
    assert not large.exists()
    compress_logs(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "series_bw.1.log.zst",
        "series_lat.1.log.zst",
    }


def squares(items: Sequence[int]) -> tuple[int, list[int]]:
    """Return the process and the squares of its items."""
    return os.getpid(), [item * item for item in items]


def test_errors_of_workers_are_raised() -> None:
    """An error of the work has its hint; a process that is killed is an error too."""

    def refuse(items: Sequence[int]) -> None:
        raise InputError(f"bad {items[0]}", hint="mend it")

    def die(_: Sequence[int]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(InputError, match="bad 0") as caught:
        list(in_processes(refuse, range(64), processes=2, done=lambda _: None))
    assert caught.value.hint == "mend it"
    with pytest.raises(ArchiveError, match="was killed"):
        list(in_processes(die, range(64), processes=2, done=lambda _: None))
