"""Watch of a real host and the bytes of its processes, over a real sshd."""

import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

import volbench
from tests.command_line import COMMAND, call
from tests.fleet.hosts import Fleet
from tests.waiting import Started, until

pytestmark = [pytest.mark.root, pytest.mark.slow]

READS, WRITES = 90, 40
READ_BYTES, WRITE_BYTES = READS * 65536, WRITES * 4096
# In one process that lives until the end of the watch, as a database does
LOAD = (
    "dd if={0} of=/dev/null bs=64k count=90 iflag=direct;"
    "dd if=/dev/zero of={0} bs=4k count=40 oflag=direct seek=100;"
    ": >/run/done; until [ -e /run/go ]; do sleep 0.1; done"
)


def test_a_broken_link_is_said_at_once(hosts: Fleet, loop: str, tmp_path: Path) -> None:
    """With the host and the time, and so is its return; the watch goes on meanwhile."""
    inventory = tmp_path / "fleet.yaml"
    lines = (f"  vm{host.number}: {{address: {host.address}}}\n" for host in hosts.hosts)
    inventory.write_text(
        f"defaults: {{user: root, key: {hosts.key}}}\nhosts:\n{''.join(lines)}", encoding="utf-8"
    )
    options = ("--inventory", inventory, "--known-hosts", hosts.known_hosts, "-o", tmp_path / "w")
    command = [*COMMAND, "watch", "--on", loop, "--every", "500ms", *map(str, options)]
    with Started(command, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stderr is not None
        heard(watch.stderr, "1 disk")  # a second sample of one of them
        time.sleep(2)
        began_s = time.monotonic()
        hosts[1].link(up=False)
        try:
            said = heard(watch.stderr, "vm1 does not answer")
        finally:
            hosts[1].link(up=True)
        assert time.monotonic() - began_s < 300
        assert re.match(r"\d\d:\d\d:\d\d UTC: vm1", said)
        again = heard(watch.stderr, "vm1 answers again after ")
        assert "vm0" not in said + again
        watch.send_signal(signal.SIGTERM)
        watch.communicate(timeout=300)
    assert watch.returncode == 0


def heard(stream: IO[str], words: str) -> str:
    """Return the first line with some words."""
    return next(line for line in stream if words in line)


def test_the_bytes_of_processes_on_a_real_host(hosts: Fleet, loop: str, tmp_path: Path) -> None:
    """They are those of the load, and the folder is whole."""
    inventory, into = tmp_path / "fleet.yaml", tmp_path / "w"
    host = hosts[0]
    inventory.write_text(
        f"hosts:\n  vm0: {{address: {host.address}, user: root, key: {hosts.key}}}\n"
    )
    options = ("--inventory", inventory, "--known-hosts", hosts.known_hosts, "-o", into)
    command = [*COMMAND, "watch", "--on", loop, "--every", "200ms", *map(str, options)]
    with Started(command, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stderr is not None
        assert "Press Ctrl-C" in watch.stderr.readline()
        log = into / "runs" / f"001-watch-r1-{Path(loop).name}" / "processes.log"
        until(log.exists)
        with ThreadPoolExecutor(1) as worker:
            load = worker.submit(host.run, "sh", "-c", LOAD.format(loop))
            until((host.folder / "run/done").exists)
            seen = log.read_text().count("P ")
            until(lambda: log.read_text().count("P ") > seen + 1)
            (host.folder / "run/go").touch()
            load.result()
        watch.send_signal(signal.SIGTERM)
        _, told = watch.communicate(timeout=300)
    assert watch.returncode == 0, told
    assert call("check", "--files", into).returncode == 0
    frame = volbench.open_campaign(into).frame("processes")
    assert set(frame["host"]) == {"vm0"}
    did = frame[frame["process"].isin(["sh", "dd"])]
    assert READ_BYTES <= did["read_bytes"].sum() < 2 * READ_BYTES
    assert WRITE_BYTES <= did["write_bytes"].sum() < 2 * WRITE_BYTES
