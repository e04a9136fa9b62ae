"""Repeats until precise on simulated volumes: one is even, one gets faster and faster."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.analyse.compare.repeat_precision import Precision
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.engine.campaign.repeat_stopping import PrecisionJudge, precision_words
from volbench.extensions.lab.scenario import load_scenario
from volbench.model.campaign.planned_run import RunState
from volbench.store.layout import Layout

EVEN = "name: even\nsize: 8m\nservice: {read: 2ms, write: 2ms, slots: 8}\nrestored: true\n"
RISING = (
    "name: rising\nsize: 8m\nservice: {read: 20ms, write: 20ms, slots: 4}\nrestored: true\n"
    "drift: 1000%\n"
)
LIMIT = "limits: {iops: 150}\n"
MOST = 9
PROFILE = f"""
name: short
sample: 0
device_sample: 0
repeat: {{until: 3%, min: 3, max: {MOST}}}
defaults: {{ioengine: nbd, size: 8m, bs: 4k, iodepth: 4, runtime: 1s, time_based: 1}}
jobs:
  writes: {{rw: randwrite}}
  reads: {{rw: randread}}
"""
URI = silent_export()


@pytest.fixture(scope="module", name="ended")
def _ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Measure both volumes in virtual time; return the folders."""
    folder = tmp_path_factory.mktemp("repeats")
    (folder / "short.yaml").write_text(PROFILE)
    found = {}
    for text in (EVEN + LIMIT, RISING):
        scenario = load_scenario(text, path="made.yaml")
        found[scenario.name] = folder / scenario.name
        with virtual_fio(scenario):
            done = call(*arguments(folder / "short.yaml", found[scenario.name]))
        assert done.returncode == 0, done.stderr
        (folder / f"{scenario.name}.txt").write_text(done.stdout + done.stderr)
    yield found
    shutil.rmtree(folder)


def arguments(profile: Path, into: Path, *more: str) -> list[str]:
    """Return the command line of a campaign."""
    where = ["--on", URI, "--allow-destroy", URI, "--output", str(into)]
    return ["run", str(profile), *where, *more]


def made(folder: Path, of: str = "job") -> Counter[object]:
    """Return the number of finished runs of each job, client or arm."""
    opened = api.open_campaign(folder)
    is_done = {key: note.state is RunState.FINISHED for key, note in opened.runs.items()}
    return Counter(getattr(run, of) for run in opened.campaign.runs if is_done[run.id])


def test_an_even_volume_stops_early(ended: dict[str, Path]) -> None:
    """Each workload by itself; the runs that are left out are no failures."""
    counts = made(ended["even"])
    assert all(3 <= count < MOST for count in counts.values()), counts
    text = ended["even"].with_suffix(".txt").read_text()
    for job, count in counts.items():
        assert f"{job} is precise to 3 % after {count} repeats" in text
    assert f"{2 * MOST - sum(counts.values())} not needed" in text


def test_a_drifting_volume_says_so(ended: dict[str, Path]) -> None:
    """All repeats are made, the interval is shown, and the reason is the drift."""
    assert made(ended["rising"]) == {"writes": MOST, "reads": MOST}
    text = ended["rising"].with_suffix(".txt").read_text()
    assert (
        f"writes: not precise after {MOST} repeats: iops of writes is known to within a factor of"
        in text
    )
    assert "(wanted: 3 %; drift: up by" in text


def test_a_resume_comes_to_the_same_decision(ended: dict[str, Path]) -> None:
    """It depends on the files alone, and a workload is never taken up again."""
    opened = api.open_campaign(ended["even"])
    finished = {key for key, note in opened.runs.items() if note.state is RunState.FINISHED}
    judge = PrecisionJudge(
        Layout(ended["even"]), opened.campaign, is_finished=lambda run: run.id in finished
    )
    counts = made(ended["even"])
    for run in opened.campaign.runs:
        decision = judge.before(run)
        if run.repeat == counts[run.job] + 1:
            assert decision is not None
            assert decision.is_over
            assert decision.jobs == {run.job}
        elif run.repeat <= counts[run.job]:
            assert decision is None or not decision.is_over


@pytest.mark.slow
def test_the_command_line_replaces_a_fixed_number(ended: dict[str, Path]) -> None:
    """`repeat.until` alone does, and `--repeat` beside it is refused."""
    folder = ended["even"].parent
    fixed = folder / "fixed.yaml"
    fixed.write_text(PROFILE.replace(PROFILE.splitlines()[4], "repeat: 4"))
    planned = call(*arguments(fixed, folder / "none", "--set", "repeat.until=5%", "--dry-run"))
    assert "(6 to 60 runs)" in planned.stdout
    refused = call(*arguments(fixed, folder / "none", "--set", "repeat.until=5%", "--repeat", "4"))
    assert refused.returncode == 2
    assert "repeats its jobs until they are precise" in refused.stderr
    assert "--set repeat.max=4" in refused.stderr
    wrong = call(*arguments(fixed, folder / "none", "--set", "repeat.until=3", "--dry-run"))
    assert wrong.returncode == 2
    assert "repeat.until: '3' must be a percentage from 0.1% to 50%" in wrong.stderr


@pytest.mark.slow
def test_clients_stop_together(tmp_path: Path) -> None:
    """Their rates are added; every client makes as many repeats, and each sentence is said once."""
    profile, scratch, into = tmp_path / "p.yaml", tmp_path / "scratch", tmp_path / "clients"
    scratch.mkdir()
    profile.write_text(
        "name: limited\nclients: 2\nsample: 0\nrepeat: {until: 50%, min: 3, max: 5}\n"
        "defaults: {size: 1m, bs: 4k, runtime: 1s, time_based: 1}\n"
        "jobs: {reads: {rw: randread}}\n"
    )
    with virtual_fio(load_scenario(EVEN + LIMIT, path="made.yaml")):
        done = call("run", str(profile), "--on", str(scratch), "--output", str(into))
    assert done.returncode == 0, done.stderr
    opened = api.open_campaign(into)
    counts = made(into, "client")
    assert counts[1] == counts[2]
    assert 3 <= counts[1] < 5, done.stderr
    assert f"reads is precise to 50 % after {counts[1]} repeats" in done.stderr
    judge = PrecisionJudge(Layout(into), opened.campaign, is_finished=lambda run: run.repeat < 4)
    assert not list(judge.outcome())
    first_repeat = judge._complete(("limited", "reads"), None)[0]  # noqa: SLF001 - the sum is in no result
    rates = judge._iops_or_ratios(first_repeat)  # noqa: SLF001 - the sum is in no result
    assert rates["read", ""] == pytest.approx(2 * 150, rel=0.1)  # each meets its limit


@pytest.mark.slow
def test_clients_are_resumed_until_they_are_precise(tmp_path: Path) -> None:
    """Stopped in a repeat that one client finished: the other catches up, and both end alike."""
    profile, into, scratch = tmp_path / "p.yaml", tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    text = PROFILE.replace("ioengine: nbd, size: 8m, bs: 4k, iodepth: 4", "size: 1m, bs: 4k")
    profile.write_text(f"{text}clients: 2\n")
    on = ("run", str(profile), "--on", str(scratch), "--output", str(into))
    scenario = load_scenario(EVEN + LIMIT, path="made.yaml")
    with virtual_fio(scenario, interrupted="005-writes-r3-c02"):
        stopped = call(*on)
    assert stopped.returncode == 130, stopped.stderr
    before = finished(into)
    assert {key for key in before if "-r2-" in key} == {
        f"{number}-r2-c0{client}" for number in ("003-writes", "004-reads") for client in (1, 2)
    }
    with virtual_fio(scenario):
        done = call("resume", str(into))
    assert done.returncode == 0, done.stderr
    assert not {key for key in before if f"finished {key}" in done.stderr}
    after = finished(into)
    assert before < after
    for job in ("writes", "reads"):
        first, second = (
            {key.split("-")[2] for key in after if job in key and key.endswith(client)}
            for client in ("c01", "c02")
        )
        assert first == second
        assert {"r1", "r2", "r3"} <= first
        assert len(first) < MOST
        assert f"{job} is precise to 3 % after {len(first)} repeats" in done.stderr


def finished(folder: Path) -> set[str]:
    """Return the finished runs."""
    runs = api.open_campaign(folder).runs
    return {key for key, note in runs.items() if note.state is RunState.FINISHED}


@pytest.mark.slow
def test_arms_stop_on_their_ratio(ended: dict[str, Path]) -> None:
    """A drift that both arms share does not keep their ratio from being precise."""
    folder = ended["even"].parent
    profile = folder / "arms.yaml"
    profile.write_text(
        PROFILE.replace("  reads: {rw: randread}\n", "") + "variants: {b: {}, a: {}}\n"
    )
    into = folder / "arms"
    with virtual_fio(load_scenario(RISING.replace("1000%", "200%"), path="made.yaml")):
        done = call(*arguments(profile, into))
    assert done.returncode == 0, done.stderr
    opened = api.open_campaign(into)
    counts = made(into, "arm")
    assert opened.campaign.arms == ("b", "a")
    assert counts["a"] == counts["b"]
    assert 3 <= counts["a"] <= MOST
    assert "the ratio of a in iops" in done.stderr or "writes is precise" in done.stderr


@pytest.mark.parametrize(
    ("high", "words"),
    [(1.1, "known to 10 %"), (9.6, "known to within a factor of 9.6"), (1e4, "not known yet")],
)
def test_a_wide_interval_has_a_number_that_shrinks(high: float, words: str) -> None:
    """From the first repeats, which scatter by more than a factor of 2."""
    judged = Precision(Interval(1 / high, 1.0, high), 0.05, "too few repeats")
    said = precision_words(("read", ""), judged)
    assert said == f"iops of reads is {words} (wanted: 5 %; too few repeats)"
