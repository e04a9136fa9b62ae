"""What a watch costs: CPU with 50 disks and 500 processes, and the size of a month at 10 s.

The first half samples the kernel of this machine at ten looks a second, splits and stores the
samples and draws the table of a terminal, as `volbench watch` does, and states the CPU time of one
look. The same is stated of a look at 500 processes. The second half writes a month of samples with
random loads on two disks and of ten processes, and reads it back.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measured import Figure, print_figures

from volbench.analyse.frames.kernel_counters import SampleReader, disk_rates
from volbench.execute.agent.kernel_sampler import sample_disks
from volbench.execute.agent.observation.process_io import sample_processes
from volbench.extensions.watching.disk_logs import DiskLog, PackedLog, split_sample
from volbench.extensions.watching.live_table import LiveTable
from volbench.extensions.watching.watch_loop import PROCESS_SAMPLES, LiveDisk
from volbench.ingest.watched_load import read_watched, watched_series
from volbench.ingest.watched_processes import parse_intervals
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.store.layout import RunFolder

DISKS, LOOKS = 50, 200
PROCESSES, PROCESSES_S = 500, 60.0
TARGET_PERCENT, TARGET_MB = 0.5, 50.0
MONTH_S, INTERVAL_S, MONTH_DISKS = 30 * 86_400, 10, 2


class Terminal(io.StringIO):
    """A terminal that nobody looks at."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def cpu_s() -> float:
    """Return the CPU time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def cost_of_a_look(folder: Path, *, disks: int) -> float:
    """Return the CPU seconds of one look at so many disks of this machine, stored and shown."""
    names = sorted(path.name for path in Path("/sys/block").iterdir())[:disks]
    logs = [DiskLog(RunFolder(made(folder / name)), [name]) for name in names]
    shown = [LiveDisk("local", name) for name in names]
    table, reader, before = LiveTable(Terminal()), SampleReader(), None
    looks, began_s = 0, 0.0
    for text in sample_disks(names, 0.1):
        if text is None:
            continue
        host, lines = split_sample(text)
        for log in logs:
            log.add(host, lines)
        for sample in reader.feed(text):
            for disk in shown if before else ():
                old, new = before.disks[disk.device], sample.disks[disk.device]
                disk.rates = disk_rates(old, new, interval_s=0.1) or {}
                disk.rates["dirty_bytes"], disk.seen_s = 0.0, time.monotonic()
            before = sample
        table(shown, 0.1 * looks, {})
        looks += 1
        began_s = began_s or cpu_s()
        if looks > LOOKS:
            break
    return (cpu_s() - began_s) / LOOKS


def cost_of_processes(folder: Path) -> tuple[float, float]:
    """Return the share of a core of looks at 500 processes, and the seconds between two looks."""
    sleeping = [subprocess.Popen(["sleep", "300"]) for _ in range(PROCESSES)]  # noqa: S607
    try:
        log, table = PackedLog(folder / "processes.log"), LiveTable(Terminal())
        began_s, ended_s, intervals = cpu_s(), time.monotonic() + PROCESSES_S, 0
        for text in sample_processes(PROCESS_SAMPLES, has_names=True):
            for interval in parse_intervals((text or "").splitlines()):
                log.write(str(text))
                table([], 0.0, {"local": interval})
                intervals += 1
            if time.monotonic() > ended_s:
                break
        return (cpu_s() - began_s) / PROCESSES_S, PROCESSES_S / intervals
    finally:
        for process in sleeping:
            process.kill()
            process.wait()


def made(folder: Path) -> Path:
    """Make a folder and return it."""
    folder.mkdir()
    return folder


def samples(names: list[str]) -> Iterator[str]:
    """Yield a month of samples whose counters grow as those of busy disks do."""
    chance = random.Random(7)  # noqa: S311 - no secret
    counts = {name: [0] * 11 for name in names}
    cpu, stalls, dirty = [0] * 8, [0, 0, 0], 400_000
    for number in range(MONTH_S // INTERVAL_S):
        now_s = INTERVAL_S * number + chance.random() / 1000
        lines = [f"T {1.7e9 + now_s:.3f} {5000 + now_s:.3f}"]
        cpu = [ticks + chance.randrange(200) for ticks in cpu]
        stalls = [us + chance.randrange(50_000) for us in stalls]
        dirty = max(0, dirty + chance.randrange(-2000, 2001))
        lines += [f"cpu  {' '.join(map(str, cpu))} 0 0", f"Dirty: {dirty} kB", "Writeback: 0 kB"]
        lines += ["pswpin 0", "pswpout 0"]
        totals = zip(("some", "full", "cpu-some"), stalls, strict=True)
        lines += [f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={us}" for kind, us in totals]
        for name, values in counts.items():
            reads, writes = chance.randrange(3000), chance.randrange(5000)
            grown = (reads, reads // 50, 16 * reads, reads // 2)
            grown += (writes, writes // 3, 24 * writes, 2 * writes, 0)
            grown += (chance.randrange(5000), chance.randrange(20_000))
            values[:] = [old + new for old, new in zip(values, grown, strict=True)]
            lines.append(f"   8  0 {name} {' '.join(map(str, values))} 0 0 0 0 0 0")
        yield "\n".join([*lines, ".", ""])


def busy_processes() -> Iterator[str]:
    """Yield a month of intervals in which ten processes are busy."""
    chance = random.Random(8)  # noqa: S311 - no secret
    interval_s = PROCESS_SAMPLES * INTERVAL_S
    for number in range(MONTH_S // interval_s):
        grown = sorted(chance.randrange(1 << 34) >> chance.randrange(20) for _ in range(10))
        now_s = 1.7e9 + interval_s * number + chance.random() / 1000
        lines = [f"P {now_s:.3f} {interval_s}.001 312"]
        for size in reversed(grown):
            name = chance.randrange(20)
            half = 4096 * (size // 8192)
            counts = f"{900 + name} {half} {half + 4096} {chance.randrange(2) * 4096}"
            lines.append(f"{counts} service-{name} /system.slice/service-{name}.service")
        yield "\n".join([*lines, ".", ""])


def month_of_processes(folder: Path) -> float:
    """Return the megabytes of a month of the processes of a host."""
    log = PackedLog(folder / "processes.log")
    for text in busy_processes():
        log.write(text)
    log.close()
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def month(folder: Path) -> tuple[float, float, float]:
    """Return the megabytes of a month, and CPU seconds and megabytes of memory to read a disk."""
    names = [f"sd{letter}" for letter in "abcd"[:MONTH_DISKS]]
    folders = {name: RunFolder(made(folder / name)) for name in names}
    logs = [DiskLog(folders[name], [name]) for name in names]
    for text in samples(names):
        host, lines = split_sample(text)
        for log in logs:
            log.add(host, lines)
    for log in logs:
        log.close()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    first = folders[names[0]]
    facts = VolumeFacts(
        role="sda", target="/dev/sda", kind=VolumeKind.DEVICE, path="/dev/sda", device="sda"
    )
    first.facts.write_text(facts.model_dump_json())
    volume = Volume(role="sda", kind=VolumeKind.DEVICE, target="/dev/sda")
    section = Section(name="watch")
    run = Run(
        id="r",
        profile="watch",
        job="watch",
        volume=volume,
        tool=Tool.WATCH,
        sections=(section,),
        device_sample_s=float(INTERVAL_S),
    )
    before_mb, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, cpu_s()
    watched_series(read_watched(run, first, elapsed_s=MONTH_S))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return size / 1e6, cpu_s() - began_s, peak_mb - before_mb


def main() -> int:
    """Print the figures; return 1 if a target is missed."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        look_s = cost_of_a_look(made(Path(folder) / "looks"), disks=DISKS)
        processes_share, every_s = cost_of_processes(made(Path(folder) / "processes"))
        processes_mb = month_of_processes(made(Path(folder) / "month-of-processes"))
        size_mb, read_s, memory_mb = month(made(Path(folder) / "month"))
    return print_figures(
        [
            Figure(
                f"a look a second at {DISKS} disks, of a core", 100 * look_s, "%", TARGET_PERCENT
            ),
            Figure(
                f"looks at {PROCESSES} processes, of a core",
                100 * processes_share,
                "%",
                TARGET_PERCENT,
            ),
            Figure("time between two such looks at one sample a second", every_s, "s"),
            Figure(
                f"a month at 10 s, {MONTH_DISKS} busy disks and ten busy processes",
                size_mb + processes_mb,
                "MB",
                TARGET_MB,
            ),
            Figure("the processes alone", processes_mb, "MB"),
            Figure("reading a disk's month, CPU", read_s, "s"),
            Figure("reading a disk's month, memory", memory_mb, "MB"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
