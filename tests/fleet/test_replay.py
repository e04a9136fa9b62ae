"""Replays on real hosts over a real sshd: of one trace on all, and of each host's own recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.extensions.traces.replayed_traces import SPAN_BYTES, make_trace
from tests.fleet.desk import check_clean
from tests.fleet.hosts import Fleet
from tests.fleet.texts import USER
from volbench.extensions.traces.trace_file import read_rows

pytestmark = [pytest.mark.root, pytest.mark.real_time]


def _options(hosts: Fleet, folder: Path, user: str = "root") -> tuple[str | Path, ...]:
    inventory = folder / "fleet.yaml"
    lines = (f"  vm{host.number}: {{address: {host.address}}}\n" for host in hosts.hosts)
    sudo = "" if user == "root" else "sudo: yes, "
    defaults = f"{{user: {user}, {sudo}key: {hosts.key}, volumes: {{data: /var/tmp}}}}"
    inventory.write_text(f"defaults: {defaults}\nhosts:\n{''.join(lines)}")
    known = ("--known-hosts", hosts.known_hosts)
    return ("--inventory", inventory, *known, "--set", "direct=0", "-o", folder / "replay")


def test_each_host_replays_its_own_recording(hosts: Fleet, tmp_path: Path) -> None:
    """All requests arrive on their host, the second's later by as much as they were recorded."""
    watched = tmp_path / "watched"
    for number, (ios, second) in enumerate(((400, 10), (300, 12))):
        folder = watched / f"trace-vm{number}"
        folder.mkdir(parents=True)
        make_trace(folder / "trace.parquet", ios=ios, start_utc=f"2026-11-26T08:00:{second}.000Z")
    options = _options(hosts, tmp_path)
    done = call("replay", watched, *options)
    assert done.returncode == 0, done.stderr
    assert "Trace: 300 I/Os in " in done.stderr
    table = done.stdout[done.stdout.index("Fidelity of the replay") :]
    assert table.splitlines()[1].split()[:2] == ["host", "measure"]
    rows = json.loads(call("fidelity", tmp_path / "replay", "--json").stdout)
    measures = {(row["host"], row["measure"]): row for row in rows}
    for host, count in (("vm0", 400), ("vm1", 300)):
        assert measures[host, "requests"]["replayed"] == count
        assert measures[host, "bytes"]["met"] is True
        assert measures[host, "reads"]["met"] is True
    campaign = volbench.open_campaign(tmp_path / "replay")
    firsts = [
        [read_rows(folder / "trace.parquet", ["time_ns"])[0][0].as_py() for folder in folders]
        for folders in (
            (watched / "trace-vm0", watched / "trace-vm1"),
            (tmp_path / "replay" / "replay" / "1", tmp_path / "replay" / "replay" / "2"),
        )
    ]
    recorded, replayed = (second - first for first, second in firsts)
    assert replayed == 2 * 10**9 + recorded
    durations = dict(
        zip(*(campaign.summary()[name] for name in ("host", "runtime_s")), strict=True)
    )
    assert 2.0 < durations["vm1"] < 20.0  # fio counts from its own start, not from the gate
    assert call("check", "--files", tmp_path / "replay").returncode == 0
    check_clean(hosts.hosts)


def test_a_replay_runs_in_the_background_by_sudo(hosts: Fleet, tmp_path: Path) -> None:
    """Another controller sends the logs, and fio is started as root after the gate."""
    trace, folder = make_trace(tmp_path / "trace.parquet"), tmp_path / "replay"
    begun = call("replay", trace, *_options(hosts, tmp_path, USER), "--detach")
    assert begun.returncode == 0, begun.stderr
    followed = call("status", "--follow", folder)
    assert followed.returncode == 0, followed.stderr
    rows = json.loads(call("fidelity", folder, "--json").stdout)
    assert [row["replayed"] for row in rows if row["measure"] == "requests"] == [400, 400]
    check_clean(hosts.hosts)


def test_one_trace_is_replayed_on_a_device_of_a_host_with_consent(
    hosts: Fleet, loop: str, tmp_path: Path
) -> None:
    """Without the consent for that host nothing starts; a host without a recording is refused."""
    trace = make_trace(tmp_path / "trace.parquet")
    options = (*_options(hosts, tmp_path), "--limit", "vm0")
    refused = call("replay", trace, "--on", loop, *options)
    assert refused.returncode == 3, refused.stderr
    done = call("replay", trace, "--on", loop, "--allow-destroy", f"vm0:{loop}", *options)
    assert done.returncode == 0, done.stderr
    job = (tmp_path / "replay" / "runs" / "001-replay-r1-vm0" / "job.fio").read_text()
    assert job.count(f"replay_redirect={loop}\n") == 16
    assert f"size={SPAN_BYTES}" not in job  # as much as the trace needs
    rows = json.loads(call("fidelity", tmp_path / "replay", "--json").stdout)
    assert {row["replayed"] for row in rows if row["measure"] == "requests"} == {400}
    (tmp_path / "w" / "trace-vm1").mkdir(parents=True)
    make_trace(tmp_path / "w" / "trace-vm1" / "trace.parquet")
    lacking = call("replay", tmp_path / "w", *options)
    assert lacking.returncode == 2
    assert "has no recording of vm0; it has trace-vm1" in lacking.stderr
    assert "--map RECORDED=vm0" in lacking.stderr
    mapped = call("replay", tmp_path / "w", *options, "--map", "vm1=vm0", "--dry-run")
    assert mapped.returncode == 0, mapped.stderr
    unknown = call("replay", tmp_path / "w", *options, "--map", "vm1=vm9", "--dry-run")
    assert (unknown.returncode, "--map names the host 'vm9'" in unknown.stderr) == (2, True)
    check_clean(hosts.hosts)
