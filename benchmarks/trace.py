"""What a recording costs: CPU and bytes an I/O at the highest rate that this machine can do.

fio reads a null block device, or a loop device where there is none, as fast as it can while the
recorder follows. CPU is that of the recorder's process, its thread and the merge in the end.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import Figure, print_figures

from volbench.extensions.traces.recorder import recorded
from volbench.extensions.traces.trace_file import FILE_NAME, read_facts, row_count
from volbench.extensions.traces.trace_frames import TraceSummary

RUNTIME_S, SIZE_BYTES = 10, 256 << 20
TARGET_US, TARGET_BYTES = 3.0, 20.0


def cpu_s() -> float:
    """Return the CPU time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load(device: str) -> None:
    """Read a device at random, as fast as it can."""
    options = ("--rw=randread", "--bs=4k", "--ioengine=io_uring", "--iodepth=64", "--direct=1")
    run = (f"--runtime={RUNTIME_S}", "--time_based", "--group_reporting", "--norandommap")
    subprocess.run(  # noqa: S603 - fixed words, and a device that the user named
        ["fio", "--name=load", f"--filename={device}", *options, *run],  # noqa: S607 - found on PATH
        check=True,
        capture_output=True,
    )


def measure(device: str, folder: Path) -> list[Figure]:
    """Record the load on a device, and return the figures."""
    with recorded(folder, [(Path(device).name,)], print, is_anonymised=False):
        time.sleep(1)  # imports are paid once
        before_s, began_s = cpu_s(), time.monotonic()
        load(device)
        while_s, elapsed_s = cpu_s() - before_s, time.monotonic() - began_s
    all_s = cpu_s() - before_s
    trace = folder / FILE_NAME
    count, lost = row_count(trace), read_facts(trace).lost_events
    before_s = cpu_s()
    TraceSummary(trace)
    return [
        Figure("rate that was recorded", count / elapsed_s, "IOPS"),
        Figure("CPU an I/O while recording", 1e6 * while_s / count, "us", TARGET_US),
        Figure("CPU an I/O with the merge in the end", 1e6 * all_s / count, "us"),
        Figure("size of the trace an I/O", trace.stat().st_size / count, "B", TARGET_BYTES),
        Figure("events lost, of two an I/O", 100 * lost / (2 * count + lost), "%"),
        Figure("CPU an I/O of all frames", 1e6 * (cpu_s() - before_s) / count, "us"),
    ]


def main() -> int:
    """Print the figures; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", help="device to read; default: a loop device on a new file")
    device = parser.parse_args().device
    with tempfile.TemporaryDirectory() as folder:
        if device:
            return print_figures(measure(device, Path(folder)))
        image = Path("/dev/shm/volbench-trace.img")  # noqa: S108 - in memory, as fast as can be
        image.write_bytes(b"\1" * SIZE_BYTES)
        attach = ["losetup", "--find", "--show", str(image)]
        done = subprocess.run(attach, check=True, capture_output=True, text=True)  # noqa: S603 - same
        loop = done.stdout.strip()
        try:
            return print_figures(measure(loop, Path(folder)))
        finally:
            detach = ["losetup", "--detach", loop]
            subprocess.run(detach, check=True)  # noqa: S603 - same
            image.unlink()


if __name__ == "__main__":
    sys.exit(main())
