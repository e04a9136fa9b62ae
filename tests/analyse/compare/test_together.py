"""All workloads as one piece of evidence, and gates that could not have seen a regression."""

from collections.abc import Mapping
from itertools import product

import pandas as pd
import pytest

from tests.analyse.compared_rows import no_findings, rows_of
from volbench.analyse.compare.comparison import Comparison, Question, compare
from volbench.analyse.compare.comparison_result import Regression, Verdict, row_of, together


def many(
    ratios: Mapping[str, float], *, noise: float, tolerance: float | None, repeats: int = 3
) -> Comparison:
    """Compare workloads of some repeats each with a base, by their true ratios."""
    sides = {
        side: pd.concat(
            [
                rows_of(
                    1000 * (ratio if side == "b" else 1),
                    job=job,
                    repeats=repeats,
                    noise=noise,
                    seed=place + 100 * (side == "b"),
                )
                for place, (job, ratio) in enumerate(ratios.items())
            ],
            ignore_index=True,
        )
        for side in ("a", "b")
    }
    question = Question(metrics=("iops",), tolerance=tolerance)
    return compare(sides, dict.fromkeys(sides, no_findings()), question)


SLOWER = {f"job{n}": ratio for n, ratio in enumerate((0.85, 0.7, 0.6, 0.38, 0.5, 0.62, 0.7, 0.55))}


@pytest.mark.slow
def test_eight_slower_workloads_are_a_regression() -> None:
    """Noise hides each of them; that all are slower is no chance."""
    compared = many(SLOWER, noise=0.12, tolerance=0.05)
    (every,) = together(compared.rows, confidence=0.95)
    assert every.is_regression
    assert every.beyond == 8
    assert every.p_value == pytest.approx(1 / 256)
    assert every.sentence in compared.remarks
    assert not any(remark.endswith(".") for remark in compared.remarks)  # Pages add it


@pytest.mark.slow
def test_equal_workloads_are_not_a_regression() -> None:
    """Half of eight equal workloads are slower by chance."""
    compared = many(dict.fromkeys(SLOWER, 1.0), noise=0.12, tolerance=0.05)
    (every,) = together(compared.rows, confidence=0.95)
    assert not every.is_regression
    assert not any("sign test" in remark for remark in compared.remarks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "tolerance", "blind"),
    [(0.05, 0.1, 0), (0.08, 0.1, 1), (0.03, 0.01, 0), (0.04, 0.01, 1)],
)
def test_a_gate_is_undecided_above_twice_the_tolerance(
    noise: float, tolerance: float, blind: int
) -> None:
    """Detectable are 15 and 25 % beside a tolerance of 10 %, and 9 and 12 % beside one of 1 %."""
    (row,) = many({"reads": 0.96}, noise=noise, tolerance=tolerance).rows
    assert row.regression is Regression.UNDECIDED
    assert row.is_blind == blind


@pytest.mark.parametrize(("noise", "even"), [(0.1, ""), (0.4, "2x"), (1.0, "10x")])
def test_noise_of_2x_is_inconclusive(noise: float, even: str) -> None:
    """Detectable are 1.3, 3 and 16 times."""
    (row,) = many({"reads": 1.0}, noise=noise, tolerance=None).rows
    words = "inconclusive: too noisy" if even else "no significant difference"
    assert row_of(row)["verdict"] == words
    assert not even or row.words == f"{words} to detect even a {even} change"


def test_many_comparisons_are_not_called_noise() -> None:
    """Alone, 87 % is detectable; among 48 workloads a twofold change is not."""
    rows = many({f"reads{n}": 1.0 for n in range(48)}, noise=0.12, tolerance=None).rows
    words = {row.words for row in rows if row.verdict is Verdict.TOO_MANY}
    assert words
    assert all("too many comparisons at once (by itself, " in text for text in words)


def test_reads_and_writes_of_a_job_are_one_vote() -> None:
    """Both halves of three mixed jobs are slower: three votes, and six would be called evidence."""
    sides = {
        side: pd.concat(
            [
                rows_of(level, job=job, direction=direction, rw="randrw", repeats=3, seed=seed)
                for seed, (job, direction) in enumerate(product("abc", ("read", "write")), start)
            ],
            ignore_index=True,
        )
        for side, level, start in (("old", 1000, 1), ("new", 800, 101))
    }
    findings = dict.fromkeys(sides, no_findings())
    compared = compare(sides, findings, Question(metrics=("iops",)))
    (every,) = together(compared.rows, confidence=0.95)
    assert len(compared.rows) == 6
    assert every.ratios == pytest.approx((0.8, 0.8, 0.8), rel=0.02)
    assert every.p_value == pytest.approx(1 / 8)
    assert not every.is_regression


def test_jobs_without_enough_repeats_are_no_evidence() -> None:
    """Eight jobs of two repeats a side are slower: one slow period would do the same."""
    compared = many(SLOWER, noise=0.01, tolerance=0.05, repeats=2)
    (every,) = together(compared.rows, confidence=0.95)
    assert every.is_worse
    assert not every.is_regression
    (remark,) = (text for text in compared.remarks if "8 of 8 workloads are worse" in text)
    assert "a slow period of the host or the storage while one side was measured" in remark
    assert "chance" not in remark
    assert "p =" not in remark
