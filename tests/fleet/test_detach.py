"""Controllers without a terminal: hangups, campaigns in the background, and a look at them."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.command_line import everything_from, start
from tests.fleet.desk import SECOND_BYTES, Desk, check_clean, ended, heard
from tests.held_fio import held_on, release
from tests.waiting import killed_in_time, until
from volbench.api.live_rates import read_rates
from volbench.store.layout import Layout

pytestmark = pytest.mark.root


@pytest.mark.usefixtures("hangup_is_default")
def test_a_closed_terminal_does_not_stop_the_campaign(desk: Desk) -> None:
    """The controller goes on without its terminal, and can be watched from another one."""
    desk.prepare(runtime="1s", jobs=["a"])
    with held_on(desk.fleet.hosts, "^.a.$", before=True):
        process = desk.run()
        until(lambda: desk.started(2))
        process.send_signal(signal.SIGHUP)
        follow = desk.start("status", "--follow", desk.out)
        printed = heard(follow, "2 running")
        release(*desk.fleet.hosts)
        printed += ended(follow)
    assert "campaign ended: 2 finished" in printed
    assert "campaign ended" not in ended(process)
    assert desk.states() == ["finished"] * 2
    check_clean(desk.fleet.hosts)


def test_a_campaign_runs_in_the_background(desk: Desk) -> None:
    """The command returns at once; status and attach show what goes on."""
    desk.prepare(runtime="2s", jobs=["a"])
    with held_on(desk.fleet.hosts, "^.a.$"):
        told = re.search(r"Running in the background \(PID (\d+)", ended(desk.run("--detach")))
        assert told, "and it runs no module of the current folder"
        assert b"\0-P\0" in Path(f"/proc/{told[1]}/cmdline").read_bytes()
        layout = Layout(desk.out)
        controller, side = os.openpty()
        terminal = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        follower = start("status", "--follow", desk.out, stderr=side, env=terminal)
        os.close(side)
        until(lambda: len(read_rates(layout)) == 2)
        printed = ended(desk.start("status", desk.out))
        assert "running: step 1 of 1, 2 of 2 runs left, " in printed
        rate = r"vm1 .* 001-a-r1-vm1 +\d+ "
        until(lambda: re.search(rate, ended(desk.start("status", desk.out))))
        drawn = b""
        with killed_in_time(follower, patience_s=300):
            while not re.search(rb"001-a-r1-vm1: running  write \d+ IOPS", drawn):
                drawn += os.read(controller, 4096)
            release(*desk.fleet.hosts, written_bytes=2 * SECOND_BYTES)
            drawn += everything_from(controller)
        os.close(controller)
        ended(follower)
    assert b"0/2 runs, " in drawn
    assert b"campaign ended: 2 finished" in drawn
    assert desk.states() == ["finished"] * 2
    assert not layout.live_rates.exists()
    assert "is not running" in ended(desk.start("status", "--follow", desk.out), status=9)
    assert ended(desk.start("status", desk.out)).rstrip().endswith("finished")
    check_clean(desk.fleet.hosts)
