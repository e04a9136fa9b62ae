"""Passwords are in no file of a campaign and in nothing that volbench prints."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.waiting import PATIENCE_S, until
from volbench.model.profile.secret_values import MASK

SECRET = "hunter2-correct-horse"  # noqa: S105 - of a server of the test's own
PROFILE = """\
name: p
sample: 0
device_sample: 0
defaults: {bs: 64k, size: 1m}
jobs:
  reads: {rw: read}
  writes: {rw: write}
"""
"""The server refuses to be written."""


def answers(port: int) -> bool:
    """Return whether a server listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def export() -> Iterator[str]:
    """Serve 16 MiB by nbdkit, and return host and port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = ["-f", "-i", "127.0.0.1", "-p", str(port), "-r", "memory", "16M"]
    server = subprocess.Popen(["nbdkit", "--exit-with-parent", *arguments])
    try:
        until(lambda: answers(port))
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait(PATIENCE_S)


def leaks(folder: Path) -> list[str]:
    """Return the files below a folder that hold the secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_password_is_neither_stored_nor_printed(
    tmp_path: Path, export: str, volbench: Volbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resume takes it from the environment, and refuses to go on without it."""
    target, out = f"nbd://user:{SECRET}@{export}/", tmp_path / "out"
    (tmp_path / "p.yaml").write_text(PROFILE)
    done = volbench("run", "p.yaml", "--on", target, "--allow-destroy", target, "-o", "out")
    assert done.returncode == 9, done.stderr
    printed = done.stdout + done.stderr
    for verb in ("show", "status", "check", "report"):
        shown = volbench(verb, out)
        printed += shown.stdout + shown.stderr
    assert SECRET not in printed
    assert leaks(out) == []
    assert len(list(out.rglob("fio.json*"))) == 2
    jobs = [path.read_text() for path in out.rglob("job.fio")]
    assert jobs
    assert all(f"uri=nbd://user:${{VOLBENCH_DATA_PASSWORD}}@{export}/" in job for job in jobs)
    assert f"nbd://user:{MASK}@{export}/" in (out / "campaign.json").read_text()

    refused = volbench("resume", out, "--retry-failed")
    assert refused.returncode == 2, refused.stderr
    assert "VOLBENCH_DATA_PASSWORD" in refused.stderr
    monkeypatch.setenv("VOLBENCH_DATA_PASSWORD", SECRET)
    again = volbench("resume", out, "--retry-failed")
    assert again.returncode == 9, again.stderr
    assert leaks(out) == []
    assert SECRET not in again.stdout + again.stderr


def test_an_imported_result_is_masked(tmp_path: Path, volbench: Volbench) -> None:
    """The options in fio's JSON come from another user's job file."""
    case = Path(__file__).parents[1] / "cases"
    source = case / "fio-3.33/fsync-latency/stdout"
    text = source.read_text()
    options = f'"http_pass" : "{SECRET}", "uri" : "nbd://u:{SECRET}@h/x", "rw"'
    (tmp_path / "result.json").write_text(text.replace('"rw"', options, 1))
    done = volbench("import", "result.json", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert leaks(tmp_path / "out") == []
    assert SECRET not in done.stdout + done.stderr


def test_inventories_and_errors_show_no_password(tmp_path: Path, volbench: Volbench) -> None:
    """A host's target is shown masked, and so is a target in an error message."""
    target = f"nbd://user:{SECRET}@h/x"
    text = f'hosts:\n  vm1: {{address: 192.0.2.1, volumes: {{data: "{target}"}}}}\n'
    (tmp_path / "fleet.yaml").write_text(text)
    shown = [
        volbench("hosts", "--list", "--inventory", "fleet.yaml", *more)
        for more in ((), ("--json",))
    ]
    assert [done.returncode for done in shown] == [0, 0], shown[0].stderr
    assert all(MASK in done.stdout for done in shown)
    failed = volbench("run", "quick", "--on", f"nosuchrole={target}")
    assert failed.returncode
    printed = [text for done in (*shown, failed) for text in (done.stdout, done.stderr)]
    assert not any(SECRET in text for text in printed)
