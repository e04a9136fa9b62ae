"""Campaigns whose hosts do not come back: the others are settled, and what is left is named."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench
from tests.fleet.desk import SECOND_BYTES, Desk, check_clean, ended, fios, gate_has
from tests.fleet.hosts import fleet
from tests.held_fio import held_on, release
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.root


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk whose controller was killed in the first step, after vm1 lost its power."""
    with fleet(2, tmp_path / "f") as found:
        desk = Desk(tmp_path, found)
        yield begun(desk, is_endless=False)


def begun(desk: Desk, *, is_endless: bool = True) -> Desk:
    """Start a campaign, take the power of vm1, and kill the controller."""
    desk.prepare(runtime="1s")
    with held_on(desk.fleet.hosts, "^.a.$"):
        process = desk.run()
        until(lambda: all(gate_has(host, "woke") for host in desk.fleet.hosts))
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        desk.fleet[1].power_off()
        if not is_endless:
            release(desk.fleet[0], written_bytes=SECOND_BYTES)
    return desk


def states(desk: Desk) -> list[str]:
    """Return the states of the runs of vm0, then those of vm1."""
    notes = volbench.open_campaign(desk.out).runs
    return [str(notes[name].state) for name in sorted(notes, key=lambda name: name[-1])]


def test_resume_settles_what_it_can_reach(desk: Desk) -> None:
    """One command after the other: settled without vm1, gone on without it, and given up."""
    assert "running" not in ended(desk.start("status", desk.out), status=9)
    assert " interrupted" in ended(desk.start("show", desk.out))
    printed = ended(desk.start("resume", desk.out), status=4)
    assert "2 runs left there" in printed
    assert states(desk) == ["finished", "planned", "interrupted", "planned"]
    resume = f"volbench resume --known-hosts {desk.fleet.known_hosts} {desk.out}"
    assert f"if vm1 is gone for good, give it up: {resume} --without vm1" in printed
    printed = ended(desk.start("resume", desk.out, "--policy", "best-effort"), status=9)
    assert resume in printed
    assert states(desk) == ["finished", "finished", "interrupted", "planned"]
    printed = ended(desk.start("resume", desk.out, "--without", "vm1"))
    assert "vm1 is given up; runs lost: 2" in printed
    assert "nothing to resume" in printed
    assert states(desk) == ["finished", "finished", "lost", "lost"]
    assert "2 runs were lost: vm1 was given up" in ended(desk.start("show", desk.out))
    clean = "status", "--clean", desk.out
    assert "not cleaned up: vm1 cannot be reached" in ended(desk.start(*clean), status=4)
    desk.fleet[1].power_on()
    ended(desk.start(*clean))
    check_clean(desk.fleet.hosts)


def test_reap_cleans_what_it_can_reach(desk: Desk) -> None:
    """Nothing goes on where the controller gets to, and the other host is named."""
    ended(desk.start("status", "--clean", desk.out), status=4)
    check_clean(desk.fleet.hosts[:1])
    assert states(desk)[:2] == ["interrupted", "planned"]
    ended(desk.start("status", "--clean", desk.out, "--limit", "vm0"))
    ended(desk.start("resume", desk.out, "--limit", "vm0"), status=9)
    assert states(desk) == ["finished", "finished", "interrupted", "planned"]


def test_hosts_are_cleaned_without_the_folder_of_the_campaign(tmp_path: Path) -> None:
    """What its records on the hosts name is listed, and removed once that is confirmed."""
    with fleet(2, tmp_path / "f") as found:
        desk = begun(Desk(tmp_path, found))
        shutil.rmtree(desk.out)
        clean = ("hosts", "--inventory", "fleet.yaml", "--clean")
        listed = ended(desk.start(*clean, "--limit", "vm0"), status=3)
        assert "vm0: 1 run active, /root/.volbench/" in listed
        assert ", /var/tmp/volbench-" in listed
        assert "vm1 cannot be reached" in ended(desk.start(*clean, "--yes"), status=4)
        check_clean(found.hosts[:1])
        assert "volbench-" not in found[0].run("ls", "/var/tmp", "/tmp")


def test_a_campaign_with_a_controller_is_not_cleaned_away(tmp_path: Path) -> None:
    """A second operator is refused, hears where to look, and the campaign goes on unharmed."""
    with fleet(1, tmp_path / "f") as found:
        desk = Desk(tmp_path, found)
        desk.prepare(runtime="1s", jobs=["a"])
        with held_on(found.hosts, "^.a.$"):
            process = desk.run()
            until(desk.started)
            clean = ("hosts", "--inventory", "fleet.yaml", "--clean", "--yes")
            refused = ended(desk.start(*clean), status=3)
            release(found[0], written_bytes=SECOND_BYTES)
        ended(process)
        assert "1 run active, its controller is alive, /root/.volbench/" in refused
        assert re.search(r"a controller runs \d{17}-\w{8} on vm0 now: nothing was re", refused)
        assert desk.states() == ["finished"]


def test_reap_ends_a_run_that_only_a_damaged_journal_names(tmp_path: Path) -> None:
    """Its process is found in the campaign's folder on the host; none is invented."""
    with fleet(2, tmp_path / "f") as found:
        desk = begun(Desk(tmp_path, found))
        journal = desk.out / "journal.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        place = next(number for number, line in enumerate(lines) if '"running"' in line)
        journal.write_text("".join([*lines[:place], "rubbish}\n", *lines[place + 1 :]]))
        (desk.out / "runs/002-b-r1-vm0").mkdir()  # was about to start
        printed = ended(desk.start("status", "--clean", desk.out, "--limit", "vm0"), status=7)
        assert f"journal.jsonl:{place + 1} was not signed" in printed
        assert fios(desk.fleet.hosts[0]) == []
        notices = [line for line in printed.splitlines() if "ended on" in line]
        assert notices == ["note: 001-a-r1-vm0: ended on vm0"], printed
