"""Watches of a loop device whose load is known to the request, and marks."""

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

import volbench
from tests.command_line import COMMAND, call, start
from tests.extensions.monitoring.prometheus_server import free_port
from tests.extensions.watching.loaded import LONGEST, loaded
from tests.loopback_fleet import loopback_fleet
from tests.waiting import PATIENCE_S, until
from volbench.extensions.watching.user_marks import running_watches

pytestmark = pytest.mark.slow

READS, WRITES = 100, 50


def load(device: str) -> None:
    """Read and write a device, past the page cache."""
    copies: Sequence[Sequence[str]] = (
        (f"if={device}", "of=/dev/null", "bs=64k", f"count={READS}", "iflag=direct"),
        ("if=/dev/zero", f"of={device}", "bs=4k", f"count={WRITES}", "oflag=direct"),
    )
    for copy in copies:
        subprocess.run(["dd", *copy], check=True, capture_output=True, timeout=300)


def log_of(loop: str, into: Path, *, samples: int) -> Path:
    """Return the log of a disk once it has some samples."""
    log = into / "runs" / f"001-watch-r1-{Path(loop).name}" / "device.log"
    until(lambda: log.exists() and log.read_text().count("\n.\n") >= samples)
    return log


def watched(loop: str, into: Path, *options: str) -> str:
    """Watch a device while it is read and written; return what was printed."""
    with loaded(into, lambda: load(loop), before=4, after=4):
        done = call("watch", "--on", loop, *LONGEST, "--every", "200ms", "-o", into, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.smoke
def test_every_request_of_a_load_is_counted(loop: str, tmp_path: Path) -> None:
    """Requests and bytes of each direction are exact, and all verbs say that it was watched."""
    printed = watched(loop, tmp_path / "w")
    assert "watched, read" in printed
    opened = volbench.open_campaign(tmp_path / "w")
    summary = opened.summary().set_index("direction")
    assert summary["total_ios"].to_dict() == {"read": READS, "write": WRITES}
    assert summary["io_bytes"].to_dict() == {"read": READS * 65536, "write": WRITES * 4096}
    assert set(zip(summary["tool"], summary["rw"], strict=True)) == {("watch", "watched")}
    assert (summary["lat_mean_s"].dropna() > 0).all()  # the kernel counts whole milliseconds
    assert summary["lat_p99_s"].isna().all()
    device, series = opened.frame("device").query("level == 'volume'"), opened.series()
    seen = (device["read_iops"] * device["interval_s"]).sum()
    assert seen == pytest.approx(READS)
    assert series["iops"].max() == pytest.approx(device[["read_iops", "write_iops"]].max().max())
    assert device["write_merges_per_s"].notna().all()
    assert device["read_request_bytes"].max() == 65536
    assert call("check", "--files", tmp_path / "w").returncode == 0
    checked = call("check", tmp_path / "w")
    assert "host-noise" not in checked.stdout
    assert "not-steady" not in checked.stdout
    assert call("plot", "device", tmp_path / "w", "-o", tmp_path / "d.svg").returncode == 0
    assert "fio" not in (tmp_path / "d.svg").read_text()
    page = tmp_path / "page.html"
    recorded = Path(__file__).parents[2] / "campaigns" / "format-1"
    recorded = shutil.copytree(recorded, tmp_path / "recorded")
    assert call("report", tmp_path / "w", recorded, "-o", page).returncode == 0
    assert f"w: {Path(loop).name}: " in page.read_text()
    resumed = call("resume", tmp_path / "w")
    assert resumed.returncode == 3
    assert "is a watch, which cannot be resumed" in resumed.stderr


def test_ctrl_c_saves_everything(loop: str, tmp_path: Path) -> None:
    """A mark of another terminal is on the time axis, and its text cannot forge a line."""
    into, state = tmp_path / "w", tmp_path / "state"
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    process = start("watch", "--on", loop, "--every", "200ms", "-o", into, env=environment)
    log = log_of(loop, into, samples=4)
    text = "vm 7 started\n! ended\nT 1 1"
    marked = start("watch", "--mark", text, into, env=environment)
    _, problem = marked.communicate(timeout=300)
    assert marked.returncode == 0, problem
    until(lambda: "vm 7 started" in log.read_text())
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "campaign folder" in errors
    assert "watched" in printed
    opened = volbench.open_campaign(into)
    (mark,) = opened.frame("marks").to_dict("records")
    assert mark["text"] == "vm 7 started ! ended T 1 1"
    assert 0 < mark["t_s"] < opened.frame("device")["t_s"].max() + 1
    assert not log.exists()
    assert call("plot", "device", into, "-o", tmp_path / "s.svg").returncode == 0
    assert "vm 7 started" in (tmp_path / "s.svg").read_text()


def test_a_killed_watch_keeps_its_samples(loop: str, tmp_path: Path) -> None:
    """Once resume has recorded its end; what still runs, and what has ended, is refused."""
    into = tmp_path / "w"
    process = subprocess.Popen([*COMMAND, "watch", "--on", loop, "--every", "200ms", "-o", into])
    log = log_of(loop, into, samples=3)
    running = call("resume", into)
    assert running.returncode == 7
    assert "another volbench process is running" in running.stderr
    assert f"or stop it: kill {process.pid}" in running.stderr
    load(loop)
    seen = log.read_text().count("\n.\n")
    until(lambda: log.read_text().count("\n.\n") > seen + 1)
    process.kill()
    process.wait(PATIENCE_S)
    concluded = call("resume", into)
    assert concluded.returncode == 0, concluded.stderr
    assert "the watch was killed: its samples until then are kept" in concluded.stderr
    assert "watched" in concluded.stdout
    summary = volbench.open_campaign(into).summary().set_index("direction")
    assert summary["total_ios"].to_dict() == {"read": READS, "write": WRITES}
    assert call("plot", "device", into, "-o", tmp_path / "d.svg").returncode == 0
    assert call("check", "--files", into).returncode == 0
    again = call("resume", into)
    assert again.returncode == 3
    assert "is a watch, which cannot be resumed" in again.stderr


def test_a_watch_is_scraped_while_it_runs(loop: str, tmp_path: Path) -> None:
    """Counters of its disk are served until it ends."""
    port = free_port()
    options = ("--every", "200ms", "-o", tmp_path / "w", "--metrics", str(port))
    process = subprocess.Popen([*COMMAND, "watch", "--on", loop, *options])

    def is_served() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return f'device="{Path(loop).name}"' in answer.read().decode()
        except OSError:
            return False

    until(is_served)
    log_of(loop, tmp_path / "w", samples=4)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    assert not is_served()


def test_a_mark_without_a_watch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would show it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert not running_watches()
    done = call("watch", "--mark", "vm 7 started")
    assert done.returncode == 9
    assert "no watch of this user is running" in done.stderr
    assert call("watch", "--mark", " \n ").returncode == 2


def test_hosts_of_an_inventory_are_watched(loop: str, tmp_path: Path) -> None:
    """Each has a run; only counters are read there, and no file of volbench is left."""
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        options = (*LONGEST, "--every", "300ms", "-o", tmp_path / "w", "--json")
        with loaded(tmp_path / "w", lambda: load(loop), logs=2):
            done = call("watch", "--on", loop, "--inventory", fleet.inventory, *options)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)
        assert {row["host"] for row in rows} == {"vm0", "vm1"}
        assert not fleet.work("vm0").exists()
    opened = volbench.open_campaign(tmp_path / "w")
    reads = opened.summary().query("direction == 'read'")["total_ios"]
    assert list(reads) == [READS, READS]
    assert call("plot", "storm", tmp_path / "w", "-o", tmp_path / "s.svg").returncode == 0
    assert (
        call("plot", "iops", tmp_path / "w", "--x", "host", "-o", tmp_path / "f.svg").returncode
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--on", "/proc"), "is not on a block device"),
        (("--on", "/nowhere/at/all"), "does not exist"),
        (("--every", "10ms"), "is not between 100ms and 1m"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    tmp_path: Path, arguments: Sequence[str], message: str
) -> None:
    """Before a folder is made."""
    done = call("watch", *arguments, "--for", "1s", "-o", tmp_path / "w")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "w").exists()
