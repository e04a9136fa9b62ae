from math import inf
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.extensions.lab.clients import KIB, MIB, keep_busy, rate
from volbench.errors import ProfileError
from volbench.extensions.lab.disk_model import BurstNoise, DiskParameters, NoiseParameters
from volbench.extensions.lab.expected_results import Direction, truth
from volbench.extensions.lab.scenario import (
    Expected,
    Scenario,
    load_scenario,
    read_scenario,
    scenario_names,
    scenario_text,
)
from volbench.extensions.lab.simulated_disk import Disk
from volbench.model.document.document_model import document_schema

WHOLE = Path(__file__).with_name("whole.yaml").read_text(encoding="utf-8")
SMALL = "name: small\nsize: 4m\nservice: {read: 1ms, write: 1ms}\n"


def bundled() -> list[tuple[str, Expected]]:
    """Return every bundled scenario's name with each line of its truth."""
    return [(name, line) for name in scenario_names() for line in read_scenario(name).truth]


def problems(text: str) -> list[str]:
    """Return what is wrong with a scenario."""
    with pytest.raises(ProfileError) as caught:
        load_scenario(text, path="s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_every_key_is_read_in_base_units() -> None:
    """Texts with units become what the disk is told."""
    reported = load_scenario(WHOLE, path="s.yaml").parameters()
    assert (reported.size_bytes, reported.block_bytes, reported.seed) == (64 * MIB, 128 * KIB, 9)
    assert (reported.read.latency_s, reported.write.latency_s, reported.write.sigma) == (
        0.001,
        0.0025,
        0.2,
    )
    assert reported.write.stream_bytes_per_s == 50e6
    assert [(b.rate, b.depth) for b in reported.request_buckets] == [
        (1100, 0),
        (3000, 0),
        (300, 5000),
    ]
    assert [(b.rate, b.depth) for b in reported.byte_buckets] == [
        (125e6, 0),
        (60e6, 0),
        (10e6, 64 * MIB),
    ]
    assert reported.first_write_s == pytest.approx(19 * 0.0025)
    assert (reported.first_read_s, reported.first_touches, reported.slots) == (0.005, 4, 16)
    assert reported.restored
    assert reported.instant_unwritten
    assert reported.stalls == ((8.0, 4.0),)
    assert reported.steps == ((60.0, 0.5),)
    assert reported.drift_per_s == pytest.approx(-0.001)
    assert reported.clock_starts_at_write
    assert (reported.slower_after_bytes, reported.slower_to) == (16 * MIB, 0.3)
    assert reported.noise == NoiseParameters(
        0.05, 2.0, reaches_limits=True, neighbour=BurstNoise(0.1, 3.0, 30.0), steal=BurstNoise(0.2)
    )
    assert DiskParameters.from_json(reported.to_json()) == reported


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("limits: {iops: -1}", "4:16: limits.iops", "above 0"),
        ("block: 1000", "4:8: block", "multiple of 512"),
        ("stalls: [{at: 2, for: 2}, {at: 3, for: 1}]", "4:9: stalls", "and must not overlap"),
        ("steps: [{at: 2, to: 2}, {at: 1, to: 1}]", "4:8: steps", "in order"),
        ("first_touch: {write: fastx}", "4:22: first_touch.write", "'fast'"),
        ("first_touch: {write: 0.5x}", "4:22: first_touch.write", "at least 1x"),
        ("first_touch: {parallel: 0}", "4:25: first_touch.parallel", "at least 1"),
        ("burst: {iops: {to: 5, baseline: 9, credits: 1}}", "4:20: burst.iops.to", "above base"),
        ("cache: {size: 1m, drain: 1MB/s, when_full: stall}", "4:8: cache", "resume_below"),
        ("first_touch: {write: 1ms}\ncache: {size: 1m, drain: 1MB/s}", "5:8: cache", "hides first"),
        ("noise: {jitter: 120%}", "4:17: noise.jitter", "at most 1"),
    ],
)
def test_a_mistake_is_reported_with_its_position(line: str, place: str, words: str) -> None:
    """Each mistake names line, column and key, and says what was expected."""
    (found,) = problems(SMALL + line)
    assert found.startswith(f"s.yaml:{place}: ")
    assert words in found


def test_data_in_memory_has_a_maximum_size() -> None:
    """A host has the memory for 16 GiB, hardly for more."""
    largest = load_scenario(SMALL.replace("4m", "16g"), path="s.yaml")
    assert largest.size_bytes == 16 * 1024 * MIB
    (found,) = problems(SMALL.replace("4m", "17g"))
    assert "at most" in found


def test_the_schema_knows_every_bundled_scenario() -> None:
    """Editors accept what the loader accepts."""
    schema = document_schema(Scenario)
    Draft202012Validator.check_schema(schema)
    for name in scenario_names():
        content = YAML(typ="safe", pure=True).load(scenario_text(name)[0])
        errors = [error.message for error in Draft202012Validator(schema).iter_errors(content)]
        assert errors == []


@pytest.mark.parametrize(("name", "line"), bundled())
def test_the_written_truth_follows_from_the_parameters(name: str, line: Expected) -> None:
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
    reported = line.model_dump(exclude={"rw", "bs", "iodepth", "bottleneck"}, exclude_none=True)
    assert {name: computed[name] for name in reported} == pytest.approx(reported, rel=0.001)
    assert line.bottleneck in {None, found.bottleneck}


def quiet(name: str) -> Scenario:
    """Return a scenario without the events that truth leaves out."""
    update: dict[str, object] = {"stalls": (), "steps": (), "drift_percent_per_minute": 0.0}
    update |= {"slower": None, "noise": None, "unwritten_reads": "served"}  # at once is no rate
    return read_scenario(name).model_copy(update=update)


@pytest.mark.slow
@pytest.mark.parametrize("name", scenario_names())
@pytest.mark.parametrize(("block_bytes", "iodepth"), [(4096, 1), (4096, 16), (262144, 8)])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_the_declared_truth_equals_the_behaviour_of_the_disk(
    name: str, block_bytes: int, iodepth: int, *, direction: Direction
) -> None:
    """Formula and simulation agree to 2 % on every scenario, in the long run and at first."""
    scenario = quiet(name)
    found = truth(scenario, direction=direction, block_bytes=block_bytes, iodepth=iodepth)
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
