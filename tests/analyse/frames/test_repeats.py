"""Pooling: true repeats alone, percentiles from bins, and lines that are told apart."""

import pandas as pd
import pytest

from tests.present.frames_for_plots import frames, result
from volbench.analyse.frames.job_frames import per_job, places_of

Row = dict[str, object]
RATES = {"hdd": 72.0, "ssd": 9090.0}


def drives(*, layout: str = "{drive}", depths: tuple[int, ...] = (1, 4, 16)) -> list[Row]:
    """Return results of two drives with the same name, imported from sibling folders."""
    return [
        result(
            f"{drive}-{depth}",
            iodepth=depth,
            iops=rate * depth,
            volume="/dev/sdb",
            import_folder=layout.format(drive=drive, depth=depth),
        )
        for drive, rate in RATES.items()
        for depth in depths
    ]


def test_percentiles_of_repeats_are_their_median() -> None:
    """As in tables, comparisons and expectations, with their ends; that of a single one stays."""
    summary = frames([result("a"), result("a", repeat=2), result("a", repeat=3), result("b")])
    rows = summary["summary"].assign(p99=[0.1, 0.3, 0.15, 0.2])
    pooled = per_job(rows, ["p99"]).set_index("job")
    assert dict(pooled["p99"]) == {"a": 0.15, "b": 0.2}
    assert (pooled["p99_low"]["a"], pooled["p99_high"]["a"]) == (0.1, 0.3)


@pytest.mark.parametrize("are_categories", [False, True])
def test_rows_are_found_in_the_summary(*, are_categories: bool) -> None:
    """By run, section and direction, as texts and as categories; a missing section is one too."""
    names = ("run", "group", "direction")
    rows = pd.DataFrame(
        [("b", None, "read"), ("a", "x", "read"), ("a", "x", "read")], columns=names
    )
    given = [("a", "x", "read"), ("b", None, "read"), ("a", "x", "write"), ("c", "x", "read")]
    texts = pd.DataFrame(given, columns=names)
    assert list(places_of(texts.astype("category") if are_categories else texts, rows)) == [
        1,
        0,
        -1,
        -1,
    ]
