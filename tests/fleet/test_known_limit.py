"""Totals of hosts that share storage with a known limit, while clocks are wrong, set or slewed."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench
from tests.fleet.desk import Desk, gate_has
from tests.fleet.hosts import Fleet, RealHost, call, fleet
from tests.fleet.texts import FILES
from tests.held_fio import held_on, release
from tests.waiting import PATIENCE_S, until
from volbench.extensions.lab.scenario import load_scenario
from volbench.extensions.lab.server import serve

pytestmark = [pytest.mark.root, pytest.mark.slow]

_LIMIT_IOPS = 300
_STORAGE = f"""
name: limited
size: 8m
service: {{read: 1ms, write: 1ms}}
limits: {{iops: {_LIMIT_IOPS}}}
"""
_JOB = "rw: randread, bs: 4k, runtime: 6s, time_based: 1, ioengine: libaio, iodepth: 4, direct: 1"
_WRITE = "--name=w --rw=write --bs=256k --ioengine=libaio --direct=1 --filename"


@pytest.fixture(name="hosts", scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out three hosts with one limited disk; the clock of the second is that of a file."""
    folder = tmp_path_factory.mktemp("limit")
    with serve(load_scenario(_STORAGE, path="limited.yaml"), folder / "lab", device=True) as volume:
        call("fio", *_WRITE.split(), volume.device)
        with fleet(3, folder / "f", devices=[{"vdb": volume.device}] * 3) as found:
            place = found[1].folder / "run"
            call("cc", "-shared", "-fPIC", "-o", f"{place}/clock.so", f"{FILES}/clock.c")
            variables = "SetEnv LD_PRELOAD=/run/clock.so CLOCK=/run/clock\n"
            config = place / "fleet/sshd_config"
            config.write_text(config.read_text() + variables)
            found[1].kill_sshd()
            found[1].start_sshd()
            yield found


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, hosts: Fleet) -> Desk:
    """Hand out a desk with one job on the limited disk."""
    set_clock(hosts[1], 0)
    desk = Desk(tmp_path, hosts)
    desk.prepare()
    (tmp_path / "p.yaml").write_text(f"name: p\nsample: 500ms\njobs:\n  a: {{{_JOB}}}\n")
    inventory = tmp_path / "fleet.yaml"
    inventory.write_text(inventory.read_text().replace("/var/tmp", "/dev/vdb"))
    return desk


def set_clock(host: RealHost, ahead_s: float, gain: float = 0) -> None:
    """Set the clock of a host."""
    new = host.folder / "run/clock.new"
    new.write_text(f"{ahead_s} {gain} {time.monotonic()}")
    new.rename(host.folder / "run/clock")


def check_total(desk: Desk, process: subprocess.Popen[str]) -> None:
    """Check that a campaign ends with a total of at most the limit and 5 %."""
    printed, _ = process.communicate(timeout=3 * PATIENCE_S)
    assert process.returncode == 0, printed
    (step,) = volbench.open_campaign(desk.out).frame("aggregate").to_dict("records")
    assert step["iops"] <= 1.05 * _LIMIT_IOPS, step
    assert step["overlap_s"] > 3.5, step  # clocks that are off by 3 s leave less of 6 s


@pytest.mark.parametrize(
    ("before_s", "after_s", "gain"),
    [(3, 0, 0), (0, -3, 0), (0, -300, 0), (-3, -3, 0), (0, 0, 5e-4)],
)
def test_the_clock_of_a_host_changes_no_total(
    desk: Desk, before_s: float, after_s: float, gain: float
) -> None:
    """It is off before the survey, set after it, or slewed as fast as NTP does."""
    set_clock(desk.fleet[1], before_s, gain)
    with held_on(desk.fleet.hosts, "^.a.$", before=True):
        process = desk.run()
        until(lambda: desk.started(3))
        set_clock(desk.fleet[1], after_s, gain)
        release(*desk.fleet.hosts)
        check_total(desk, process)
    campaign = volbench.open_campaign(desk.out)
    _, row, _ = campaign.summary().to_dict("records")
    assert row["clock_offset_s"] == pytest.approx(after_s, abs=0.1 + row["clock_bound_s"])
    moved_s = pytest.approx(after_s - before_s, abs=0.1 + 2 * row["clock_bound_s"])
    assert row["clock_moved_s"] == moved_s
    said = [each for each in campaign.findings if each["rule"] == "clock-jumped"]
    assert bool(said) is (after_s != before_s)


@pytest.mark.parametrize("by_s", [3, -3])
def test_the_clock_of_the_controller_changes_no_total(
    desk: Desk, by_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set once clients are ready, after the offsets of their hosts were measured."""
    own = desk.folder / "clock"
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(desk.fleet[1].folder / "run/clock.so"))
        patch.setenv("CLOCK", str(own))
        process = desk.run()
    until(lambda: gate_has(desk.fleet[1], "ready"))
    own.write_text(str(by_s))
    check_total(desk, process)
