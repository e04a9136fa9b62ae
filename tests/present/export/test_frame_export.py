"""Exported frames, read back with other readers than the ones that wrote them."""

import csv
import io
import json
import math
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest

from volbench.errors import InputError
from volbench.present.export.frame_export import FORMATS, export_frame, export_frames
from volbench.present.formatting import records
from volbench.present.tables.render_table import csv_text

EXACT = 0.1 + 0.2


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return a frame with hard floats, large numbers, gaps and awkward text."""
    return pd.DataFrame(
        {
            "job": pd.array(['a, "b"\nc', "=1+1", None], dtype="string"),
            "iops": [EXACT, 5e-324, math.nan],
            "io_bytes": pd.array([2**53 + 1, None, 0], dtype="Int64"),
            "direct": pd.array([True, None, False], dtype="boolean"),
            "label_provider": pd.array(["@x", "-y", "+z"], dtype="string"),
        }
    )


def exported(frame: pd.DataFrame, format_name: str) -> bytes:
    """Return an exported frame as bytes."""
    stream = io.BytesIO()
    export_frame(frame, frame_name="summary", format=format_name, into=stream)
    return stream.getvalue()


def test_a_workbook_needs_its_extra(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without openpyxl the refusal has the command that installs it, and another format."""
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match="writing xlsx needs openpyxl") as refused:
        exported(frame, "xlsx")
    assert refused.value.hint.startswith("use --format csv, or install it: ")
    assert "openpyxl>=" in refused.value.hint


def test_csv_is_exact(frame: pd.DataFrame) -> None:
    """Every float comes back bit by bit, gaps are empty fields, quotes and line ends survive."""
    content = exported(frame, "csv").decode()
    head, *rows = csv.reader(io.StringIO(content, newline=""))
    assert head == list(frame.columns)
    assert [float(row[1]) for row in rows[:2]] == [EXACT, 5e-324]
    assert [row[2] for row in rows] == [str(2**53 + 1), "", "0"]
    assert rows[0][0] == 'a, "b"\nc'
    assert rows[2][:2] == ["", ""]
    assert content.endswith("\r\n")


def test_plain_rows_and_a_frame_make_the_same_bytes(frame: pd.DataFrame) -> None:
    """Numbers, gaps, truth values, quotes and a lone empty field are written as pandas does."""
    job = pd.array(['a, "b"\nc', "", None], dtype="string")
    other = frame.assign(job=job, bw_bytes_per_s=[1e300, math.inf, 3.0])
    for columns in (["job", "iops", "bw_bytes_per_s", "io_bytes"], ["direct", "iops"], ["job"]):
        text = csv_text(records(other), columns=columns, line_end="\r\n")
        assert text.encode() == exported(other[columns], "csv")


def test_json_is_exact(frame: pd.DataFrame) -> None:
    """Records hold the same numbers, and null where nothing was told."""
    rows = json.loads(exported(frame, "json"))
    assert rows[0]["iops"] == EXACT
    assert rows[0]["io_bytes"] == 2**53 + 1
    assert rows[0]["direct"] is True
    assert [*rows[2].values()] == [None, None, 0, False, "+z"]
    assert json.loads(exported(frame.head(0), "json")) == []
    # An infinite edge becomes null instead of a word that JSON does not know.
    assert json.loads(exported(pd.DataFrame({"x": [math.inf]}), "json")) == [{"x": None}]


def test_parquet_columns_have_units(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Columns keep their types and carry their unit and meaning."""
    file = tmp_path / "summary.parquet"
    export_frame(frame, frame_name="summary", format="parquet", into=file)
    table = pq.read_table(file)
    assert table.schema.field("iops").metadata[b"unit"] == b"1/s"
    assert b"s reported by fio" in table.schema.field("iops").metadata[b"meaning"]
    assert table.column("io_bytes").to_pylist() == [2**53 + 1, None, 0]
    assert table.column("direct").to_pylist() == [True, None, False]


def test_a_workbook_holds_text_as_text(frame: pd.DataFrame) -> None:
    """What looks like a formula is not one, and characters that no sheet holds are replaced."""
    hostile = frame.assign(job=["a\x00b", "=1+1", "c"])
    sheet = openpyxl.load_workbook(io.BytesIO(exported(hostile, "xlsx")))["summary"]
    assert [cell.value for cell in sheet[1]] == list(frame.columns)
    assert sheet["A2"].value == "a\N{REPLACEMENT CHARACTER}b"
    assert (sheet["A3"].value, sheet["A3"].data_type) == ("'=1+1", "s")
    assert [sheet[f"E{row}"].data_type for row in (2, 3, 4)] == ["s", "s", "s"]
    assert sheet["B2"].value == pytest.approx(EXACT, rel=1e-15)
    assert sheet["B4"].value is None


def test_several_frames_fill_a_folder(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Each frame gets a file of its own name, in a folder that is made."""
    into = tmp_path / "new" / "folder"
    files = export_frames({"summary": frame, "series": frame}, format="csv", into=into)
    assert sorted(into.iterdir()) == sorted(files)
    assert {file.name for file in files} == {"summary.csv", "series.csv"}


def test_unknown_formats_and_folders_are_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    """The formats that exist are named, and so is a missing folder; nothing is left."""
    with pytest.raises(InputError) as caught:
        exported(frame, "xml")
    assert all(name in caught.value.hint for name in FORMATS)
    file = tmp_path / "missing" / "x.csv"
    with pytest.raises(InputError, match="missing"):
        export_frame(frame, frame_name="summary", format="csv", into=file)
    assert list(tmp_path.iterdir()) == []
