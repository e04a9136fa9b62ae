"""Conditions that choose rows."""

import pandas as pd
import pytest

from volbench.analyse.frames.row_filter import select
from volbench.errors import InputError

FRAME = pd.DataFrame(
    {
        "host": pd.array(["vm01", "vm02", "db", None], dtype="string"),
        "block_bytes": pd.array([4096, 65536, 4096, None], dtype="Int64"),
        "lat_p99_s": [0.001, 0.02, float("nan"), 0.5],
        "clat_p99_s": [0.0009, 0.019, 0.003, 0.4],
        "direct": pd.array([True, False, None, True], dtype="boolean"),
        "rate_iops": pd.Series(["not set", "900", "3000", None], dtype=object),
        "volume": pd.array(["/srv/a", "/srv/beta", "/srv/a/a", None], dtype="string"),
        "label_volume_type": pd.array(["gp2", "gp3", "gp2", "io1"], dtype="string"),
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("bs==4k", [0, 2]),
        ("bs!=4k", [1, 3]),
        ("bs>4k", [1]),
        ("rate_iops>1k", [2]),  # an option of fio, as text
        ("rate_iops==900", [1]),
        ("p99<10ms", [0, 2]),  # completion latency where there is no total latency, as in tables
        ("lat_p99_s<10ms", [0]),
        ("p99 >= 0.02", [1, 3]),
        ("host~VM", [0, 1]),
        ("host!~vm", [2, 3]),
        ("host=='vm01'", [0]),
        ('volume_type=="gp2" and bs==4k', [0, 2]),
        ("volume_type==io1 or host==db", [2, 3]),
        ("host==db or host==vm01 and bs==64k", [2]),
        ("(host==db or host==vm01) and bs==4k", [0, 2]),
        ("not host~vm", [2, 3]),
        ("direct==yes", [0, 3]),
        ("direct==no", [1]),
        ("host~^vm0[12]$", [0, 1]),
        ("volume==a", [0, 2]),  # as tables name it
        ("volume!=beta", [0, 2, 3]),
    ],
)
def test_conditions_keep_the_matching_rows(condition: str, rows: list[int]) -> None:
    """Exactly the rows that fit stay, in order; what is missing fits no comparison but !=."""
    chosen = select(FRAME.assign(row=range(4)), condition)
    assert chosen["row"].tolist() == rows
    assert chosen.index.tolist() == list(range(len(rows)))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("bs", "a comparison such as == is missing"),
        ("bs==", "a value is missing"),
        ("bs==4k and", "a column is missing"),
        ("(bs==4k", r"\) is missing"),
        ("bs==large", "is numeric, and 'large' is not a number"),
        ("host~(", "expected a value"),
        ("host~'('", "not a regular expression"),
        ("hots==a", "no column 'hots'"),
        ("host==a; drop", "'drop' is unexpected"),
        ("'x'==1", "expected a column"),
        ("host=='x", "unexpected"),
        ("(" * 5000, "nested too deeply"),
    ],
)
def test_invalid_conditions_are_reported(condition: str, words: str) -> None:
    """Nothing is guessed, and nothing is run."""
    with pytest.raises(InputError, match=words):
        select(FRAME, condition)
