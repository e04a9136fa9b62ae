"""Campaigns that replay logs of I/Os on their volume."""

import struct
from hashlib import sha256
from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.fio.runs import run_on, section
from tests.loopback_fleet import loopback_fleet
from volbench.engine.campaign import replayed_logs
from volbench.engine.campaign.replayed_logs import with_planned_logs
from volbench.errors import InputError
from volbench.model.campaign.planned_run import VolumeKind

MIB = 1 << 20
PROFILE = """\
name: replay
defaults: {{filename: disk, ioengine: psync}}
phases:
  precondition:
    disk: {{rw: write, bs: 1m, size: 4m}}
jobs:
  replay: {{read_iolog: {log}{redirect}}}
"""


def blktrace(*, ios: int, pause_ns: int) -> bytes:
    """Return a trace as blktrace's kernel part writes it: each fourth I/O of 4 KiB is a write.

    Layout and constants are those of linux/blktrace_api.h.
    """
    queued, reads, writes = 1 << 4, 1 << 0, 1 << 1
    return b"".join(
        struct.pack(
            "<IIQQIIIIIHH",
            0x65617407,
            number,
            number * pause_ns,
            number * 64,
            4096,
            1 | (queued | (reads if number % 4 else writes)) << 16,
            1,
            8 << 20,
            0,
            0,
            0,
        )
        for number in range(ios)
    )


def fio_log(file: Path, *, ios: int, pause_us: int) -> bytes:
    """Return the same as a log of fio."""
    ways = ("write", "read", "read", "read")
    lines = (f"{n * pause_us} {file} {ways[n % 4]} {n * 32768} 4096" for n in range(ios))
    head = ("fio version 3 iolog", f"0 {file} add", f"0 {file} open")
    return "\n".join([*head, *lines, f"{ios * pause_us} {file} close", ""]).encode()


@pytest.mark.slow
def test_fio_replays_a_log_at_its_pace(tmp_path: Path) -> None:
    """Thirty reads and ten writes reach the file of the volume; the log is kept by its SHA-256."""
    log, volume, into = tmp_path / "log", tmp_path / "volume", tmp_path / "out"
    volume.mkdir()
    content = fio_log(volume / "disk", ios=40, pause_us=25_000)
    log.write_bytes(content)
    (tmp_path / "p.yaml").write_text(PROFILE.format(log=log, redirect=""))
    options = ("--on", volume, "-o", into)
    assert call("run", tmp_path / "p.yaml", *options).returncode == 3
    done = call("run", tmp_path / "p.yaml", *options, "--allow-destroy", "fio:read_iolog")
    assert done.returncode == 0, done.stderr
    summary = volbench.open_campaign(into).summary().query("phase == 'measured'")
    assert summary.set_index("direction")["total_ios"].to_dict() == {"read": 30, "write": 10}
    assert summary["runtime_s"].max() >= 0.9
    digest = sha256(content).hexdigest()
    assert digest in (into / "campaign.json").read_text()
    assert (into / "inputs" / digest).read_bytes() == content
    assert call("check", "--files", into).returncode == 0
    (into / "inputs" / digest).write_bytes(content[:-1])
    assert call("check", "--files", into).returncode == 7


@pytest.mark.slow
def test_a_binary_trace_is_sent_to_hosts(tmp_path: Path) -> None:
    """It names a device, so its I/O is redirected; clients start through a gate at one instant."""
    log = tmp_path / "boot.bin"
    log.write_bytes(blktrace(ios=40, pause_ns=25_000_000))
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        profile = PROFILE.format(log=log, redirect=", replay_redirect: data")
        (tmp_path / "p.yaml").write_text(profile)
        options = ("--inventory", fleet.inventory, "-o", tmp_path / "out")
        consent = ("--allow-destroy", "fio:read_iolog")
        done = call("run", tmp_path / "p.yaml", *options, *consent)
    assert done.returncode == 0, done.stderr
    summary = volbench.open_campaign(tmp_path / "out").summary().query("phase == 'measured'")
    counts = summary.set_index(["host", "direction"])["total_ios"].to_dict()
    assert counts == {
        (host, way): count
        for host in ("vm0", "vm1")
        for way, count in (("read", 30), ("write", 10))
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"not a log\n", "neither a log of fio"),
        (fio_log(Path("/data/other"), ios=1, pause_us=0), "names /data/other, not /data/disk"),
        (b"fio version 2 iolog\n/data/other read 0 4096\n", "names /data/other, not /data/disk"),
        (blktrace(ios=1, pause_ns=0), "names devices of the machine"),
        (fio_log(Path("/data/disk"), ios=100, pause_us=0), "exceeds the maximum"),
    ],
)
def test_logs_that_cannot_be_replayed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
) -> None:
    """When the campaign is planned; `replay_redirect` lets a log name other files."""
    monkeypatch.setattr(replayed_logs, "MAX_LOG_BYTES", 1000)
    log = tmp_path / "log"
    if content is not None:
        log.write_bytes(content)
    part = section(filename="disk", read_iolog=str(log))
    with pytest.raises(InputError, match=message) as caught:
        with_planned_logs([run_on("/data", VolumeKind.DIRECTORY, part)])
    if "names" in message:
        assert "replay_redirect: data" in caught.value.hint
        part.options["replay_redirect"] = "data"
        (run,), inputs = with_planned_logs([run_on("/data", VolumeKind.DIRECTORY, part)])
        (digest,) = inputs
        assert run.effective(run.sections[0])["read_iolog"] == f"../../inputs/{digest}"
