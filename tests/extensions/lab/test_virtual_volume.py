"""Virtual time: tick by tick it finds what the disk does request by request."""

from math import log

import pytest
from benchmarks.virtual_volume import Load, Sampled, VirtualVolume, sampled

from tests.extensions.lab.clients import keep_busy
from tests.extensions.lab.proof import made
from volbench.extensions.lab.disk_model import CELL_S, BurstNoise, Noise, NoiseParameters
from volbench.extensions.lab.scenario import Scenario, read_scenario
from volbench.extensions.lab.simulated_disk import Disk


def rates(scenario: Scenario, *, depth: int, seconds: int, write: bool = True) -> list[float]:
    """Return the completions of each second, request by request."""
    answers = keep_busy(
        Disk(scenario.parameters()),
        until_s=seconds,
        depth=depth,
        write=write,
        size=scenario.size_bytes,
    )
    done = [0.0] * seconds
    for answer in answers:
        done[min(int(answer.done_s), seconds - 1)] += 1
    return done


def ticked(scenario: Scenario, *, depth: int, seconds: int, write: bool = True) -> Sampled:
    """Return the same, tick by tick."""
    load = Load("write" if write else "read", 4096, depth, seconds)
    return sampled(VirtualVolume(scenario).run(load), sample_s=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "depth", "seconds"),
    [
        ("p15", 16, 8),
        ("gp2", 16, 16),
        ("cold-write", 16, 20),
        ("write-cache", 16, 12),
        ("azure-cache", 8, 16),
        ("step-down", 4, 24),
        ("stall", 4, 16),
        ("ssd-slc-cache", 8, 16),
    ],
)
def test_both_simulations_agree(name: str, depth: int, seconds: int) -> None:
    """Second by second to 5 %, where nothing changes within it, and in total to 3 %."""
    scenario = read_scenario(name)
    exact = rates(scenario, depth=depth, seconds=seconds)
    coarse = ticked(scenario, depth=depth, seconds=seconds).iops
    assert sum(coarse) == pytest.approx(sum(exact), rel=0.03)
    highest = max(exact)
    off = [abs(a - b) > 0.05 * highest for a, b in zip(exact, coarse, strict=True)]
    assert sum(off) <= max(2, seconds // 6), list(zip(exact, coarse, strict=True))


def test_latency_follows_from_the_rate() -> None:
    """Waiting requests wait alike; unhindered ones spread as their service does."""
    limited = ticked(read_scenario("p15"), depth=16, seconds=10).latency_s
    assert limited["mean"] == pytest.approx(16 / 1100, rel=0.01)
    assert limited["p99"] < 1.1 * limited["p1"]
    free = ticked(read_scenario("ssd-slc-cache"), depth=8, seconds=10).latency_s
    assert free["p99"] > 1.5 * free["p50"]
    assert free["min"] < free["p1"] < free["p50"]


def test_stolen_time_delays_a_shallow_queue_most() -> None:
    """One request in flight stops with its client; a limit works off a deep queue meanwhile."""
    stolen = NoiseParameters(steal=BurstNoise(share=0.3, length_s=5, every_s=0.01))
    assert Noise(stolen, seed=1).steal(100.0) > 0
    text = "name: n\nsize: 64m\nrestored: true\nservice: {read: 2ms, write: 2ms}\n"
    steal = "noise: {steal: {share: 30%, for: 5s, every: 10ms}}\n"
    shallow = ticked(made(text + steal), depth=1, seconds=20)
    assert 0.55 < sum(shallow.iops) / 20 / 500 < 0.85
    deep = ticked(made(text + "limits: {iops: 600}\n" + steal), depth=16, seconds=20)
    assert sum(deep.iops) / 20 == pytest.approx(600, rel=0.01)
    assert deep.latency_s["p1"] < 0.6 * deep.latency_s["mean"]


def test_jitter_is_autocorrelated_and_has_its_size() -> None:
    """Neighbouring cells are alike, distant ones are not, and the median is 1."""
    noise = Noise(NoiseParameters(jitter=0.1, jitter_memory_s=1.0), seed=3)
    factors = sorted(noise.jitter(CELL_S * number) for number in range(20_000))
    assert factors[10_000] == pytest.approx(1, abs=0.02)
    middle = (factors[16_827] - factors[3_173]) / 2
    assert 0.06 < middle < 0.12
    assert factors[-1] > 1.4, "a heavy tail"
    steps = [noise.jitter(CELL_S * n) - noise.jitter(CELL_S * (n + 1)) for n in range(20_000)]
    assert sum(step**2 for step in steps) / 20_000 < 0.5 * 0.1**2


def test_noise_has_a_heavy_tail() -> None:
    """One cell in 200 is beyond four deviations, as of Student's t with four degrees of freedom."""
    noise = Noise(NoiseParameters(jitter=0.1, jitter_memory_s=0.01), seed=3)
    beyond = sum(abs(log(noise.jitter(CELL_S * number))) > 0.4 for number in range(20_000))
    assert beyond / 20_000 == pytest.approx(0.0048, abs=0.0015)


@pytest.mark.parametrize("at_s", [1.0, 1.234])
def test_the_slowest_request_lasts_as_long_as_the_stall(at_s: float) -> None:
    """Rounding at its edges is no request: it neither ends the stall nor waits for a minute."""
    volume = "name: s\nsize: 64m\nservice: {read: 2ms, write: 2ms}\n"
    seen = ticked(made(f"{volume}stalls: [{{at: {at_s}s, for: 1.7s}}]"), depth=4, seconds=8)
    assert seen.latency_s["max"] == pytest.approx(1.702, abs=0.06)
