"""The answer of a comparison in a sentence."""

import re

import pandas as pd
import pytest

from tests.analyse.compared_rows import no_findings, rows_of
from volbench.analyse.compare.comparison import (
    Comparison,
    Question,
    _kind_of_cell,
    compare,
    headlines,
)
from volbench.analyse.compare.comparison_result import Verdict


def compared(base: pd.DataFrame, candidate: pd.DataFrame) -> Comparison:
    """Compare IOPS and p99 of two sides named A and B."""
    sides = {"A": base, "B": candidate}
    return compare(sides, dict.fromkeys(sides, no_findings()), Question(metrics=("iops", "p99")))


def jobs(levels: dict[str, float], *, repeats: int = 5, seed: int = 1) -> pd.DataFrame:
    """Return jobs whose pattern is the part of their name before the number."""
    return pd.concat(
        [
            rows_of(level, job=name, repeats=repeats, seed=seed, rw=name.rstrip("0123456789"))
            for name, level in levels.items()
        ]
    )


@pytest.mark.slow
def test_the_answer_names_kinds_of_workloads() -> None:
    """A kind with one workload has its interval, several are counted, equal ones stand last."""
    base = {"randread1": 1000.0, "read1": 1000.0, "randread2": 1000.0}
    [answer] = headlines(compared(jobs(base), jobs({**base, "read1": 1180.0}, seed=2)))
    assert answer.startswith("B against A, iops: ")
    size, low, high = map(
        float,
        re.search(
            r"([\d.]+) % faster for sequential reads \([\d.]+ % CI ([\d.]+) to ([\d.]+) %", answer
        ).groups(),  # type: ignore[union-attr]  # no match fails the test
    )
    assert low < 18 < high
    assert size == pytest.approx(18, abs=2)
    left = (
        r"no significant difference for random reads "
        r"\([\d.]+ % CI (-[\d.]+) to \+([\d.]+) %, the widest of 2 workloads\)\.$"
    )
    open_low, open_high = re.search(left, answer).groups()  # type: ignore[union-attr]  # same
    assert -20 < float(open_low) < 0 < float(open_high) < 20
    [counted] = headlines(compared(jobs(base), jobs({**base, "randread2": 700.0}, seed=2)))
    assert "random reads: slower for 1 of 2" in counted


def test_an_inconclusive_workload_is_not_called_equal() -> None:
    """One of two workloads varies a thousandfold; the interval quoted is that of a row."""
    wild = [1.0, 1000.0, 30.0, 5.0, 400.0]
    base, candidate = (
        pd.concat([jobs({"randread1": 1000.0}, seed=seed), jobs({"randread2": 9.0}, seed=seed)])
        for seed in (1, 2)
    )
    base.loc[base["job"] == "randread2", "iops"] = wild
    candidate.loc[candidate["job"] == "randread2", "iops"] = wild[::-1]
    found = compared(base, candidate)
    [answer] = headlines(found)
    [quiet, noisy] = [row for row in found.rows if row.measure.name == "iops"]
    assert (quiet.verdict, noisy.verdict) == (Verdict.NOT_SHOWN, Verdict.INCONCLUSIVE)
    assert noisy.interval is not None
    assert noisy.interval.high > 10
    assert "no significant difference for 1 of 2 random reads (" in answer
    assert "; inconclusive: too noisy for 1 of 2 random reads (the repeats vary" in answer
    writes = [side.replace({"rw": {"randread": "randwrite"}}) for side in (base, candidate)]
    writes = [side.assign(direction="write", job=side["job"] + "w") for side in writes]
    both = (pd.concat(pair) for pair in zip((base, candidate), writes, strict=True))
    assert headlines(compared(*both))[0].startswith(
        "B against A, iops: no difference shown in any of 4 workloads: estimates -"
    )
    wide = jobs({"randread1": 1000.0}, repeats=3).assign(iops=[500.0, 1000.0, 2000.0])
    [answer] = headlines(compared(wide, wide.assign(iops=wide["iops"] * 1.3)))
    assert answer.startswith("B against A, iops: looks 1.3x faster, but ")
    assert "more repeats" in answer


def test_workloads_without_an_interval_are_counted() -> None:
    """One of two workloads ran once."""
    once = [jobs({"randread1": rate}, repeats=1).assign(iops=rate) for rate in (1000.0, 981.0)]
    often = [jobs({"randread2": 1000.0}, repeats=5, seed=seed) for seed in (1, 2)]
    [answer] = headlines(compared(*map(pd.concat, zip(once, often, strict=True))))
    assert answer.endswith("looks 1.9 % slower, not tested: one run per side (1 of 2 workloads).")


def test_identical_rates_on_both_sides_are_questioned() -> None:
    """No two measurements agree to the last digit; percentiles, which are bins, may."""
    words = "all rates of B equal those of A to the last digit: both may be the same results"
    assert words in compared(rows_of(1000), rows_of(1000)).remarks
    assert words not in compared(rows_of(1000), rows_of(1000, seed=2)).remarks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "ratios", "words"),
    [
        ("p99", (1.05, 2.7), "1.05x to 2.7x slower"),
        ("p99", (0.8, 1.3), "30 % slower to 20 % faster"),
        ("iops", (1.0, 1.0), "equal"),
        ("iops", (0.9, 120.0), "0.9x to more than 100x the base"),
        ("iops", (1.0, 9.9), "1x to 9.9x the base"),
    ],
)
def test_ratios_without_intervals_say_what_is_better(
    metric: str, ratios: tuple[float, float], words: str
) -> None:
    """A factor of a latency and one of a rate mean opposite things."""
    column = "iops" if metric == "iops" else "lat_p99_s"
    base = dict.fromkeys(("randread1", "randread2"), 1000.0)
    sides = {
        "A": jobs(base, repeats=1).assign(**{column: [1.0, 1.0]}),
        "B": jobs(base, repeats=1).assign(**{column: list(ratios)}),
    }
    findings = dict.fromkeys(sides, no_findings())
    found = compare(sides, findings, Question(metrics=(metric,)))
    [answer] = headlines(found)
    assert answer.endswith(f": looks {words}, not tested: one run per side (2 workloads).")
    assert found.rows[1].words.endswith(", not tested: one run per side")


@pytest.mark.parametrize(
    ("pattern", "kind"), [("randrw", "random reads"), ("read", "sequential reads"), (None, "reads")]
)
def test_the_order_of_ios_is_named_where_it_is_known(pattern: str | None, kind: str) -> None:
    """Normal output without the line of its job does not say whether reads are random."""
    assert (
        _kind_of_cell(pd.DataFrame({"direction": ["read"], "rw": [pattern]}, dtype=object)) == kind
    )


def test_many_candidates_share_a_sentence() -> None:
    """Sixty volumes are not sixty sentences, but a count of each side, and both ends."""
    sides = {name: jobs({"randread1": 1e3 * n}) for n, name in enumerate("ABCDEFGH", 1)}
    [answer] = headlines(compare(sides, dict.fromkeys(sides, no_findings()), Question()))
    assert answer.startswith("7 candidates against A, iops: 7 faster. Medians: ")
