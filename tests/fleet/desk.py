"""Controller's desk: campaigns started as a user does, and what they leave on the test hosts."""

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import volbench
from tests.command_line import start
from tests.fleet.hosts import Fleet, RealHost
from tests.waiting import PATIENCE_S, killed_in_time

JOBS = ("a", "b")
CONNECTING = {"hosts", "run", "resume", "--clean"}
"""Words of commands that connect to hosts."""
RUNTIME_S = 4  # shortest that a test asks for when it checks results
SECOND_BYTES = 200 * 4096  # that a job moves in a second
HEAD = """
name: p
sample: 500ms
device_sample: 500ms
defaults: {{size: 2m, runtime: {runtime}, time_based: 1, ioengine: psync, rate_iops: 200}}
jobs:
"""
READS_OR_WRITES = {"a": "  a: {rw: randwrite, bs: 4k}\n", "b": "  b: {rw: randread, bs: 4k}\n"}


@dataclass(frozen=True)
class Desk:
    """Where the controller sits: a profile, an inventory, and a folder for results."""

    folder: Path
    fleet: Fleet
    name: str = "c"

    @property
    def out(self) -> Path:
        """The campaign folder."""
        return self.folder / self.name

    def prepare(
        self,
        *,
        runtime: str = f"{RUNTIME_S}s",
        extra: str = "",
        user: str = "root",
        defaults: str = "",
        jobs: Sequence[str] = JOBS,
        ports: Mapping[int, int] | None = None,
    ) -> None:
        """Write profile and inventory.

        Args:
            runtime: of each job.
            extra: more hosts.
            user: who logs in.
            defaults: more keys that hold for all hosts.
            jobs: a writes, b reads.
            ports: of 127.0.0.1, through which the hosts with these numbers are reached.
        """
        text = HEAD.format(runtime=runtime) + "".join(READS_OR_WRITES[name] for name in jobs)
        (self.folder / "p.yaml").write_text(text)
        common = [f"user: {user}", f"key: {self.fleet.key}", "volumes: {data: /var/tmp}"]
        lines = [f"defaults: {{{', '.join([*common, *filter(None, [defaults])])}}}", "hosts:"]
        for host in self.fleet.hosts:
            port = (ports or {}).get(host.number)
            address = f"127.0.0.1, port: {port}" if port else host.address
            lines.append(
                f"  vm{host.number}: {{address: {address}, labels: {{rack: r{host.number}}}}}"
            )
        (self.folder / "fleet.yaml").write_text("\n".join([*lines, extra]) + "\n")

    def start(self, verb: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start volbench as a user would."""
        is_connecting = CONNECTING & {verb, *map(str, arguments)}
        known = ("--known-hosts", str(self.fleet.known_hosts)) if is_connecting else ()
        return start(verb, *arguments, *known, cwd=self.folder, stderr=subprocess.STDOUT)

    def run(self, *more: str) -> subprocess.Popen[str]:
        """Start the campaign."""
        return self.start("run", "p.yaml", "--inventory", "fleet.yaml", "--output", self.out, *more)

    def states(self) -> list[str]:
        """Return the states of all runs."""
        return [str(note.state) for note in volbench.open_campaign(self.out).runs.values()]

    def started(self, count: int = 1) -> bool:
        """Return whether so many processes were started."""
        reported = [entry.get("process", {}) for entry in self.journal()]
        return sum("handle" in item and "launched" not in item for item in reported) >= count

    def ended_runs(self) -> set[str]:
        """Return the runs that have come to an end, however."""
        ends = {"finished", "failed", "interrupted"}
        return {str(entry["run"]) for entry in self.journal() if entry.get("state") in ends}

    def journal(self) -> list[dict[str, Any]]:
        """Return what is written down so far."""
        path = self.out / "journal.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]


def ended(process: subprocess.Popen[str], status: int = 0) -> str:
    """Return what a process said, after it ended as it should."""
    try:
        said, _ = process.communicate(timeout=3 * PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
        raise AssertionError(f"it does not end: {said}") from None
    assert process.returncode == status, said
    return said


def heard(process: subprocess.Popen[str], words: str) -> str:
    """Return what a process printed up to the line with some words."""
    assert process.stdout is not None
    lines = []
    with killed_in_time(process):
        for line in process.stdout:
            lines.append(line)
            if words in line:
                return "".join(lines)
    raise AssertionError(f"it ended without {words!r}: {''.join(lines)}")


def fios(host: RealHost) -> list[str]:
    """Return the processes of fio and of samplers on a host."""
    reported = host.run("ps", "-ww", "-eo", "pid=,args=").splitlines()
    return [line for line in reported if "fio " in line or "sample" in line]


def gate_has(host: RealHost, name: str, *, step: int = 1) -> bool:
    """Return whether a file is in the start gate of a step on a host."""
    with suppress(FileNotFoundError):  # folders of the preflight go away meanwhile
        return any((host.folder / "root/.volbench").glob(f"*/{step:03}-*/gate/{name}"))
    return False


def check_clean(hosts: Sequence[RealHost]) -> None:
    """Check that nothing of volbench runs or lies on the hosts."""
    for host in hosts:
        assert fios(host) == []
        left = host.run("sh", "-c", "find /root/.volbench /var/tmp -type f 2>/dev/null || true")
        assert left.strip() == "", left


def check_once(desk: Desk) -> None:
    """Check that every run finished, in one attempt, with all of its numbers.

    No rate is judged: all hosts share our cores, and a stall over the end of a run lowers it.
    """
    campaign = volbench.open_campaign(desk.out)
    assert desk.states() == ["finished"] * len(desk.fleet.hosts) * len(JOBS)
    assert not list(desk.out.glob("runs/*/attempts"))
    summary = campaign.summary()
    assert (summary["iops"] > 0).all()
    assert (summary["runtime_s"] >= 0.95 * RUNTIME_S).all()
    assert summary["label_rack"].tolist() == [f"r{n}" for n in range(3)] * len(JOBS)
    series = campaign.series().groupby("run")["iops"].count()
    assert (series >= 2).all()  # an interval in which a busy machine did no I/O has no entry
    assert set(campaign.frame("device")["run"]) == set(campaign.runs)
