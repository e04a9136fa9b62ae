"""Hosts that cannot take part for reasons of their own: each is said in plain words."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.fleet.desk import Desk, ended
from tests.fleet.hosts import RealHost, fleet

pytestmark = pytest.mark.root

_CRASHING = """#!/bin/sh
case "$*" in *--version* | *help* | *parse-only*) exec /run/fio "$@" ;; esac
kill -SEGV $$
"""


def crash_fio(host: RealHost) -> None:
    """Let every start of fio end with a segmentation fault."""
    fio = shutil.which("fio")
    assert fio is not None
    host.run("cp", fio, "/run/fio")
    (host.folder / "run/crashing").write_text(_CRASHING)
    (host.folder / "run/crashing").chmod(0o755)
    host.run("mount", "--bind", "/run/crashing", fio)


def forbid_writes(host: RealHost) -> None:
    """Let the home be read-only."""
    host.run("mount", "-o", "remount,bind,ro", "/root")


def use_up_inodes(host: RealHost) -> None:
    """Let there be space below the work folders, but no inode."""
    host.run("mkdir", "/root/.volbench")
    host.run("mount", "-t", "tmpfs", "-o", "size=100m,nr_inodes=20", "none", "/root/.volbench")


def log_in_by(line: str, host: RealHost) -> None:
    """Let logins begin with a line of a shell."""
    (host.folder / "root/.bashrc").write_text(f"{line}\n")
    accounts = host.folder / "etc/passwd"
    accounts.write_text(accounts.read_text().replace(":/root:/bin/sh", ":/root:/bin/bash"))


EXPIRED = "echo Password change required but no TTY available. >&2; exit 1"


def lose_large_packets(host: RealHost) -> None:
    """Drop what is longer than 600 bytes on the way, without a word."""
    host.switch.inside("ip", "link", "set", f"p{host.number}.{host.boots}", "mtu", "600")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Iterator[Desk]:
    with fleet(2, tmp_path / "f") as found:
        yield Desk(tmp_path, found)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (crash_fio, ["killed by signal 11 (Segmentation fault)", "try there as that user: /"]),
        (forbid_writes, ["/root/.volbench", "Read-only file system"]),
        (use_up_inodes, ["/root/.volbench", "only 0 bytes are free", "df -i"]),
        (partial(log_in_by, "ulimit -n 12"), ["Too many open files"]),
        (partial(log_in_by, EXPIRED), ["the password or the account of the user has expired"]),
        (lose_large_packets, ["large packets may be lost on the way"]),
        (partial(log_in_by, "ulimit -v 60000"), ["not enough memory for survey: see ulimit -v"]),
    ],
)
def test_what_is_wrong_with_hosts_is_said(
    desk: Desk, fault: Callable[[RealHost], None], words: list[str]
) -> None:
    """Of all hosts at once, with the path or limit in question, by probe and before a run."""
    desk.prepare(runtime="1s", jobs=["a"])
    for host in desk.fleet.hosts:
        fault(host)
    probed = " ".join(ended(desk.start("hosts", "--inventory", "fleet.yaml"), status=9).split())
    process = desk.run()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode in {3, 4, 9}, printed
    assert "Traceback" not in printed
    assert all(word in probed for word in words), probed
    assert words[0] in " ".join(printed.split()), printed
