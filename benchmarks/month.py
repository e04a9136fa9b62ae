"""Live a month of nightly campaigns in half an hour, and check what volbench says of it.

Three real hosts (network namespaces with sshd, so this needs root) measure a simulated volume each,
night after night, as a timer would run them. What happens to them is known:

* night 9: host h2 is off; night 10: it is back
* night 13: h0 has another kernel
* from night 18 on: the volume of h1 is limited to 80 % of what is promised
* night 23: the disk of h0 is replaced by one that is as fast

Afterwards `trend`, `check`, `expect`, `audit`, `list` and `report --site` are asked what happened.
The regression must be named on its night, and nothing else may be called one. A campaign in the
first recorded format lies beside the nights, as after an upgrade. Times, sizes and answers are
printed.

    PYTHONPATH=. python benchmarks/month.py [--nights N] [--keep FOLDER | --ask FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fleet.hosts import Fleet, fleet

LOST, KERNEL, REGRESSION, REPLACED = 9, 13, 18, 23
PROMISED_IOPS = 400
SCENARIO = """
name: {name}
description: A volume of the month.
size: 32m
restored: true
service:
  read: {{latency: 4ms, sigma: 0.1}}
  write: {{latency: 4ms, sigma: 0.1}}
  slots: 8
limits: {{iops: {iops}}}
"""
PROFILE = f"""
name: nightly
repeat: 2
limits: {{iops: {PROMISED_IOPS}}}
defaults: {{bs: 4k, size: 32m, time_based: 1, runtime: 4s, ramp_time: 1s}}
jobs:
  reads: {{rw: randread, iodepth: 8}}
  writes: {{rw: randwrite, iodepth: 8}}
  single: {{rw: randread, iodepth: 1}}
expect:
  reads: {{iops: '>= {PROMISED_IOPS * 0.9}'}}
"""


@dataclass
class Disk:
    """The simulated volume of a host, which can be exchanged."""

    folder: Path
    _server: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def uri(self) -> str:
        """NBD URI of the volume, the same for every disk in this place."""
        return f"nbd+unix:///?socket={self.folder}/volume.sock"

    def insert(self, name: str, iops: int) -> None:
        """Serve a volume with a limit, instead of the one before."""
        self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        scenario = self.folder / f"{name}.yaml"
        scenario.write_text(SCENARIO.format(name=name, iops=iops), encoding="utf-8")
        self._server = subprocess.Popen(  # noqa: S603 - fixed by this file
            [sys.executable, "-m", "volbench", "lab", "up", str(scenario), "-o", str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said = self._server.stdout.readline() if self._server.stdout else ""
        if self.uri not in said:
            sys.exit(f"the volume is not served: {said}")

    def remove(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(30)
            self._server = None


def volbench(*arguments: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    """Return what volbench prints, which must end with one of these codes."""
    done = subprocess.run(  # noqa: S603 - fixed by this file
        [sys.executable, "-m", "volbench", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode not in codes:
        sys.exit(f"volbench {arguments[0]} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


@contextmanager
def machines(folder: Path) -> Iterator[tuple[Fleet, list[Disk]]]:
    """Yield three hosts and their disks, all healthy, and write their inventory."""
    disks = [Disk(folder / f"disk{number}") for number in range(3)]
    with fleet(3, folder / "fleet") as hosts:
        try:
            for disk in disks:
                disk.insert("healthy", PROMISED_IOPS)
            entries = {
                host.name: {"address": host.address, "volumes": {"data": disk.uri}}
                for host, disk in zip(hosts.hosts, disks, strict=True)
            }
            common = {"user": "root", "key": str(hosts.key)}
            inventory = {"defaults": common, "hosts": entries}
            (folder / "fleet.yaml").write_text(json.dumps(inventory), encoding="utf-8")
            yield hosts, disks
        finally:
            for disk in disks:
                disk.remove()


def happens(night: int, hosts: Fleet, disks: list[Disk], folder: Path) -> str:
    """Let happen what happens before a night, and say what."""
    first, second, third = hosts.hosts[:3]
    match night:
        case _ if night == LOST:
            third.power_off()
            return "h2 is off"
        case _ if night == LOST + 1:
            third.power_on()
            return "h2 is back"
        case _ if night == KERNEL:
            release = folder / "osrelease"
            release.write_text("6.12.99-updated\n", encoding="utf-8")
            into = ["nsenter", f"--mount=/proc/{first.space.init}/ns/mnt"]
            subprocess.run(  # noqa: S603 - fixed by this file
                [*into, "mount", "--bind", str(release), "/proc/sys/kernel/osrelease"], check=True
            )
            return "h0 has another kernel"
        case _ if night == REGRESSION:
            disks[1].insert("slow", PROMISED_IOPS * 8 // 10)
            return f"the volume of {second.name} has 80 % of its limit"
        case _ if night == REPLACED:
            disks[0].insert("replaced", PROMISED_IOPS)
            return "h0 has a new disk"
        case _:
            return ""


def live(nights: int, folder: Path) -> Path:
    """Run the nights and return the folder of their campaigns."""
    results = folder / "nights"
    results.mkdir()
    (folder / "nightly.yaml").write_text(PROFILE, encoding="utf-8")
    with machines(folder) as (hosts, disks):
        promise = ("--set", f"limits.iops={PROMISED_IOPS}", "--for", "2m", "--yes")
        for night in range(1, nights + 1):
            event = happens(night, hosts, disks, folder)
            begun = time.monotonic()
            run = ["run", folder / "nightly.yaml", "--inventory", folder / "fleet.yaml"]
            run += ["--known-hosts", folder / "known_hosts", "--accept-new-host-keys"]
            run += ["--policy", "best-effort,10s", "--quiet", "--yes"]
            run += ["--output", results / f"night-{night:02d}"]
            run += [
                f"--allow-destroy={host.name}:{disk.uri}"
                for host, disk in zip(hosts.hosts, disks, strict=True)
            ]
            volbench(*run, codes=(0, 9, 10, 11))
            print(f"night {night:2}: {time.monotonic() - begun:4.0f} s  {event}", flush=True)
        audit = ["audit", "--inventory", str(folder / "fleet.yaml"), *promise]
        audit += ["--known-hosts", str(folder / "known_hosts")]
        print(volbench(*audit, "--output", folder / "audit", codes=(0, 10, 11)))
    shutil.copytree("tests/campaigns/format-1", results / "first-format")
    return results


def ask(results: Path) -> list[str]:
    """Print what the verbs say of the month, and return what is wrong with it."""
    wrong = []
    answer = json.loads(volbench("trend", results, "--by", "host", "--json", codes=(0, 10)))
    print(volbench("trend", results, "--by", "host", codes=(0, 10)))
    found = {
        (row["job"], row["host"], row["metric"]): [change["campaign"] for change in row["changes"]]
        for row in answer["trends"]
        if row["state"] == "regression"
    }
    night = f"night-{REGRESSION:02d}"
    for job in ("reads", "writes"):
        nights = found.pop((job, "h1", "iops"), [])
        wrong += [f"{job} of h1: {nights}, not {night}"] * (nights != [night])
        found.pop((job, "h1", "lat_p99_s"), None)  # the same queue takes longer at a lower limit
    wrong += [f"called a regression: {key}, {nights}" for key, nights in found.items()]
    print(volbench("expect", results, codes=(0, 10, 11)))
    print(volbench("status", results))
    print(volbench("check", results))
    return wrong


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Live the month, ask, and end with 1 where an answer is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--keep", type=Path, help="new folder for everything, not below /tmp")
    parser.add_argument("--ask", type=Path, help="folder that was kept: ask again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/srv") as temporary:
        folder = options.ask or options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        results = folder / "nights" if options.ask else live(options.nights, folder)
        print(f"{(time.monotonic() - begun) / 60:.0f} min, {size_of(results) / 1e6:.1f} MB")
        wrong = ask(results)
        begun = time.monotonic()
        page = Path(temporary) / "report.html"
        volbench("report", results, "--output", page)
        print(f"report: {time.monotonic() - begun:.0f} s, {page.stat().st_size / 1e6:.1f} MB")
    print("\n".join(wrong) or "nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
