"""Alarms that are measured again before they alarm, on simulated volumes in virtual time."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import volbench
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.extensions.confirming.judgement import Alarm, Outcome
from volbench.extensions.lab.scenario import load_scenario
from volbench.store.archive import hold_campaign
from volbench.store.consent import seal_of
from volbench.store.journal import Journal
from volbench.store.layout import Layout

NAN = float("nan")
PROFILE = """
name: short
sample: 0
device_sample: 0
defaults: {ioengine: nbd, size: 8m, bs: 4k, iodepth: 4, runtime: 1s, time_based: 1}
jobs:
  writes: {rw: randwrite}
  reads: {rw: randread}
"""
URI = silent_export()


def called(iops: int, *words: str | Path) -> CompletedProcess[str]:
    """Call volbench on a volume with a limit."""
    service = "service: {read: 2ms, write: 2ms, slots: 8}\nrestored: true\n"
    text = f"name: made\nsize: 8m\n{service}limits: {{iops: {iops}}}\n"
    with virtual_fio(load_scenario(text, path="made.yaml")):
        return call(*words)


def calibrated(nights: Path, speed: float = 100.0) -> None:
    """Add a calibration to each night, with a slower CPU in the last."""
    for night in nights.iterdir():
        layout = Layout(night)
        with hold_campaign(layout), Journal(layout.journal, seal_of(layout)) as journal:
            speeds = [speed * (0.92 if night.name == "6" else 1), speed / 2, speed / 25]
            journal.write("calibrated", host="local", speeds=speeds)


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measure six nights, of which the last is slower."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "short.yaml").write_text(PROFILE)
    for night in range(1, 7):
        words = "--on", URI, "--allow-destroy", URI, "--output", folder / "all" / str(night)
        done = called(100 if night == 6 else 150, "run", folder / "short.yaml", *words)
        assert done.returncode == 0, done.stderr
    return folder / "all"


@pytest.mark.parametrize(
    ("iops", "code", "outcome"), [(100, 10, Outcome.CONFIRMED), (150, 0, Outcome.GONE)]
)
def test_an_alarm_is_confirmed_by_a_repetition(
    made: Path, tmp_path: Path, iops: int, code: int, outcome: Outcome
) -> None:
    """Of three runs, with leave; a far slower host, which fio hardly needed, excuses nothing.

    A second look measures nothing again.
    """
    nights = Path(shutil.copytree(made, tmp_path / "all"))
    calibrated(nights, speed=1e12)
    look = "trend", nights, "--metric", "iops"
    assert call(*look).returncode == 10
    refused = called(iops, *look, "--confirm")
    assert refused.returncode == 3
    assert f"--allow-destroy '{URI}'" in refused.stderr
    assert not (nights / ".confirmed").exists()
    done = called(iops, *look, "--confirm", "--allow-destroy", URI)
    assert done.returncode == code, done.stderr
    assert "2 alarms, to be confirmed: reads, writes" in done.stderr
    assert "[6/6]" in done.stderr
    assert done.stderr.count(f": {outcome.value}: ") == 2
    assert done.stderr.count("% slower as well, but not the cause: fio") == (2 if code else 0)
    assert (nights / ".confirmed" / "6-again1" / "journal.jsonl").read_text().count("calibrat") == 2
    again = call(*look, "--confirm", "--junit", "-")
    assert again.returncode == code, again.stderr
    assert again.stdout.count("<failure") == (2 if code else 0)


def test_a_gate_confirms_what_it_found(made: Path, tmp_path: Path) -> None:
    """Of the candidate alone, which must be the folder of a campaign."""
    words = "--on", URI, "--allow-destroy", URI, "--repeat", "3", "--output"
    for name, iops in (("before", 150), ("after", 100)):
        called(iops, "run", made.parent / "short.yaml", *words, tmp_path / name)
    gate = "compare", tmp_path / "before", tmp_path / "after", "--metric", "iops", "--confirm"
    assert "add --baseline" in call(*gate).stderr
    assert "name two campaigns" in call(*gate, made, "--baseline").stderr
    allowed = "--baseline", "--allow-destroy", URI
    assert called(150, *gate, *allowed).returncode == 0
    shutil.rmtree(tmp_path / ".confirmed")
    assert called(100, *gate, *allowed).returncode == 10
    alone = call(*gate[:-1], *allowed)
    assert "--allow-destroy is for measuring again" in alone.stderr


@pytest.mark.parametrize(
    ("again", "host", "host_again", "possible", "outcome"),
    [
        (0.19, 0.0, 0.0, 1.0, Outcome.CONFIRMED),
        (0.19, 0.1, 0.1, 1.0, Outcome.CONFIRMED),  # A host does not excuse more than its own loss
        (0.19, 0.16, 0.16, 1.0, Outcome.HOST),
        (0.40, 0.29, 0.29, 1.0, Outcome.CONFIRMED),
        (0.19, 0.2, 0.2, 0.01, Outcome.CONFIRMED),  # fio hardly needed it
        (0.19, 0.2, 0.2, 0.0, Outcome.CONFIRMED),  # flat at a limit
        (0.01, 0.2, 0.0, 1.0, Outcome.HOST),
        (0.01, 0.2, 0.0, 0.0, Outcome.GONE),
        (0.01, 0.0, 0.0, 1.0, Outcome.GONE),
        (0.01, 0.1, 0.0, 1.0, Outcome.GONE),
        (NAN, 0.2, 0.2, 1.0, Outcome.CONFIRMED),
    ],
)
def test_a_slower_host_excuses_its_own_loss(
    again: float, host: float, host_again: float, possible: float, outcome: Outcome
) -> None:
    """A loss of 20 % at first; what has no result that counts is not refuted."""
    alarm = Alarm("reads iops", 0.2, again, 0.1, host, host_again, possible, possible)
    assert alarm.outcome is outcome
    assert "reads iops: " in alarm.words


def test_what_cannot_be_measured_again_is_refused(made: Path, tmp_path: Path) -> None:
    """A repetition that was interrupted, with the command that ends it."""
    nights = Path(shutil.copytree(made, tmp_path / "all"))
    look: Sequence[str | Path] = ("trend", nights, "--metric", "iops", "--confirm")
    called(150, *look, "--allow-destroy", URI)
    journal = nights / ".confirmed" / "6-again1" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:4]))
    done = call(*look)
    assert done.returncode == 2
    assert "volbench resume" in done.stderr


def test_trends_and_comparisons_in_python_name_a_slower_host(made: Path, tmp_path: Path) -> None:
    """They have the remarks of the command line."""
    nights = Path(shutil.copytree(made, tmp_path / "all"))
    calibrated(nights)
    remarks = volbench.trend(nights, metric="iops").attrs["remarks"]
    assert "host 8 % slower (cpu) than usual in 6" in remarks
    found = volbench.compare(nights / "1", nights / "6", metric="iops")
    assert "host 8 % slower (cpu) in 6 than in 1" in found.remarks


@pytest.mark.parametrize(
    ("repeats", "base", "iops", "code"),
    [(3, 150, 100, 10), (3, 150, 150, 0), (1, 150, 100, 10), (1, 100, 150, 11)],
)
def test_a_run_is_compared_with_its_baseline(
    made: Path, tmp_path: Path, repeats: int, base: int, iops: int, code: int
) -> None:
    """Once it has ended; what is worse, also in a single run, is measured again before it fails."""
    volume = "--on", URI, "--allow-destroy", URI
    words = "run", made.parent / "short.yaml", *volume, "--repeat", str(repeats)
    called(base, *words, "--output", tmp_path / "good")
    judged = *words, "--baseline", tmp_path / "good", "--output", tmp_path / "new"
    assert "unlike --detach" in call(*judged, "--detach").stderr
    done = called(iops, *judged)
    assert done.returncode == code, done.stderr
    assert ("regression confirmed" in done.stderr) == (code == 10)
    assert "--confirm" not in done.stderr
    assert (tmp_path / ".confirmed").exists() == (code == 10)
    if code == 11:
        assert "not ruled out" not in done.stderr, "what looks faster is no possible regression"
