"""Controller of a campaign on hundreds of simulated hosts, and what it uses while all of them run.

Run by `fleet.py --simulated`. The hosts are simulated by `fleet_clients.py` in another process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from fleet_clients import FIRST, SimulatedChannel
from measured import Figure

MAX_THREADS = 150
MAX_MB = 400
MAX_CORES = 0.5
PROFILE = """
name: scale
jobs:
  a: {rw: randread, bs: 4k, size: 2m, runtime: 20s, time_based: 1, ioengine: psync, rate_iops: 200}
"""
_LOOK_S = 0.5
_PATIENCE_S = 900


@dataclass(frozen=True)
class Look:
    """State of the controller at one instant.

    Attributes:
        at_s: seconds since its start.
        threads: number of its threads.
        resident_mb: its memory.
        cpu_s: CPU time so far.
        started: runs that were started.
        ended: runs that have ended.
    """

    at_s: float
    threads: int
    resident_mb: float
    cpu_s: float
    started: int
    ended: int


def control(folder: Path) -> None:
    """Run the campaign, in a process of its own, over simulated channels."""
    from volbench.cli.main import main  # noqa: PLC0415 - only the child needs it
    from volbench.execute import connect  # noqa: PLC0415 - only the child needs it
    from volbench.execute.agent_executor import (  # noqa: PLC0415 - only the child needs it
        AgentExecutor,
    )

    @contextmanager
    def simulated(*_words: object, **_options: object) -> Iterator[object]:
        path = str(folder / "socket")
        yield lambda host: AgentExecutor(
            SimulatedChannel(host.name, path), work_folder=host.workdir
        )

    words = ["run", str(folder / "p.yaml"), "--inventory", str(folder / "fleet.yaml")]
    with mock.patch.object(connect, "open_ssh", simulated):
        main([*words, "--output", str(folder / "out"), "--yes"])


def scale(count: int, folder: Path) -> list[Figure]:
    """Return what the controller of a campaign on simulated hosts uses."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    _furnish(count, folder)
    here = Path(__file__).parent
    socket = folder / "socket"
    hosts = subprocess.Popen(  # noqa: S603 - fixed by this file
        [sys.executable, str(here / "fleet_clients.py"), str(socket), "0.001"]
    )
    try:
        while not socket.exists():
            time.sleep(0.05)
        looks = list(_watched(folder))
    finally:
        hosts.kill()
        hosts.wait()
    states = Counter(entry.get("state") for entry in _journal(folder))
    return _figures(count, looks, finished=states["finished"])


def _furnish(count: int, folder: Path) -> None:
    (folder / FIRST / "data").mkdir(parents=True)
    lines = ["hosts:"]
    for number in range(count):
        name = f"vm{number:03d}"
        address = f"address: 10.0.{number // 250}.{number % 250 + 1}"
        volumes = f"volumes: {{data: {folder}/{name}/data}}"
        lines.append(f"  {name}: {{{address}, workdir: {folder}/{name}/work, {volumes}}}")
    (folder / "fleet.yaml").write_text("\n".join(lines) + "\n")
    (folder / "p.yaml").write_text(PROFILE)


def _watched(folder: Path) -> Iterator[Look]:
    """Run the controller, and yield its states."""
    with (folder / "said").open("w") as said:
        began_s = time.monotonic()
        controller = subprocess.Popen(  # noqa: S603 - fixed by this file
            [sys.executable, str(Path(__file__).parent / "fleet.py"), "--control", str(folder)],
            stdout=said,
            stderr=said,
        )
        while controller.poll() is None:
            time.sleep(_LOOK_S)
            at_s = time.monotonic() - began_s
            if at_s > _PATIENCE_S:
                controller.kill()
            try:
                yield _look(controller.pid, folder, at_s)
            except (OSError, KeyError, IndexError):
                controller.poll()  # it has just ended
    if controller.returncode:
        raise RuntimeError((folder / "said").read_text()[-2000:])


def _look(pid: int, folder: Path, at_s: float) -> Look:
    text = Path(f"/proc/{pid}/status").read_text()
    status = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    entries = [entry for entry in _journal(folder) if entry["kind"] == "run"]
    return Look(
        at_s,
        int(status["Threads"]),
        int(status["VmRSS"].split()[0]) / 1e3,
        sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
        len({entry["run"] for entry in entries if "since_utc" in entry.get("process", {})}),
        len({entry["run"] for entry in entries if "reason" in entry}),
    )


def _journal(folder: Path) -> list[dict[str, Any]]:
    path = folder / "out/journal.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _figures(count: int, looks: list[Look], *, finished: int) -> list[Figure]:
    during = [look for look in looks if look.started == count and look.ended < count]
    running = [look for look in during if not look.ended] or during
    spent_s = running[-1].at_s - running[0].at_s
    cores = (running[-1].cpu_s - running[0].cpu_s) / spent_s if spent_s else 0.0
    whole = f"{looks[-1].at_s:.0f} s in all, {looks[-1].cpu_s:.0f} s of CPU"
    name = f"{count} simulated clients"
    return [
        Figure(f"{name}: runs not finished", count - finished, "", 0.5, note=whole),
        Figure(f"{name}: threads", max(look.threads for look in during), "", MAX_THREADS),
        Figure(
            f"{name}: memory while they run",
            max(look.resident_mb for look in during),
            "MB",
            MAX_MB,
            note=f"{max(look.resident_mb for look in looks):.0f} MB while it analyses the results",
        ),
        Figure(f"{name}: cores while all run", cores, "", MAX_CORES, note=f"over {spent_s:.0f} s"),
    ]
