"""The rule on results that contradict themselves, and what it lets pass."""

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    a_run,
    a_view,
    found,
    series_rows,
    summary_row,
)
from volbench.model.results.finding import Severity


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"iops": 999_999.5}, "999,999.5 IOPS, but its other numbers imply 1,000 IOPS"),
        (
            {"bw_bytes_per_s": 819_000.0},
            "819,000 bytes/s, but its other numbers imply 4,096,000 bytes/s",
        ),
        ({"total_ios": 1_000_000}, "1,000 IOPS, but its other numbers imply 16,666.667 IOPS"),
        ({"io_bytes": 1}, "4,096,000 bytes/s, but"),
    ],
)
def test_a_contradictory_number_makes_the_result_invalid(
    columns: dict[str, object], words: str
) -> None:
    """One false number stands beside others that it does not follow from."""
    run = a_run()
    entries = found(a_view(run, summary=[summary_row(run, **columns)]), rule="inconsistent-result")
    assert {entry.severity for entry in entries if "log" not in entry.message} == {Severity.INVALID}
    assert any(f"The result states {words}" in entry.message for entry in entries)


def test_bytes_and_blocks_must_agree() -> None:
    """Twice the bytes for the same I/Os: IOPS x block size is not the bandwidth."""
    run, double = a_run(), 2 * IOPS * BLOCK
    moved = {"bw_bytes_per_s": double, "io_bytes": int(double * SECONDS), "block_min_bytes": BLOCK}
    row = summary_row(run, **moved, block_max_bytes=BLOCK)
    (entry,) = found(a_view(run, summary=[row]), rule="inconsistent-result")
    assert " bytes, but its other numbers imply" in entry.message
    varying = summary_row(run, **moved, block_max_bytes=4 * BLOCK)
    assert found(a_view(run, summary=[varying]), rule="inconsistent-result") == []


@pytest.mark.parametrize(("factor", "count"), [(1.0, 0), (0.9, 0), (1.5, 1), (0.5, 1)])
def test_the_log_adds_up_to_the_result(factor: float, count: int) -> None:
    """A lost last window is usual; half of the I/Os is not."""
    run = a_run()
    view = a_view(run, series=series_rows(run, [IOPS * factor] * SECONDS))
    entries = found(view, rule="inconsistent-result")
    assert [entry.severity for entry in entries] == [Severity.WARNING] * count


def test_rounding_is_not_a_contradiction() -> None:
    """Fio 2 prints whole KiB/s; a run of a few ms has no comparable rate."""
    run = a_run()
    rounded = summary_row(run, bw_bytes_per_s=IOPS * BLOCK - 1000)
    short = summary_row(run, runtime_s=0.002, iops=1.0)
    for row in (rounded, short):
        assert found(a_view(run, summary=[row], series=[]), rule="inconsistent-result") == []
