"""Tables for papers and pages, read back with small readers of their own."""

import re
from pathlib import Path

import pandas as pd
import pytest

import volbench
from tests.labelled_campaigns import HOSTS, make
from volbench.present.export.frame_export import default_columns, render_text

AWKWARD = r"50%_of $x & {a} #1 ^ ~ \n <b> [1] -- | * ` " + '"q"'


@pytest.fixture(name="frame")
def _frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job": ["plain", AWKWARD, "two\nlines"],
            "block_bytes": pd.array([4096, 65536, None], dtype="Int64"),
            "iops": [1234.5, 0.0, float("nan")],
            "bw_bytes_per_s": [125e6, 5.0, 1e9],
            "lat_p99_s": [250e-6, 1.5, float("nan")],
            "runtime_s": [300.0, 1.0, 60.0],
            "direct": pd.array([True, False, None], dtype="boolean"),
            "label_volume_type": ["P15", None, "gp3"],
        }
    )


def markdown_rows(text: str) -> list[list[str]]:
    """Return the cells of a table of pipes as a reader of Markdown shows them."""
    rows = []
    for line in text.splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        rows.append([re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells])
    return rows


def test_special_characters_in_cells_are_escaped(frame: pd.DataFrame) -> None:
    """Signs that mean something to Markdown are printed, and line ends break no row."""
    rows = markdown_rows(render_text(frame, frame_name="summary", format_name="markdown"))
    rows = [row for row in rows if not set(row[0]) <= set("-:")]
    assert rows[0][:5] == ["job", "bs", "IOPS", "bandwidth", "lat p99"]
    assert rows[0][5:] == ["runtime", "direct", "volume type"]
    assert rows[1] == ["plain", "4k", "1.23k", "125 MB/s", "250 us", "5m 00s", "yes", "P15"]
    assert rows[2] == [AWKWARD, "64k", "0", "5 B/s", "1.5 s", "1s", "no", "n/a"]
    assert rows[3][:5] == ["two lines", "n/a", "n/a", "1 GB/s", "n/a"]


def test_latex_is_escaped(frame: pd.DataFrame) -> None:
    """Every row has as many cells as columns, and no sign is left bare."""
    text = render_text(frame, frame_name="summary", format_name="latex")
    assert r"\begin{tabular}{lrrrrrll}" in text
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [7] * 4
    bare = re.sub(r"\\[{}$&#_%]", "", "".join(rows[1:]))
    assert not re.search(r"[$#_%]", bare)


def test_markdown_marks_the_alignment(frame: pd.DataFrame) -> None:
    """Numbers stand right, words left."""
    rule = render_text(frame, frame_name="summary", format_name="markdown").splitlines()[1]
    right = [cell.strip().endswith(":") for cell in rule.split("|")[1:-1]]
    assert right == [False, True, True, True, True, True, False, False]


def test_markup_has_the_columns_a_reader_needs(tmp_path: Path) -> None:
    """Unless named, what tells rows apart comes first, then what was asked for and the results."""
    summary = volbench.open_campaign(make(tmp_path, HOSTS).root).summary()
    columns = default_columns(summary, frame_name="summary")
    assert columns[:3] == ["host", "label_provider", "label_volume_type"]
    assert columns[columns.index("job") :][:4] == ["job", "rw", "direction", "block_bytes"]
    assert columns[-1] == "clat_p99_s"  # the case has no percentiles of total latency
    other = pd.DataFrame({"x": [1], "y": [2]})
    assert default_columns(other, frame_name="answer") == ["x", "y"]
