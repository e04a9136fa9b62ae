"""Answer of an experiment: true of one result, of a sweep, of few and of many volumes."""

from collections.abc import Callable, Iterator
from itertools import product

from tests.analyse.findings.conftest import Until, a_run
from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.run_options import option_values
from volbench.present.answer import answer
from volbench.present.factor_words import cell_words, constants_words, level_words
from volbench.present.tables.design_table import Judgements, cells_table

LATENCY_S = {"local": 90e-6, "premium": 900e-6, "standard": 1500e-6}
LIMIT_IOPS = {"local": 40_000.0, "premium": 5_000.0, "standard": 2_000.0}


def row(*, iops: float, repeat: int = 1, **values: object) -> dict[str, object]:
    """Return a result of a read of 4k at queue depth 1 on a volume of its own campaign."""
    bs = int(str(values.get("block_bytes", 4096)))
    known: dict[str, object] = {"rw": "randread", "direction": "read", "block_bytes": bs}
    known |= {"iodepth": 1, "numjobs": 1, "campaign": "c", "job": "j", "group": "j"}
    known |= {"volume": "/dev/sdb", "import_folder": "f", "run": f"{repeat}"}
    rates = {"iops": iops, "bw_bytes_per_s": iops * bs, "lat_p99_s": 1e-3}
    return {**known, **rates, **values}


def sweep_of(rate: Callable[[str, int], float], *volumes: str) -> Iterator[dict[str, object]]:
    """Yield three repeats of each volume at four queue depths, 2 % apart."""
    for volume, depth, repeat in product(volumes, (1, 4, 16, 64), (-1, 0, 1)):
        iops = rate(volume, depth) * (1 + 0.02 * repeat)
        yield row(iops=iops, repeat=repeat, volume=f"/dev/{volume}", iodepth=depth)


def limited(volume: str, depth: int) -> float:
    """Return the rate of a volume with a latency and a limit."""
    return min(depth / LATENCY_S[volume], LIMIT_IOPS[volume])


def answered(*rows: dict[str, object]) -> list[str]:
    """Return the answer of results."""
    return answer(design_of(rows))


def test_the_fastest_is_compared_with_the_others_at_every_setting() -> None:
    """Three volumes with limits: ratios over all settings, and where the rates stay."""
    first, gains, limits = answered(*sweep_of(limited, *LATENCY_S))
    assert first == "local, premium and standard: 4 workloads, three repeats each."
    assert gains == (
        "local is 8 to 10 times as fast as premium and 16 to 20 times as fast as standard, at"
        " every setting."
    )
    assert "premium: 5k IOPS from queue depth 16 on." in limits
    assert "standard: 2k IOPS from queue depth 4 on." in limits


def test_repeats_of_several_days_are_said() -> None:
    """A pause of a night is none between repeats of a day."""
    at = [row(iops=1e3 + n, repeat=n, started_utc=f"2026-10-{n + 1:02}T02:00Z") for n in range(5)]
    said = "Repeats were measured on 5 days, 2026-10-01 to 2026-10-05: see volbench trend."
    assert (answered(*at)[-1], said in answered(*at[:2])) == (said, False)


def test_a_gain_that_depends_on_the_queue_depth_is_told_by_it() -> None:
    """Alike up to a depth, five times as fast beyond: one range would mislead."""
    rows = sweep_of(lambda volume, n: n * 1000.0 if volume == "a" else min(n, 4) * 1000.0, "a", "b")
    line = answered(*rows)[1]
    assert line.startswith("a measured 1.0")
    assert "; a is 4 to 16 times as fast as b from queue depth 16 on." in line


def test_repeats_that_overlap_are_no_gain() -> None:
    """A gain of 1 % between repeats that differ by 4 % is none."""
    _, line, *_ = answered(*sweep_of(lambda volume, _: 1010 if volume == "b" else 1000, "a", "b"))
    assert line == "b measured 1.01 times as fast as a, no significant difference."
    less = sweep_of(lambda volume, _: 1010 if volume == "a" else 1000, "a", "b")
    words = "b measured 0.99 times as fast as a, no significant difference."
    assert answered(*less)[1] == words, "the first is the base, also where it is faster"
    rounds = {"a": (10, 20, 30), "b": (11, 22, 90)}  # compared as `volbench compare` does: in pairs
    paired = [
        row(iops=1e3 * rate, volume=volume, repeat=block, block=block, campaign="c")
        for volume, of_volume in rounds.items()
        for block, rate in enumerate(of_volume, start=1)
    ]
    assert answered(*paired)[1] == "b measured 1.41 times as fast as a, inconclusive: too noisy."
    rates = {1: 1500, 4: 700, 16: 1500, 64: 1000}
    _, line, *_ = answered(*sweep_of(lambda volume, n: rates[n] if volume == "a" else 1000, *"ab"))
    assert line == (
        "a against b: faster at 2 of 4 settings (1.50 times), slower at 1 (0.70 times),"
        " no significant difference at 1."
    )


def test_a_result_at_an_asked_rate_ranks_nowhere() -> None:
    """A volume that fio held back is not slower; one that fell short of its rate says so."""
    held = row(iops=3000.0, volume="/dev/b", rate_iops="3000")
    lines = answered(row(iops=16_500.0, volume="/dev/a"), held)
    assert "as fast" not in " ".join(lines)
    assert lines[-1] == "b: 3k IOPS, as asked (rate_iops=3000), p99 1 ms."
    short = answered(row(iops=16_500.0, volume="/dev/a"), {**held, "iops": 2000.0})
    assert "b: 2k IOPS, less than asked (rate_iops=3000)" in short[-1]
    sought = answered(row(iops=3000.0, latency_target="2ms"))
    assert "3k IOPS, at the latency asked for (latency_target=2ms)" in sought[-1]


def test_a_volume_without_a_name_is_no_further_volume() -> None:
    """Text output does not name its volume: it is neither counted nor compared."""
    rows = [
        row(iops=1000.0 * n, volume=volume) for n, volume in enumerate(("a", "b", "unknown"), 1)
    ]
    lines = answered(*rows)
    assert (lines[0][:8], lines[1]) == ("a and b:", "b is 2 times as fast as a in single runs.")
    assert lines[2].startswith("a: 1k IOPS, 4.1 MB/s, p99 1 ms. b: 2k IOPS, ")


def test_many_volumes_are_ranked_at_the_setting_that_most_share() -> None:
    """Of nine volumes the fastest, the median and the slowest, and of how many."""
    rows = [row(iops=1000.0 * n, volume=f"/dev/v{n}") for n in range(1, 10)]
    rows.append(row(iops=1e6, volume="/dev/v1", iodepth=32))
    first, ranking = answered(*rows)
    assert first == "9 volumes: 2 workloads, one run each."
    [first, *_] = answered(row(iops=1.0, volume="/volumes/data", label_storage_class="premium"))
    assert first == "premium: 1 workload, one run."
    assert ranking == (
        "randread 4k, queue depth 1, measured on all 9: v9 is the fastest (9k IOPS), the median is"
        " 5k, v1 the slowest (1k IOPS)."
    )


def test_campaigns_over_time_end_with_the_last_against_those_before() -> None:
    """Six equal campaigns, and a seventh that lost a third."""
    rates = [1000.0] * 6 + [670.0]
    rows = [
        row(iops=iops, campaign=f"night-{n}", started_utc=f"2026-11-{n:02}T00:00:00Z")
        for n, iops in enumerate(rates, 1)
    ]
    first, course = answered(*rows)
    assert first == "7 campaigns: 1 workload, one run each."
    assert course.startswith("night-7, the last of them, is 0.67 times as fast as the median of")


def test_one_result_is_told_in_full() -> None:
    """Nothing varies: the rate, the bandwidth and the p99."""
    assert answered(row(iops=44_400.0)) == [
        "/dev/sdb: 1 workload, one run.",
        "randread 4k, queue depth 1: 44.4k IOPS, 182 MB/s, p99 1 ms.",
    ]


def test_only_what_compare_would_compare_is_ranked() -> None:
    """Another size or kernel is refused, another version of fio is a reservation."""

    def told(column: str, *values: object) -> str:
        rows = (row(iops=n, volume=f"v{n}") | {column: v} for n, v in enumerate(values, 1))
        return " ".join(answered(*rows))

    refused = told("size_bytes", 2**30, 2**31)
    words = "results differ in size: 1g in v1, 2g in v2. To compare all: volbench compare"
    assert f"Nothing is ranked: {words} --allow-different size_bytes. v1: 1 IOPS" in refused
    assert "as fast as" not in refused
    some = told("ioengine", "libaio", "libaio", "io_uring")
    assert "Only 2 of 3 are ranked: results differ in engine: libaio in v1, io_uring in" in some
    assert "v2 is 2 times as fast as v1 in single runs." in some
    kernels = told("_host", *({"kernel": n} for n in "567890"))
    assert "Nothing is ranked: results differ in kernel: 5 in v1, 6 in v2 and 4 more." in kernels
    assert "reservations: fio version: 3 in v1, 4 in v2." in told("fio_version", "3", "4")


def test_versions_of_fio_that_differ_between_hosts_are_told() -> None:
    """Where hosts are compared, they are what all results have in common."""
    rows = [row(iops=1.0, host=f"vm{n}", fio_version=f"fio-3.{30 + n}") for n in (8, 0, 71)]
    assert constants_words(design_of(rows)).endswith(", fio 3.30 to 3.101")
    assert level_words({"rw": "read", "name": None}) == "read", "a name that says nothing"


def test_a_run_until_steady_has_no_runtime() -> None:
    """Its runtime is a deadline: 60 s a run would be false, and so would IOPS by runtime."""
    run = a_run({"runtime": "60s"}, until=Until())
    values = [option_values(each, "a", ["runtime"]) for each in (run, a_run({"runtime": "12s"}))]
    design = design_of([row(iops=1.0) | each for each in values])
    words = [cell_words(design, cell).rpartition(", ")[2] for cell in design.cells]
    assert words == ["until steady", "12 s a run"]
    assert ", until steady" in constants_words(design_of(design.rows[:1]))


def test_a_sweep_has_one_sentence_with_its_knee() -> None:
    """The range, the best setting, and the smallest one that comes within a tenth of it."""
    rates = {16: 9_900.0, 64: 10_000.0, 1: 1_000.0, 4: 4_000.0}
    _, line = answered(*(row(iops=iops, iodepth=depth) for depth, iops in rates.items()))
    assert line.startswith("randread 4k: 1k IOPS at queue depth 1 to 10k IOPS at queue depth 64")
    assert "; queue depth 16 reaches 99 % of that at p99" in line
    uneven = [row(iops=1e3 * n, iodepth=depth, repeat=n) for depth in (1, 4) for n in (1, 3)]
    assert "Repeats differ by up to 3 times in 2 of 2 results: a median" in answered(*uneven)[-1]


def test_a_sweep_of_block_sizes_names_the_highest_bandwidth() -> None:
    """Small blocks have the most IOPS, large ones the most bandwidth."""
    rates = {4096: 10_000.0, 65536: 5_000.0, 1048576: 900.0}
    _, line = answered(*(row(iops=iops, block_bytes=size) for size, iops in rates.items()))
    assert line.startswith("randread, queue depth 1: 900 IOPS at 1m to 10k IOPS at 4k")
    assert line.endswith("; 944 MB/s at 1m.")


def test_repeats_that_differ_twofold_have_no_median() -> None:
    """Of a volume with credits, the first repeat is fast and the others are not."""
    rates = enumerate((1290.0, 323.0, 342.0), start=1)
    _, line = answered(*(row(iops=iops, repeat=repeat) for repeat, iops in rates))
    assert "323 to 1.29k IOPS in 3 repeats. They differ by a factor of 4:" in line
    assert "median" not in line


def test_reads_and_writes_of_a_mixed_workload_count_together() -> None:
    """The mixed job moved the most, though reads alone were faster than its reads."""
    rates = {"randread": 23_000, "randwrite": 9_000, "read": 8_000}
    rows = [row(iops=iops, rw=rw, direction=rw.removeprefix("rand")) for rw, iops in rates.items()]
    mixed = [
        row(iops=iops, rw="randrw", direction=name, numjobs=4, run="mixed")
        for name, iops in {"read": 22_660, "write": 9_724}.items()
    ]
    line = next(line for line in answered(*rows, *mixed) if line.startswith("Most IOPS"))
    assert line.startswith("Most IOPS: 32.4k IOPS, 133 MB/s (randrw 4k, queue depth 1, 4 jobs, ")
    assert line.endswith("reads and writes together).")
    *_, last = answered(*mixed)
    assert last.endswith(", reads and writes together: 32.4k IOPS, 133 MB/s.")
    (note,) = cells_table(design_of(mixed), Judgements()).notes
    assert "together: 32.4k IOPS" in note


def test_invalid_results_are_counted() -> None:
    """What is left out is said, also where nothing is left."""
    invalid = "3 invalid results (page-cache)"
    assert answer(design_of([]), invalid=invalid) == [f"Nothing valid: {invalid}."]


def test_types_of_volumes_are_compared_over_their_volumes() -> None:
    """Two volumes of each type are further repeats of it."""
    rates = {"gp3": (3000.0, 3030.0), "io2": (9000.0, 9090.0)}
    rows = [
        row(iops=iops, label_volume_type=kind, volume=f"/dev/{kind}{n}")
        for kind, of_kind in rates.items()
        for n, iops in enumerate(of_kind)
    ]
    assert answered(*rows)[1] == "io2 is 3 times as fast as gp3."


def test_a_watch_has_no_workloads() -> None:
    """It is the load of others, which nobody can repeat."""
    assert answered(row(iops=1.0, rw="watched"))[0] == "/dev/sdb: watched."
    loads = [row(volume=name, iops=rate, rw="watched") for name, rate in (("a", 2e5), ("b", 1.0))]
    assert "as fast" not in " ".join(answered(*loads))
