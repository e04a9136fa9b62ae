from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from tests.lab.clients import KIB, MIB, keep_busy, rate
from volbench.errors import InputError, ProfileError
from volbench.lab.scenario import (
    Expected,
    Scenario,
    load_scenario,
    read_scenario,
    scenario_names,
)
from volbench.lab.simulated_disk import Disk
from volbench.lab.truth import truth, warm_up

NEEDED = {
    "clean",
    "cold-write",
    "cold-read",
    "never-written",
    "p15",
    "bandwidth-limit",
    "gp2",
    "azure-cache",
    "stall",
    "step-down",
    "neighbour",
    "drift",
    "warm-up-curve",
}
WHOLE = """
name: whole
size: 64m
block: 128k
seed: 9
restored: true
service:
  read: 1ms
  write: {latency: 2.5ms, sigma: 0.2, stream: 50MB/s}
  slots: 16
caps: {iops: 1100, bandwidth: 125MB/s}
burst:
  iops: {to: 3000, baseline: 300, credits: 5000}
  bandwidth: {to: 60MB/s, baseline: 10MB/s, credits: 64m}
first_touch: {write: 20x, read: 5ms, parallel: 4}
unwritten_reads: instant
stalls: [{at: 8s, for: 4s}]
steps: [{at: 1min, to: 0.5}]
drift: -6%
clock: first-write
"""
SMALL = "name: small\nsize: 4m\nservice: {read: 1ms, write: 1ms}\n"


def bundled() -> list[tuple[str, Expected]]:
    """Return every bundled scenario's name with each line of its truth."""
    return [(name, line) for name in scenario_names() for line in read_scenario(name).truth]


def complaints(text: str) -> list[str]:
    """Return what is wrong with a scenario."""
    with pytest.raises(ProfileError) as caught:
        load_scenario(text, path="s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_every_part_is_read_in_base_units() -> None:
    """Texts with units become what the disk is told."""
    told = load_scenario(WHOLE, path="s.yaml").parameters()
    assert (told.size_bytes, told.block_bytes, told.seed) == (64 * MIB, 128 * KIB, 9)
    assert (told.read.latency_s, told.write.latency_s, told.write.sigma) == (0.001, 0.0025, 0.2)
    assert told.write.stream_bytes_per_s == 50e6
    assert [(b.rate, b.depth) for b in told.request_buckets] == [(1100, 0), (3000, 0), (300, 5000)]
    assert [(b.rate, b.depth) for b in told.byte_buckets] == [
        (125e6, 0),
        (60e6, 0),
        (10e6, 64 * MIB),
    ]
    assert told.first_write_s == pytest.approx(19 * 0.0025)
    assert (told.first_read_s, told.first_touches, told.slots) == (0.005, 4, 16)
    assert told.restored
    assert told.instant_unwritten
    assert told.stalls == ((8.0, 4.0),)
    assert told.steps == ((60.0, 0.5),)
    assert told.drift_per_s == pytest.approx(-0.001)
    assert told.clock_starts_at_write


def test_what_is_left_out_does_nothing() -> None:
    """A scenario of three keys is an even, warm volume without limits."""
    told = load_scenario(SMALL, path="s.yaml").parameters()
    assert (told.request_buckets, told.byte_buckets, told.slots) == ((), (), 0)
    assert (told.first_write_s, told.first_read_s, told.cache) == (0, 0, None)
    assert not told.restored
    assert not told.instant_unwritten


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("caps: {iops: -1}", "s.yaml:4:8: caps.iops: '-1' must be greater than 0"),
        ("caps: {iops: many}", "s.yaml:4:8: caps.iops: 'many' is not a number"),
        ("caps: {iops: inf}", "s.yaml:4:8: caps.iops: 'inf' must be a finite number"),
        ("caps: {bandwidth: 5mb/s}", "s.yaml:4:8: caps.bandwidth: '5mb/s' is ambiguous"),
        ("cpas: {}", "s.yaml:4:1: cpas: is not known here (did you mean `caps`?)"),
        ("block: 1000", "s.yaml:1:1: size must be a multiple of 4k, and block of 512"),
        ("size: 8m", "s.yaml:4:1: size is given twice"),
        ("stalls: 5", "s.yaml:4:1: stalls: '5' must be a list"),
        ("stalls: [{at: 8s}]", "s.yaml:4:10: stalls.0.for: is missing"),
        ("stalls: [{at: 2, for: 2}, {at: 3, for: 1}]", "stalls must be in order and apart"),
        ("steps: [{at: 2, to: 2}, {at: 1, to: 1}]", "steps must be in order"),
        ("steps: [{at: 5 parsecs, to: 1}]", "s.yaml:4:10: steps.0.at: '5 parsecs' has an unknown"),
        ("first_touch: {write: fastx}", "s.yaml:4:15: first_touch.write: 'fast' is not a number"),
        ("first_touch: {parallel: 0}", "s.yaml:4:15: first_touch.parallel: '0' must be greater"),
        ("burst: {iops: {to: 5, baseline: 9, credits: 1}}", "to (5) is not above baseline (9)"),
        ("cache: {size: 1m, drain: 1MB/s, when_full: stall}", "resume_below go together"),
        (
            "cache: {size: 1m, drain: 1MB/s}\nfirst_touch: {write: 1ms}",
            "a write cache hides first touches",
        ),
        ("restored: perhaps", "s.yaml:4:1: restored: 'perhaps' must be true or false"),
        ("drift: -101%", "s.yaml:4:1: drift: '-101.0' must be greater than or equal to -100"),
        ("truth: [{rw: trim, bs: 4k, iodepth: 1}]", "truth.0.rw: 'trim' must be 'read' or 'write'"),
    ],
)
def test_a_mistake_is_told_with_its_place(line: str, complaint: str) -> None:
    """Each mistake names line, column and key, and says what was expected."""
    (found,) = complaints(SMALL + line)
    assert complaint in found


def test_all_mistakes_are_told_at_once() -> None:
    """Three mistakes are three problems, in the order of the file."""
    found = complaints("name: a b\nsize: 10q\nservice: {read: 0s, write: 1ms}\n")
    assert [text.split(":")[1] for text in found] == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["", "- a", "name: [", "just text", "a: \x01", "5"])
def test_what_is_no_scenario_is_refused(text: str) -> None:
    """Files of another kind are told apart from mistakes in a scenario."""
    assert complaints(text)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """A misspelt name shows the one that was meant."""
    with pytest.raises(InputError, match="no scenario 'cold-wirte'") as caught:
        read_scenario("cold-wirte")
    assert caught.value.hint == "did you mean `cold-write`?"


def test_a_file_is_a_scenario_too(tmp_path: Path) -> None:
    """A path is read where no bundled scenario has that name."""
    (tmp_path / "mine.yaml").write_text(SMALL, encoding="utf-8")
    assert read_scenario(str(tmp_path / "mine.yaml")).name == "small"
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="can't be read"):
        read_scenario(str(tmp_path / "odd.yaml"))


def test_another_size_keeps_everything_else() -> None:
    """A resized volume differs in its size alone, and an impossible size is refused."""
    scenario = read_scenario("gp2")
    larger = scenario.resized(256 * MIB)
    assert larger.size_bytes == 256 * MIB
    assert larger.model_copy(update={"size_bytes": scenario.size_bytes, "truth": ()}) == (
        scenario.model_copy(update={"truth": ()})
    )
    with pytest.raises(InputError, match="can't have 1000 bytes"):
        scenario.resized(1000)


def test_the_promised_scenarios_are_bundled() -> None:
    """Each is there, called as its file, described, and tells at least one truth."""
    assert set(scenario_names()) >= NEEDED
    for name in scenario_names():
        scenario = read_scenario(name)
        assert scenario.name == name
        assert scenario.description
        assert scenario.truth


@pytest.mark.parametrize(("name", "line"), bundled())
def test_written_truth_is_what_follows_from_the_parameters(name: str, line: Expected) -> None:
    """Figures that a scenario states by hand equal those computed, to 0.1 %."""
    found = truth(read_scenario(name), direction=line.rw, block_bytes=line.bs, iodepth=line.iodepth)
    computed = {
        "iops": found.iops,
        "bandwidth": found.bw_bytes_per_s,
        "cold_iops": found.cold_iops,
        "penalty": 100 * found.penalty,
        "warm_after": found.warm_90_s,
        "fast_iops": found.fast_iops,
        "fast_for": found.fast_for_s,
        "stall_for": found.stall_s,
    }
    told = line.model_dump(exclude={"rw", "bs", "iodepth", "bottleneck"}, exclude_none=True)
    assert {name: computed[name] for name in told} == pytest.approx(told, rel=0.001)
    assert line.bottleneck in {None, found.bottleneck}


def quiet(name: str) -> Scenario:
    """Return a scenario without the events that truth leaves out."""
    return read_scenario(name).model_copy(
        update={
            "stalls": (),
            "steps": (),
            "drift_percent_per_minute": 0.0,
            "unwritten_reads": "served",  # at once is no rate
        }
    )


@pytest.mark.parametrize("name", scenario_names())
@pytest.mark.parametrize(("block_bytes", "iodepth"), [(4096, 1), (4096, 16), (262144, 8)])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_truth_is_what_the_disk_does(
    name: str, block_bytes: int, iodepth: int, *, direction: str
) -> None:
    """Formula and simulation agree to 2 % on every scenario, in the long run and at first."""
    scenario = quiet(name)
    found = truth(
        scenario,
        direction="write" if direction == "write" else "read",
        block_bytes=block_bytes,
        iodepth=iodepth,
    )
    disk = Disk(scenario.parameters())
    begin_s = found.warm_s + 1
    if found.fast_for_s < inf:
        begin_s += found.fast_for_s
    length_s = 3 + 500 / found.iops
    answers = keep_busy(
        disk,
        until_s=begin_s + length_s,
        depth=iodepth,
        length=block_bytes,
        write=direction == "write",
        size=scenario.size_bytes,
    )
    # A cache that stalls has no even rate; its times are judged in test_disk.py.
    if not found.stall_s:
        assert rate(answers, begin_s, begin_s + length_s) == pytest.approx(found.iops, rel=0.02)
    if 1 < found.fast_for_s < inf:
        assert rate(answers, 0, 0.95 * found.fast_for_s) == pytest.approx(found.fast_iops, rel=0.02)


@pytest.mark.parametrize(
    ("name", "direction", "iodepth"),
    [
        ("cold-write", "write", 16),
        ("cold-read", "read", 8),
        ("never-written", "write", 1),
        ("warm-up-curve", "write", 16),
        ("warm-up-curve", "write", 1),
    ],
)
def test_warm_up_takes_as_long_as_said(name: str, direction: str, iodepth: int) -> None:
    """The simulated curve starts at the cold level and is 90 % warm when it should be."""
    scenario = read_scenario(name)
    found = truth(
        scenario,
        direction="write" if direction == "write" else "read",
        block_bytes=4096,
        iodepth=iodepth,
    )
    answers = keep_busy(
        Disk(scenario.parameters()),
        until_s=found.warm_s + 5,
        depth=iodepth,
        write=direction == "write",
        size=scenario.size_bytes,
    )
    window_s = found.warm_90_s / 50
    assert rate(answers, 0, 2 * window_s) == pytest.approx(found.cold_iops, rel=0.1, abs=4)
    passed = next(
        number * window_s
        for number in range(60)
        if rate(answers, number * window_s, (number + 1) * window_s) >= 0.9 * found.iops
    )
    assert passed == pytest.approx(found.warm_90_s, rel=0.08)


def test_curve_climbs_from_cold_to_warm() -> None:
    """The article's curve: 10 IOPS at first, flat at 475 after 26 s."""
    curve = warm_up(read_scenario("warm-up-curve"), direction="write", block_bytes=4096, iodepth=16)
    rates = [iops for _, iops in curve]
    assert rates[0] == pytest.approx(10)
    assert rates == sorted(rates)
    assert rates[-1] == 475
    assert next(at for at, iops in curve if iops >= 475) == pytest.approx(25.6, rel=0.02)


def test_steps_are_told_as_levels() -> None:
    """A step to 60 % of 2,000 IOPS is 1,200 from its second on."""
    found = truth(read_scenario("step-down"), direction="write", block_bytes=4096, iodepth=8)
    assert found.levels == ((0.0, 2000.0), (12.0, 1200.0))
