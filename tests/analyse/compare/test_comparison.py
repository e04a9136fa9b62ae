"""Verdicts, refusals and remarks of a comparison."""

import math
import re

import pandas as pd
import pytest

from tests.analyse.compared_rows import compared, findings_of, no_findings, rows_of
from volbench.analyse.compare.comparison import Comparison, Question, compare
from volbench.analyse.compare.comparison_result import Compared, Regression, Verdict
from volbench.analyse.frames.run_facts import STEP
from volbench.errors import ComparisonError, InputError
from volbench.units import percent


def only(comparison: Comparison) -> Compared:
    """Return the only comparison."""
    (entry,) = comparison.rows
    return entry


def test_faster_and_slower_follow_the_metric() -> None:
    """20 % more IOPS are faster; the p99 that falls with them is faster too, by 17 %."""
    found = compared(rows_of(1000), rows_of(1200, seed=2), metrics=("iops", "p99"))
    assert [row.verdict for row in found.rows] == [Verdict.FASTER, Verdict.FASTER]
    iops, latency = found.rows
    assert re.fullmatch(r"faster (19|20|21) % \[1\d, 2\d\]", iops.words)
    assert re.fullmatch(r"faster (16|17|18) % \[1\d, \d\d\]", latency.words)
    assert iops.interval is not None
    assert iops.interval.low < 1.2 < iops.interval.high
    back = compared(rows_of(1200, seed=2), rows_of(1000), metrics=("iops", "p99"))
    assert [row.verdict for row in back.rows] == [Verdict.SLOWER, Verdict.SLOWER]
    words = only(compared(rows_of(1000), rows_of(4000, seed=2))).words
    assert re.fullmatch(r"faster (4|[34]\.\d+)x \[3\.[89]\d*, 4\.[012]\d*\]", words)


def test_no_difference_names_the_minimum_detectable_one() -> None:
    """Equal sides are not called equal: the smallest difference is told."""
    entry = only(compared(rows_of(1000), rows_of(1000, seed=2)))
    assert entry.verdict is Verdict.NOT_SHOWN
    words = f"no significant difference (minimum detectable: {percent(entry.detectable)} %)"
    assert entry.words == words
    assert 0.01 < entry.detectable < 0.05


def test_too_few_repeats_are_reported() -> None:
    """Two repeats get no interval, and stay beside what can be judged."""
    base = pd.concat([rows_of(1000), rows_of(500, job="writes", repeats=2)])
    candidate = pd.concat([rows_of(1200, seed=2), rows_of(900, job="writes", repeats=2)])
    first, second = compared(base, candidate).rows
    assert first.verdict is Verdict.FASTER
    assert (second.verdict, second.words) == (
        Verdict.TOO_FEW,
        f"looks {percent(second.ratio - 1)} % faster, not tested: 2 repeats",
    )
    assert second.interval is None
    assert 1.7 < second.ratio < 1.9


def test_decisive_differences_are_refused_with_both_values() -> None:
    """What differs is named with what stands on each side, all at once; not set is a value."""
    other = rows_of(1200, block_bytes=8192, kernel="6.8")
    with pytest.raises(ComparisonError) as caught:
        compared(rows_of(1000), other)
    assert "block size: 4k in A, 8k in B (randread, queue depth 1)" in caught.value.message
    assert "kernel: 6.1 in A, 6.8 in B (randread, queue depth 1)" in caught.value.message
    assert "--allow-different block_bytes,kernel" in caught.value.hint
    assert caught.value.exit_code == 8
    limited = rows_of(1000, rate_iops="1000")
    with pytest.raises(ComparisonError, match="rate_iops: not set in A, 1000 in B"):
        compared(rows_of(1000), limited)
    unknown = rows_of(1000, options_known=False)
    assert "unknown for A: rate_iops" in compared(unknown, limited).remarks


def test_allowed_differences_are_reported() -> None:
    """With --allow-different the comparison is made and says what differs."""
    aliased = compared(rows_of(1000), rows_of(1200, block_bytes=8192), allowed=("bs",))
    assert "allowed to differ: block size: 4k in A, 8k in B" in aliased.remarks
    with pytest.raises(InputError, match="there is no fact 'kernl'"):
        compared(rows_of(1000), rows_of(1200), allowed=("kernl",))


def test_by_keeps_groups_separate() -> None:
    """What is named in --by is neither pooled nor refused, and stands in the row."""
    base = pd.concat([rows_of(1000), rows_of(700, block_bytes=8192, seed=3)])
    candidate = pd.concat([rows_of(1200, seed=2), rows_of(700, block_bytes=8192, seed=4)])
    first, second = compared(base, candidate, by=("bs",)).rows
    assert (first.by, first.verdict) == ({"block_bytes": "4k"}, Verdict.FASTER)
    assert (second.by, second.verdict) == ({"block_bytes": "8k"}, Verdict.NOT_SHOWN)


def test_between_compares_the_values_of_a_column() -> None:
    """Values of a label are sides, whichever folder they come from; the base can be chosen."""
    rows = pd.concat(
        [rows_of(1000, label_volume_type="P15"), rows_of(2000, label_volume_type="P20", seed=2)]
    )
    entry = only(compared(rows, between="volume_type"))
    assert (entry.base, entry.candidate, entry.verdict) == ("P15", "P20", Verdict.FASTER)
    entry = only(compared(rows, between="volume_type", base="P20"))
    assert (entry.base, entry.candidate, entry.verdict) == ("P20", "P15", Verdict.SLOWER)
    with pytest.raises(InputError, match="volume_type has no value 'P30'"):
        compared(rows, between="volume_type", base="P30")
    with pytest.raises(ComparisonError, match=r"nothing to compare: kernel is 6\.1 in all runs"):
        compared(rows, between="kernel")
    with pytest.raises(ComparisonError) as hidden:
        compared(rows.assign(label_kernel=["a", *["b"] * (len(rows) - 1)]), between="kernel")
    assert hidden.value.hint == "for the label of this name, write label_kernel"


@pytest.mark.slow
def test_jobs_missing_on_one_side_are_reported() -> None:
    """What has no counterpart is named, up to five; nothing in common is an error."""
    more = pd.concat([rows_of(1200), rows_of(1, job="writes")])
    left_out = "only in B: randread 4k, queue depth 1, writes"
    assert left_out in compared(rows_of(1000), more).remarks
    other = rows_of(1000, job="writes", rw="randwrite")
    several = [
        pd.concat([rows_of(1000, job=f"{rw}{side}", rw=rw) for rw in patterns])
        for side, patterns in (("a", ("randread", "read")), ("b", ("randwrite", "write")))
    ]
    with pytest.raises(ComparisonError, match=r"A has no workload in common with the oth") as none:
        compared(*several)
    assert "--base" not in none.value.hint  # it names a value of --between
    with pytest.raises(ComparisonError, match=r"pattern: randread in 4k, randwrite in 64k"):
        compared(pd.concat([rows_of(1000), other.assign(block_bytes=65536)]), between="bs")
    with pytest.raises(ComparisonError, match=r"nothing to compare: bs is 4k in all runs"):
        compared(rows_of(1000), between="bs")
    many = [rows_of(1, job=f"j{place:02}", repeats=1) for place in range(100)]
    found = compared(rows_of(1000), pd.concat([rows_of(1000), *many]))
    left_out = "; ".join(f"randread 4k, queue depth 1, j0{place}" for place in range(5))
    assert f"only in B: {left_out} and 95 more" in found.remarks


def test_invalid_runs_are_left_out_and_reported() -> None:
    """Neither invalid nor failed runs count unless asked for; a warning marks the row."""
    base, candidate = rows_of(1000), rows_of(1200, seed=2)
    candidate.loc[0, "iops"] = 1e6
    findings = {
        "A": findings_of(("short", "note", "sdb-reads-r1", None)),
        "B": findings_of(
            ("page-cache", "invalid", "sdb-reads-r1", "read"),
            ("stall", "warning", "sdb-reads-r2", "read"),
            ("stall", "warning", "sdb-reads-r3", "write"),
        ),
    }
    question = Question(metrics=("iops",))
    found = compare({"A": base, "B": candidate}, findings, question)
    entry = only(found)
    assert entry.candidate_group.repeats == 4
    assert entry.warnings == {"stall": 1}
    assert "B: 1 run is invalid by page-cache, left out" in found.remarks
    kept = compare(
        {"A": base, "B": candidate}, findings, Question(metrics=("iops",), keep_invalid=True)
    )
    assert only(kept).candidate_group.repeats == 5
    assert only(kept).warnings == {"stall": 1, "page-cache": 1}
    candidate = rows_of(1200, seed=2)
    candidate.loc[4, "status"] = "failed"
    found = compared(rows_of(1000), candidate)
    assert only(found).candidate_group.repeats == 4
    assert "B: 1 run failed, left out" in found.remarks


def test_a_volume_whose_runs_are_invalid_is_named_with_the_rule() -> None:
    """One of two has nothing to be compared with; of three the others are compared."""
    parts = {f"v{n}": rows_of(1000 * n, volume=f"v{n}", seed=n) for n in (1, 2, 3)}
    parts = {name: part.assign(run=name + part["run"]) for name, part in parts.items()}
    findings = findings_of(*(("page-cache", "invalid", run, None) for run in parts["v1"]["run"]))
    question = Question(metrics=("iops",), between="volume")
    with pytest.raises(ComparisonError, match="left in v1; v1: 5 runs are invalid by page-cache"):
        compare({"A": pd.concat([parts["v1"], parts["v2"]])}, {"A": findings}, question)
    shared = findings_of(("shared-limit", "warning", parts["v3"]["run"].iloc[0], None))
    findings = pd.concat(
        [findings, shared.assign(message="v2 and v3 are on one disk.", evidence="{}")]
    )
    found = compare({"A": pd.concat(parts.values())}, {"A": findings}, question)
    assert (only(found).base, only(found).candidate) == ("v2", "v3")
    assert any(text.startswith("v2 and v3 are on one disk: a diff") for text in found.remarks)


def test_volumes_are_the_unit_where_there_are_several() -> None:
    """A hundred repeats on two volumes say little; those of one day share it."""
    base = pd.concat([rows_of(1000, repeats=50), rows_of(1500, repeats=50, volumes=("sdc",))])
    other = [
        rows_of(1100, repeats=50, volumes=("sdd",)),
        rows_of(1650, repeats=50, volumes=("sde",)),
    ]
    entry = only(compared(base, pd.concat(other)))
    assert entry.verdict is Verdict.INCONCLUSIVE
    assert (entry.base_group.volumes, entry.base_group.repeats) == (2, 100)
    assert entry.detectable > 0.5
    days = [rows_of(1000 + 300 * day, campaign=f"d{day}", seed=day) for day in range(3)]
    entry = only(compared(pd.concat(days), pd.concat(days)))
    assert entry.base_group.volumes == 3


def test_clients_of_one_volume_are_one_repeat() -> None:
    """Rates of clients that ran at one time are added; five steps of four are five repeats."""
    four = [rows_of(100, noise=0.01, seed=client, clients=4) for client in range(4)]
    for place, part in enumerate(four):
        part[STEP] = [f"{repeat}/1" for repeat in part["repeat"]]
        part["run"] += f"-c{place}"
    entry = only(compared(pd.concat(four), pd.concat(four)))
    assert entry.base_group.repeats == 5
    (added,) = entry.base_group.by_volume.values()
    assert added.tolist() == pytest.approx([400] * 5, rel=0.03)


def clients_of(count: int) -> pd.DataFrame:
    """Return five repeats of a step of clients, each with its own p99, mean and maximum."""
    parts = []
    for place in range(count):
        part = rows_of(100, noise=0.0, clients=count, total_ios=1000 * (place + 1))
        part[STEP] = [f"{repeat}/1" for repeat in part["repeat"]]
        part["run"] += f"-c{place}"
        part["lat_p99_s"] = part["lat_max_s"] = part["lat_mean_s"] = 0.001 * 10**place
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def bins_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return all latencies of each row in one bin."""
    kept = rows[["run", "group", "direction"]]
    return kept.assign(latency="lat", bin_s=rows["lat_p99_s"], count=rows["total_ios"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "value"), [("p50", 0.01), ("p99", 0.01), ("max", 0.01), ("lat_mean", 0.007)]
)
def test_latencies_of_clients_are_those_of_all_their_ios(metric: str, value: float) -> None:
    """Of two clients the p99 comes from the added bins, never from their two percentiles."""
    rows = clients_of(2).assign(lat_p50_s=0.5)
    question = Question(metrics=(metric,))
    sides = {"old": rows, "new": rows.copy()}
    entry = only(
        compare(sides, dict.fromkeys(sides, no_findings()), question, bins=lambda _: bins_of(rows))
    )
    (merged,) = entry.base_group.by_volume.values()
    assert merged.tolist() == pytest.approx([value] * 5)


@pytest.mark.slow
def test_percentiles_of_clients_without_bins_are_left_out() -> None:
    """Nothing stands in for a p99 or a sum of several clients, and the comparison says so."""
    both, single = clients_of(2), rows_of(100, job="alone")
    rows = pd.concat([both, single], ignore_index=True)
    found = compared(rows, rows.copy(), metrics=("p99",))
    assert {entry.label for entry in found.rows} == {"randread 4k, queue depth 1, alone"}
    assert any("10 of 20 repeats of several clients" in remark for remark in found.remarks)
    both = clients_of(2)
    sums = both.assign(aggregate_clients=2.0, aggregate_iops=150.0)
    found = compared(both, sums)
    assert only(found).candidate_group.median == 150
    sums.loc[sums["repeat"] == 1, "aggregate_iops"] = math.nan
    remark = next(text for text in compared(both, sums).remarks if text.startswith("iops: "))
    assert remark.startswith("iops: 1 of 10 repeats of several clients left out: no time is known")
    others = both.assign(aggregate_clients=3.0, aggregate_iops=150.0)
    assert not any(text.startswith("iops: ") for text in compared(both, others).remarks)


@pytest.mark.slow
def test_a_regression_is_shown_ruled_out_or_undecided() -> None:
    """Only an interval beyond the tolerance shows one; only one within it rules it out."""
    cases = {
        Regression.SHOWN: rows_of(800, seed=2),
        Regression.RULED_OUT: rows_of(1000, seed=2),
        Regression.UNDECIDED: rows_of(1000, seed=2, noise=0.2),
    }
    for state, candidate in cases.items():
        entry = only(compared(rows_of(1000), candidate, tolerance=0.05))
        assert entry.regression is state
        slow = compared(rows_of(1000), candidate, tolerance=0.05, metrics=("p99",))
        assert only(slow).regression is state
    few = only(compared(rows_of(1000), rows_of(1000, repeats=2), tolerance=0.05))
    assert few.regression is Regression.UNDECIDED
    assert only(compared(rows_of(1000), rows_of(1000))).regression is None
    base, candidate = rows_of(1000, noise=0.001), rows_of(1010, noise=0.001, seed=2)
    assert only(compared(base, candidate)).verdict is Verdict.FASTER
    entry = only(compared(base, candidate, tolerance=0.05))
    assert entry.verdict is Verdict.SAME
    assert entry.words.startswith("same within 5 % [+0.")


def test_unreported_metrics_are_named() -> None:
    """A job without the number is named; a number without a better way is refused."""
    untold = rows_of(1000, lat_p99_s=float("nan"))
    found = compared(untold, untold, metrics=("iops", "p99"))
    assert "p99 is not reported by randread 4k, queue depth 1" in found.remarks
    with pytest.raises(ComparisonError, match="there is nothing to compare; p99 is not reported"):
        compared(untold, untold, metrics=("p99",))
    with pytest.raises(InputError, match="neither higher nor lower is defined as better"):
        compared(untold, untold, metrics=("repeat",))
    with pytest.raises(InputError, match="there is no column 'p98'"):
        compared(untold, untold, metrics=("p98",))


def test_without_metrics_the_usual_ones_are_compared() -> None:
    """IOPS and p99, of completion where one side has no other; bandwidth where it is alone."""
    found = compared(rows_of(1000), rows_of(1000), metrics=())
    assert [row.measure.column for row in found.rows] == ["iops", "lat_p99_s"]
    only_bw = rows_of(1000, iops=float("nan"), lat_p99_s=float("nan"), bw_bytes_per_s=1e6)
    found = compared(only_bw, only_bw, metrics=())
    assert [row.measure.column for row in found.rows] == ["bw_bytes_per_s"]
    base = rows_of(1000, lat_p99_s=float("nan"), clat_p99_s=0.002)
    candidate = rows_of(1000, clat_p99_s=0.001)
    entry = only(compared(base, candidate, metrics=("p99",)))
    assert entry.measure.column == "clat_p99_s"
    assert entry.interval is not None
    assert entry.interval.estimate == pytest.approx(0.5)
    assert entry.interval.low == pytest.approx(0.5 / 1.0157, rel=1e-3)


def test_steady_rates_exclude_the_ramp_up() -> None:
    """Means hold the climb, steady rates do not; runs that were not steady are counted."""
    sides = [
        rows_of(level, seed=seed, until="300.0").assign(steady_iops=level * factor)
        for level, seed, factor in ((1000, 1, 1.0), (1200, 2, 1.0))
    ]
    noise = [1.0, 1.01, 0.99, 1.0, 1.005]
    sides = [side.assign(steady_iops=side["steady_iops"] * noise) for side in sides]
    of_means = compared(*sides)
    assert any("include the climb" in remark for remark in of_means.remarks)
    found = compared(*sides, metrics=("steady_iops",))
    assert only(found).verdict is Verdict.FASTER
    assert only(found).interval is not None
    assert not any("climb" in remark for remark in found.remarks)
    base = rows_of(1000).assign(steady_iops=[1000.0, 1001, 999, 1002, math.nan])
    other = rows_of(1200, seed=2).assign(steady_iops=[1200.0, 1201, 1199, 1202, 1198])
    found = compared(base, other, metrics=("steady_iops",))
    assert found.remarks == ("A: 1 of 5 runs not shown to be steady, left out",)
    assert only(found).base_group.repeats == 4


def test_imported_results_are_paired_with_what_is_equal_otherwise() -> None:
    """Two disks, each with both schedulers: each disk is compared with itself."""
    rows = [
        rows_of(level, label_disk=disk, label_scheduler=scheduler, import_folder=disk)
        for disk, levels in (("a", (1000, 500)), ("b", (9000, 4500)))
        for scheduler, level in zip(("none", "kyber"), levels, strict=True)
    ]
    found = compared(pd.concat(rows), between="label_scheduler", base="none")
    assert [(row.by, row.verdict) for row in found.rows] == [
        ({"disk": disk}, Verdict.SLOWER) for disk in "ab"
    ]
