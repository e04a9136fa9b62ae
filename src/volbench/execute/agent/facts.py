"""Facts about this machine: kernel, CPUs, memory, virtualization, fio, other tools, identity."""

import re
import time
from typing import NamedTuple

from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.block_devices import boot_id
from volbench.execute.agent.kernel_sampler import cgroups
from volbench.execute.agent.snapshot import Snapshot

_CPU_MODEL = re.compile(r"^(?:model name|cpu model|Model|cpu)\s*:\s*(.+)$", re.MULTILINE)
_MEMORY = re.compile(r"^MemTotal:\s*(\d+) kB$", re.MULTILINE)
_PRETTY_NAME = re.compile(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", re.MULTILINE)
_HYPERVISOR_FLAG = re.compile(r"^flags\s*:.*\bhypervisor\b", re.MULTILINE)

# fio prints its version in 0.1 s, on a busy machine in seconds; one that hangs never does.
# Noticed by: test_connected_host.py::test_a_fio_that_hangs_is_waited_for_once
ANSWER_S = 15.0


class InstalledProgram(NamedTuple):
    """A program and its output with ``--version``."""

    path: str  # empty if it is missing
    stdout: str = ""
    stderr: str = ""
    status: int = 0


class Instant(NamedTuple):
    """An instant by two clocks of a machine."""

    real_s: float  # since 1970; the clock may be set
    steady_s: float  # by the monotonic clock, which nobody sets


class Survey(NamedTuple):
    """Facts of a machine."""

    machine_id: str  # to be digested, like the host name: machine-id(5) is confidential
    hostname: str
    boot_id: str
    kernel: str
    os: str
    cpu_model: str
    cpus: int  # online
    memory_bytes: "int | None"  # None if unknown
    memory_limit_bytes: "int | None"  # of its cgroup; None without one
    virtualization: str
    fio: InstalledProgram
    user: int  # id of the user of the agent
    folder: str  # the given folder with all symlinks resolved


def clock() -> Instant:
    """Return the time of this machine."""
    return Instant(time.time(), time.monotonic())


def survey(folder: str = "", snapshot: "Snapshot | None" = None) -> Survey:
    """Return the facts of this machine."""
    snapshot = snapshot or Snapshot()
    cpu_text = snapshot.text("/proc/cpuinfo")
    process = snapshot.stat("/proc/self")
    memory = _MEMORY.search(snapshot.text("/proc/meminfo"))
    memory_bytes = None if memory is None else int(memory.group(1)) * 1024
    return Survey(
        machine_id=snapshot.text("/etc/machine-id").strip(),
        hostname=snapshot.text("/proc/sys/kernel/hostname").strip(),
        boot_id=boot_id(snapshot),
        kernel=snapshot.text("/proc/sys/kernel/osrelease").strip(),
        os=_first(_PRETTY_NAME, snapshot.text("/etc/os-release")),
        cpu_model=_first(_CPU_MODEL, cpu_text),
        cpus=_online(snapshot) or cpu_text.count("processor\t:") or 1,
        memory_bytes=memory_bytes,
        memory_limit_bytes=_memory_limit(snapshot, memory_bytes),
        virtualization=_virtualization(snapshot, cpu_text),
        fio=_fio(snapshot),
        user=0 if process is None else process.owner,
        folder=snapshot.real_path(folder) if folder else "",
    )


def _first(pattern: "re.Pattern[str]", text: str) -> str:
    match = pattern.search(text)
    return "" if match is None else match.group(1).strip()


def _memory_limit(snapshot: Snapshot, memory_bytes: "int | None") -> "int | None":
    """Return the lowest memory limit of the cgroups of this process; None if it has more memory."""
    limits = []
    for folder in cgroups("memory"):
        for name in ("/memory.max", "/memory.limit_in_bytes"):
            text = snapshot.text(folder + name).strip()
            if text.isdigit() and (memory_bytes is None or int(text) < memory_bytes):
                limits.append(int(text))
    return min(limits) if limits else None


def _online(snapshot: Snapshot) -> int:
    """Return the number of CPUs online, from a list such as ``0-3,8``."""
    text = snapshot.text("/sys/devices/system/cpu/online").strip()
    ranges = [cpu_range.partition("-") for cpu_range in text.split(",") if cpu_range]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _virtualization(snapshot: Snapshot, cpu_text: str) -> str:
    """Return the hypervisor detected by systemd; without systemd, from the CPU flags."""
    detect = snapshot.which("systemd-detect-virt")
    detected = snapshot.run([detect]).stdout.strip() if detect else ""
    return detected or ("vm" if _HYPERVISOR_FLAG.search(cpu_text) else "")


def _fio(snapshot: Snapshot) -> InstalledProgram:
    path = snapshot.which("fio")
    if not path:
        return InstalledProgram("")
    try:
        done = snapshot.run([path, "--version"], ANSWER_S)
    except AgentError as error:
        return InstalledProgram(path, stderr=error.message, status=-1)
    return InstalledProgram(path, done.stdout, done.stderr, done.status)
