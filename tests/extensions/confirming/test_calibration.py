"""Calibration of a host by fio's null engine, and what comparisons say of it."""

import json
from pathlib import Path

import pandas as pd
import pytest

import volbench
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.execute.local import LocalExecutor
from volbench.extensions.confirming.host_speed import (
    calibration_command,
    parse_calibration,
    slowdown,
    speed_words,
    speeds_of,
)
from volbench.extensions.lab.scenario import load_scenario
from volbench.model.frames.columns import CALIBRATION

NAMES = [*CALIBRATION]
VOLUME = "name: made\nsize: 8m\nservice: {read: 2ms, write: 2ms, slots: 8}\nrestored: true\n"
PROFILE = "name: short\njobs: {reads: {ioengine: nbd, rw: randread, size: 8m, runtime: 1s}}\n"


def test_a_host_is_calibrated_by_fio() -> None:
    """Each I/O of the last part sleeps for 200 us; other output is no calibration."""
    done = LocalExecutor().run(calibration_command("fio"), timeout_s=300)
    cpu, timer, wakeup = parse_calibration(done.stdout)
    assert min(cpu, timer) > wakeup
    assert 0 < wakeup < 5100
    assert not parse_calibration("fio: not found")


@pytest.mark.parametrize(("runtime", "count"), [("1s", 0), ("40s", 2)])
def test_only_a_campaign_that_is_long_enough_is_calibrated(
    tmp_path: Path, runtime: str, count: int
) -> None:
    """Before and after its runs; the summary has the better of both."""
    (tmp_path / "short.yaml").write_text(PROFILE)
    words = "--on", silent_export(), "--set", f"runtime={runtime}", "--output", tmp_path / "c"
    with virtual_fio(load_scenario(VOLUME, path="made.yaml")):
        done = call("run", tmp_path / "short.yaml", *words, "--yes")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "c" / "journal.jsonl").read_text().splitlines()
    known = [entry["speeds"] for entry in map(json.loads, lines) if entry["kind"] == "calibrated"]
    assert len(known) == count
    (row,) = volbench.open_campaign(tmp_path / "c").summary()[NAMES].itertuples(index=False)
    best = [max(pair) for pair in zip(*known, strict=True)]
    assert list(row) == pytest.approx(best or [float("nan")] * 3, nan_ok=True)


def test_a_slower_host_is_named() -> None:
    """From 5 % on, and beyond what its campaigns vary by anyway."""
    usual = [(100.0, 50.0, 4.0), (101.0, 50.0, 3.0), (99.0, 51.0, 5.0)]
    assert speed_words((92.0, 49.0, 3.5), usual) == "8 % slower (cpu)"
    assert speed_words((99.0, 50.0, 2.0), usual) == ""
    assert slowdown((120.0, 60.0, 9.0), usual) == (0.0, "")
    rows = pd.DataFrame([("a", 1.0, 2.0, 3.0), ("b", *[None] * 3)], columns=["campaign", *NAMES])
    assert speeds_of(rows) == {"a": (1.0, 2.0, 3.0)}
