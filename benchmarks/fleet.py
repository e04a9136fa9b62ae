"""Measure what a fleet costs its controller, and how closely its hosts start together.

    PYTHONPATH=. python benchmarks/fleet.py [--hosts N]

Real hosts are made: one network namespace with its own sshd each (see tests/fleet/hosts.py), so
this needs root. One job on all of them costs the controller so much, beside what else starts fio on
many hosts (`fleet_rivals.py`), and at long round trips; 1 where a goal is missed. Other figures:

    --skew       spread of the first I/O, from fio's own logs, with volbench's common start and
                 with fio started on all hosts by plain parallel ssh
    --storm      wall time, CPU time and peak memory of the controller of a boot storm
    --simulated  what a campaign on simulated hosts costs its controller
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fleet_rivals import costs, delay
from fleet_scale import control, scale
from measured import print_figures
from tests.fleet.hosts import Fleet, fleet

PAIRS = 5
JOB = ("--rw=randread", "--bs=4k", "--size=4m", "--runtime=2", "--time_based", "--ioengine=psync")
LOGS = ("--write_iops_log=start", "--log_unix_epoch=1", "--log_avg_msec=0")
PROFILE = """
name: skew
sample: 100ms
device_sample: 0
jobs:
  a: {rw: randread, bs: 4k, size: 4m, runtime: 2s, time_based: 1, ioengine: psync}
"""


def inventory(hosts: Fleet, folder: Path) -> Path:
    """Write the hosts down."""
    lines = [f"defaults: {{user: root, key: {hosts.key}, volumes: {{data: /var/tmp}}}}", "hosts:"]
    lines += [f"  vm{host.number:02d}: {{address: {host.address}}}" for host in hosts.hosts]
    path = folder / "fleet.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def volbench(*arguments: str | Path) -> tuple[float, int]:
    """Run volbench; return its CPU seconds, with its children's, and the peak of its memory."""
    process = subprocess.Popen(  # noqa: S603 - fixed by this file
        [sys.executable, "-m", "volbench", *map(str, arguments)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"volbench ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def storm(count: int, folder: Path) -> None:
    """Run a short boot storm on many hosts in one command."""
    with fleet(count, folder / "f") as hosts:
        short = ["stagger=1s", "vm.boot.runtime=5s", "vm.after.runtime=10s", "size=8m"]
        settings = [part for setting in short for part in ("--set", setting)]
        settings += ["--set", "clients=1", "--inventory", str(inventory(hosts, folder))]
        known = ["--known-hosts", str(hosts.known_hosts), "--output", str(folder / "storm")]
        before = os.times().elapsed
        cpu_s, peak_bytes = volbench("run", "boot-storm", *settings, *known)
        wall_s = os.times().elapsed - before
    print(
        f"boot-storm on {count} hosts: {wall_s:.0f} s,"
        f" controller {cpu_s:.1f} s of CPU, {peak_bytes / 1e6:.0f} MB at its peak"
    )


def first_ios_s(logs: list[str]) -> list[float]:
    """Return when the first I/O of each host ended, from the first line of its log."""
    return [int(log.split(",")[0]) / 1000 for log in logs]


def together(hosts: Fleet, folder: Path, number: int) -> float:
    """Return the spread of the first I/Os under volbench, in seconds."""
    profile = folder / "skew.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    out = folder / f"together-{number}"
    listed = inventory(hosts, folder)
    known = ["--known-hosts", str(hosts.known_hosts)]
    volbench("run", profile, "--inventory", listed, *known, "--output", out)
    logs = []
    for path in sorted(out.glob("runs/*/series_iops.1.log.zst")):
        done = subprocess.run(  # noqa: S603 - fixed by this file
            ["zstd", "-dc", str(path)],  # noqa: S607 - the usual one
            capture_output=True,
            text=True,
            check=True,
        )
        logs.append(done.stdout)
    starts = first_ios_s(logs)
    return max(starts) - min(starts)


def plain(hosts: Fleet) -> float:
    """Return the same with a plain parallel start by ssh."""
    fixed = ["-i", str(hosts.key), "-o", f"UserKnownHostsFile={hosts.known_hosts}"]

    def start(address: str) -> str:
        command = " ".join(
            ["cd /tmp && fio --name=a", *JOB, *LOGS, ">/dev/null && head -1 start_iops.1.log"]
        )
        done = subprocess.run(  # noqa: S603 - fixed by this file
            ["ssh", *fixed, f"root@{address}", command],  # noqa: S607 - the usual one
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    with ThreadPoolExecutor(len(hosts.hosts)) as pool:
        starts = first_ios_s(list(pool.map(start, [host.address for host in hosts.hosts])))
    return max(starts) - min(starts)


def skew(count: int, folder: Path) -> None:
    """Compare both starts, in turn."""
    with fleet(count, folder / "g") as hosts:
        plain(hosts)  # lays out the files
        pairs = [(together(hosts, folder, number), plain(hosts)) for number in range(PAIRS)]
    ours, theirs = (sorted(times)[PAIRS // 2] for times in zip(*pairs, strict=True))
    print(
        f"start skew over {count} hosts: {1000 * ours:.0f} ms together,"
        f" {1000 * theirs:.0f} ms by plain parallel ssh: {ours / theirs:.2f} of it"
        f" (medians of {PAIRS}; {[f'{1000 * a:.0f}/{1000 * b:.0f}' for a, b in pairs]})"
    )


def cost(count: int, folder: Path) -> int:
    """Print what one job costs, beside rivals; return the exit status."""
    with fleet(count, folder / "f") as hosts:
        return print_figures([*costs(hosts, folder), *delay(hosts, folder)])


def main() -> int:
    """Measure and print; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=8, metavar="N")
    parser.add_argument("--control", type=Path, help=argparse.SUPPRESS)
    for name in ("skew", "storm", "simulated"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    if given.control:  # this program's own controller, in a process of its own
        control(given.control)
        return 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if given.simulated:
            return print_figures(scale(given.hosts, folder))
        if not (given.skew or given.storm):
            return cost(given.hosts, folder)
        if given.skew:
            skew(given.hosts, folder)
        if given.storm:
            storm(given.hosts, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
