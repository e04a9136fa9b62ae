"""The rule of the SNIA specification, at its bounds, and determinations of rounds by it."""

import math

import pandas as pd
import pytest

from tests.analyse.round_rows import row
from volbench.analyse.time.steady_state import (
    CRITERION,
    Part,
    combined,
    determination,
    determine,
    judge_snia,
    window_matrix,
)
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.store.parquet_tables import frame_of, table_of


@pytest.mark.parametrize(
    ("rounds", "passes"),
    [
        ([100, 100, 100, 100, 100], True),
        ([100, 110, 90, 110, 100], True),
        ([100, 111, 89, 110, 100], False),
        ([105, 102.5, 100, 97.5, 95], True),
        ([106, 103, 100, 97, 94], False),
        ([0, 0, 0, 0, 0], False),
    ],
)
def test_range_and_slope_are_within_limits(rounds: list[float], *, passes: bool) -> None:
    """A range of 20 % and a slope of 10 % of the mean pass, more of either does not."""
    assert judge_snia(rounds).steady is passes


def test_the_numbers_are_reported() -> None:
    """Range and slope are of the mean, of the last five rounds."""
    judged = judge_snia([104, 102, 100, 98, 96])
    assert judged.mean == 100
    assert judged.range_ratio == pytest.approx(0.08)
    assert judged.slope_ratio == pytest.approx(0.08)
    assert judge_snia([400, 300, 200, 100, 100, 100, 100, 100, 100]).steady
    assert not judge_snia([100] * 5 + [50] * 2).steady


@pytest.mark.parametrize("count", [0, 4])
def test_fewer_than_five_rounds_have_no_window(count: int) -> None:
    """Without five rounds nothing is steady and no ratio is told."""
    judged = judge_snia([100.0] * count)
    assert not judged.steady
    assert math.isnan(judged.range_ratio)


WRITES = Track(job="r0-4k", metric=Metric.IOPS)
MIXED = Track(job="r65-64k", metric=Metric.IOPS)
STILL = [100.0, 101, 99, 100, 100]
FALLING = [600.0, 500, 400, 300, 200]


@pytest.mark.parametrize(
    ("writes", "mixed", "at_round"),
    [
        (STILL, STILL, 5),
        (FALLING + STILL, FALLING + STILL, 10),
        (FALLING, STILL, None),
        (STILL[:4], STILL[:4], None),
        ([*STILL[:4], math.nan, *STILL], STILL + STILL, 10),
        (STILL, STILL[:4], None),
    ],
)
def test_all_variables_must_pass_at_one_round(
    writes: list[float], mixed: list[float], at_round: int | None
) -> None:
    """One that drifts, or a round that one lacks, keeps all waiting."""
    found = determine({WRITES: writes, MIXED: mixed}, max_rounds=25)
    assert found.at_round == at_round
    assert found.is_steady is (at_round is not None)


def test_the_determination_is_described() -> None:
    """Steady, not yet, and never are three things, and none of them certifies."""
    steady = determine({WRITES: STILL}, max_rounds=25)
    begun = determine({WRITES: FALLING}, max_rounds=25)
    never = determine({WRITES: FALLING}, max_rounds=5)
    assert (steady.is_over, begun.is_over, never.is_over) == (True, False, True)
    assert [entry.words.partition(",")[0] for entry in (steady, begun, never)] == [
        "steady state at round 5",
        "not steady after 5 of at most 25 rounds",
        "steady state not achieved in 5 rounds",
    ]
    assert all(entry.words.endswith(CRITERION) for entry in (steady, begun, never))


def test_four_rounds_have_no_determination() -> None:
    """Four have no judgement; of six the line falls by 2 a round, without the first."""
    found = determine({WRITES: STILL[:4]}, max_rounds=25)
    assert found.window is None
    assert math.isnan(found.variables[0].slope)
    assert found.rounds == 4
    found = determine({WRITES: [900, 104, 102, 100, 98, 96]}, max_rounds=25)
    (variable,) = found.variables
    assert found.window == (2, 6)
    assert variable.slope == pytest.approx(-2)
    assert variable.judged.mean == 100
    assert variable.by_round[0] == 900


def test_directions_are_combined() -> None:
    """Rates add up; a latency weighs by its I/Os."""
    parts = [Part(300.0, 3e6, 0.001, 300.0), Part(100.0, 1e6, 0.005, 100.0)]
    assert combined(parts, Metric.IOPS) == 400
    assert combined(parts, Metric.BW) == 4e6
    assert combined(parts, Metric.LAT_MEAN) == pytest.approx(0.002)
    assert math.isnan(combined([], Metric.BW))
    assert math.isnan(combined([Part(0.0, 0.0, math.nan, 0.0)], Metric.LAT_MEAN))


def summary() -> pd.DataFrame:
    """Return seven rounds of two jobs; the first two rounds are faster, and one run failed."""
    rows = []
    for number in range(1, 8):
        factor = 3.0 if number < 3 else 1.0
        rows.append(row("r0-4k", number, "write", 100 * factor, read_percent=0, block=4096))
        for direction, iops in (("read", 65.0), ("write", 35.0)):
            reported = row(
                "r65-64k", number, direction, iops * factor, read_percent=65, block=65536
            )
            rows.append(reported)
    failed = row("r100-4k", 4, "read", 1.0, read_percent=100, block=4096)
    return frame_of(table_of("summary", [*rows, failed | {"status": "failed"}]))


def test_a_frame_gets_the_same_verdict_as_its_numbers() -> None:
    """Seven rounds of the frame, the last five of them level."""
    rounds = Rounds(max_rounds=25, track=(WRITES, MIXED))
    found = determination(summary(), rounds, profile="snia")
    assert found.at_round == 7
    assert [variable.by_round[0] for variable in found.variables] == [300, 300]
    assert determination(summary(), rounds, profile="other").rounds == 0


def test_the_matrix_is_the_mean_over_the_window() -> None:
    """Without faster rounds before it and failed runs; without a window it is empty."""
    found = determination(summary(), Rounds(track=(WRITES, MIXED)), profile="snia")
    matrix = window_matrix(summary(), found, profile="snia")
    assert matrix["mix"].tolist() == ["65/35", "0/100"]
    assert matrix["block_bytes"].tolist() == [65536, 4096]
    assert matrix["mean"].tolist() == [100, 100]
    assert matrix["rounds"].tolist() == [5, 5]
    early = summary()
    early = early[early["repeat"] < 5]
    found = determination(early, Rounds(track=(WRITES,)), profile="snia")
    matrix = window_matrix(early, found, profile="snia")
    assert matrix.empty
    assert "mean" in matrix
