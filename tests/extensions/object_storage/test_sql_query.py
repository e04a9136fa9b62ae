"""SQL over views reads what it is given, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.extensions.object_storage.summary_files import summary
from volbench.api.many_campaigns import View
from volbench.errors import InputError
from volbench.extensions.object_storage.sql_query import QueryLimits, run_query
from volbench.model.frames.columns import FRAMES

ENDLESS = "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range = 7"


def ask(sql: str, view: View) -> list[dict[str, object]]:
    """Return the answer to a query over a summary."""
    rows: list[dict[str, object]] = run_query(sql, lambda _: view).to_pylist()
    return rows


def test_files_and_tables_give_the_same_rows(tmp_path: Path) -> None:
    """Rows of all come together, and a label that one lacks is missing there."""
    view = View(
        files=[summary(tmp_path, "plain", iops=1.0, zone="a")],
        named_files={summary(tmp_path, "own", iops=2.0, disk="P15"): "other"},
        tables=[pa.table({"campaign": ["t"], "run": ["t/1"], "iops": [3.0]})],
    )
    found = ask(
        "select campaign, run, iops, label_zone, label_disk from summary order by iops", view
    )
    assert [list(row.values()) for row in found] == [
        ["c", "001", 1.0, "a", None],
        ["other", "other/001", 2.0, None, "P15"],
        ["t", "t/1", 3.0, None, None],
    ]


def test_special_characters_in_file_names_are_quoted(tmp_path: Path) -> None:
    """Quotes and the signs of patterns in a path mean nothing."""
    file = summary(tmp_path / "it's [1]*?", "a", iops=4.0)
    assert ask("select iops from summary", View(files=[file])) == [{"iops": 4.0}]


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_without_rows_has_its_columns(name: str) -> None:
    """A query over what is empty is answered with nothing, not refused."""
    table = run_query(f'select * from "{name}"', lambda _: View())  # noqa: S608 - our own names
    assert table.column_names == [column.name for column in FRAMES[name]]
    assert table.num_rows == 0


def test_only_the_queried_frames_are_read() -> None:
    """Judging is slow: nobody does it for a query that has no use for it."""
    requested: list[str] = []

    def view_of(name: str) -> View:
        requested.append(name)
        return View()

    run_query('select count(*) from "SUMMARY" join Verdicts using (run)', view_of)
    assert requested == ["summary", "verdicts"]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{other}')",
        "select * from '{other}'",
        "select * from read_parquet('{beside}')",
        "select * from glob('/etc/*')",
        "select * from summary, read_csv('https://example.test/x.csv')",
    ],
)
def test_nothing_else_can_be_read(tmp_path: Path, sql: str) -> None:
    """Other files, even beside those of the view, and other hosts are out of reach."""
    (tmp_path / "other.txt").write_text("secret")
    view = View(files=[summary(tmp_path, "a", iops=1.0)])
    beside = summary(tmp_path, "b", iops=2.0)
    with pytest.raises(InputError) as caught:
        ask(sql.format(other=tmp_path / "other.txt", beside=beside), view)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "copy summary to '{file}'",
        "explain analyze copy summary to '{file}'",
        "create table x as select 1",
        "select 1; drop view summary",
        "set enable_external_access = true",
        "install httpfs",
        "attach '{file}' as other",
        "",
    ],
)
def test_only_select_statements_are_allowed(tmp_path: Path, sql: str) -> None:
    """Whatever writes, or is more than one statement, is refused before it starts."""
    file = Path(summary(tmp_path, "a", iops=1.0))
    before = file.read_bytes()
    with pytest.raises(InputError, match="one read-only statement"):
        ask(sql.format(file=file), View(files=[str(file)]))
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec iops from summary", "syntax error"),
        ("select nope from summary", '"nope" not found'),
        ("select * from sumary", "sumary"),
    ],
)
def test_an_invalid_query_is_reported_with_its_error(sql: str, words: str) -> None:
    """The message is DuckDB's own, on one line, and the hint lists the frames."""
    with pytest.raises(InputError, match=words) as caught:
        ask(sql, View())
    assert "\n" not in caught.value.message
    assert "percentiles" in caught.value.hint


def test_python_variables_are_not_tables() -> None:
    """A frame in the caller's code can't be reached by its name."""
    secret = pa.table({"a": [1]})
    with pytest.raises(InputError, match="secret"):
        ask("select * from secret", View())
    assert secret.num_rows == 1


def test_without_duckdb_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is told with the command that installs it."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError) as caught:
        ask("select 1", View())
    assert "duckdb" in caught.value.hint.partition("install it: ")[2]


@pytest.mark.parametrize(
    "sql",
    [
        "select count(distinct a.range * b.range) from range(20000) a, range(20000) b",
        "select range, range::varchar || repeat('x', 500) from range(100000000)",
    ],
    ids=["inside", "answer"],
)
def test_a_query_that_needs_too_much_memory_is_refused(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither DuckDB nor the answer grows past the limit, and nothing is spilled to disk."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"more than 0\.0625 GiB") as caught:
        run_query(sql, lambda _: View(), limits=QueryLimits(memory_bytes=64 << 20, timeout_s=60))
    assert "--memory" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_takes_too_long_is_interrupted() -> None:
    """A cross join of a million rows by itself ends at its time limit."""
    with pytest.raises(InputError, match=r"interrupted after 0\.2 s"):
        run_query(ENDLESS, lambda _: View(), limits=QueryLimits(timeout_s=0.2))


def test_ctrl_c_stops_a_query(tmp_path: Path) -> None:
    """A query of hours ends within seconds of SIGINT."""
    program = (
        "import sys, threading, os, signal\n"
        "from volbench.api.many_campaigns import View\n"
        "from volbench.extensions.object_storage.sql_query import run_query\n"
        "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"run_query({ENDLESS!r}, lambda _: View())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr
