"""Cold-volume test: latencies of first and second reads of the same blocks.

The first read of a block that has to be fetched or allocated is slow, the second one is not. Reads
are paired by their offset, so that slow and fast places cancel out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volbench.model.results.provenance import ColdProbe
from volbench.units import format_latency

# First over second reads in the median from which a volume is cold: repeated warm passes differ by
# less. Noticed by: test_cold_volume.py::test_first_reads_at_twice_the_latency_are_detected
MIN_COLD_MEDIAN_RATIO = 1.5
# The same for the slowest in a hundred: a volume of which only a part is cold.
# Noticed by: test_cold_volume.py::test_partly_cold_volume_shows_in_the_tail
MIN_COLD_P99_RATIO = 3.0
# A smaller difference comes from the host: idle CPUs that wake up, other programs. Storage that has
# to fetch a block takes milliseconds.
# Noticed by: test_cold_volume.py::test_differences_of_microseconds_are_attributed_to_the_host
MIN_COLD_DELAY_S = 200e-6
# Probability that chance makes first reads slower by that much (Wilcoxon 1945).
# Noticed by: test_cold_volume.py::test_false_alarms_are_rare
MAX_COLD_P_VALUE = 0.01
# Pairs of reads: with fewer, one hiccup decides.
# Noticed by: test_cold_volume.py::test_too_few_blocks_give_no_verdict
MIN_COLD_PAIRS = 20
# With fewer, the 99th percentile is the slowest read or the one before it.
# Noticed by: test_cold_volume.py::test_false_alarms_are_rare
MIN_COLD_PAIRS_P99 = 100

# Share of all-zero blocks from which the others say little of the volume.
# Noticed by: test_cold_volume.py::test_a_volume_of_zeros_is_undecided
MIN_UNDECIDED_SHARE = 0.5


def pair_by_offset(
    first_s: Mapping[int, float], second_s: Mapping[int, float]
) -> tuple[list[float], list[float]]:
    """Return the latencies of offsets that both passes read, in the same order."""
    both = [offset for offset in first_s if offset in second_s]
    return [first_s[offset] for offset in both], [second_s[offset] for offset in both]


def judge_cold(
    first_s: Sequence[float], second_s: Sequence[float], *, zero_share: float | None = None
) -> ColdProbe:
    """Compare first with second reads of the same blocks.

    Args:
        first_s: latencies above 0, at least one.
        second_s: of the same blocks in the same order.
        zero_share: share of blocks that hold only zeros.
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and few volumes are probed

    from volbench.analyse.significance import signed_rank_p_value  # noqa: PLC0415 - the same

    first, second = np.asarray(first_s, dtype=float), np.asarray(second_s, dtype=float)
    medians = float(np.median(first)), float(np.median(second))
    p99s = float(np.percentile(first, 99)), float(np.percentile(second, 99))
    p_value = signed_rank_p_value(np.log(first / second))
    slower = _is_slower(*medians, ratio=MIN_COLD_MEDIAN_RATIO) or (
        _is_slower(*p99s, ratio=MIN_COLD_P99_RATIO) and len(first) >= MIN_COLD_PAIRS_P99
    )
    return ColdProbe(
        pairs=len(first),
        median_ratio=medians[0] / medians[1],
        p99_ratio=p99s[0] / p99s[1],
        p_value=p_value,
        cold=slower and p_value < MAX_COLD_P_VALUE and len(first) >= MIN_COLD_PAIRS,
        first_median_s=medians[0],
        second_median_s=medians[1],
        slower_share=float((first > second).mean()),
        zero_share=zero_share,
    )


def _is_slower(first_s: float, second_s: float, *, ratio: float) -> bool:
    return first_s > ratio * second_s and first_s - second_s >= MIN_COLD_DELAY_S


def describe(probe: ColdProbe) -> str:
    """Return the result of a probe in words."""
    is_cold = probe.cold and probe.zero_share != 1  # zeros alone do not tell, however slow
    if is_cold:
        verdict = "cold"
    elif (probe.zero_share or 0.0) >= MIN_UNDECIDED_SHARE:
        verdict = "undecided"
    elif probe.never_written:
        verdict = "partly never written"
    else:
        few = f"undecided, because fewer than {MIN_COLD_PAIRS} blocks were read"
        verdict = "not cold" if probe.pairs >= MIN_COLD_PAIRS else few
    p_value = "< 1e-16" if probe.p_value < 1e-16 else f"= {probe.p_value:.2g}"
    ratio = f"{probe.median_ratio:.3g} times "
    times = (
        f"first reads of {probe.pairs} sampled blocks took {ratio.removeprefix('1 times ')}as long"
        f" as second reads (median {format_latency(probe.first_median_s)} against"
        f" {format_latency(probe.second_median_s)}; p99 {probe.p99_ratio:.3g} times; slower for"
        f" {probe.slower_share * 100:.3g} % of the blocks, p {p_value})"
    )
    if probe.zero_share is None:
        return f"{verdict}: {times}."
    zeros = f"{probe.zero_share * 100:.3g} % of sampled blocks hold only zeros"
    never = (
        ": never written, or filled with zeros. Reads do not show how slow first writes are: "
        "fill the volume with volbench warmup, which shows it"
        if probe.never_written and not is_cold
        else ""
    )
    return f"{verdict}: {times}. {zeros}{never}."
