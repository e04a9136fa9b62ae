"""What a machine is and which fio it has: an executor enters, facts or a path leave."""

from __future__ import annotations

import hashlib
import re

from volbench.errors import FioError, OutputError, TransportError
from volbench.execute.protocol import Executor
from volbench.fio.version import parse_version
from volbench.model.results.provenance import HostFacts

OLDEST_FIO = (3, 18)
"""The oldest fio that Runs are made with; results of older ones can be read."""

_CPU_MODEL = re.compile(r"^(?:model name|cpu model|Model|cpu)\s*:\s*(.+)$", re.MULTILINE)
_MEMORY = re.compile(r"^MemTotal:\s*(\d+) kB$", re.MULTILINE)
_PRETTY_NAME = re.compile(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", re.MULTILINE)
_HYPERVISOR_FLAG = re.compile(r"^flags\s*:.*\bhypervisor\b", re.MULTILINE)


def probe_host(executor: Executor) -> HostFacts:
    """Return what a machine is; fio need not be there."""
    cpu_text = executor.read_text("/proc/cpuinfo") or ""
    memory = _MEMORY.search(executor.read_text("/proc/meminfo") or "")
    return HostFacts(
        host=executor.host,
        machine=machine_of(executor),
        kernel=(executor.read_text("/proc/sys/kernel/osrelease") or "").strip(),
        os=_first(_PRETTY_NAME, executor.read_text("/etc/os-release") or ""),
        cpu_model=_first(_CPU_MODEL, cpu_text),
        cpus=_online(executor) or cpu_text.count("processor\t:") or 1,
        memory_bytes=None if memory is None else int(memory[1]) * 1024,
        fio_version=_fio_version(executor),
        virtualization=_virtualization(executor, cpu_text),
    )


def machine_of(executor: Executor) -> str:
    """Return what tells this machine from others, without telling its machine-id itself.

    machine-id(5) is confidential, so only a digest of it leaves; without one, of the host's name.
    """
    told = executor.read_text("/etc/machine-id") or ""
    name = told.strip() or (executor.read_text("/proc/sys/kernel/hostname") or "").strip()
    return hashlib.sha256(f"volbench {name}".encode()).hexdigest()[:16]


def require_fio(executor: Executor) -> str:
    """Return the path of a fio that Runs can be made with.

    Raises:
        FioError: there is none, it does not work, or it is older than 3.18.
    """
    path = executor.which("fio")
    if path is None:
        raise FioError(
            f"fio is not installed on {executor.host}",
            hint="install it: apt-get install fio",
            context={"host": executor.host},
        )
    done = executor.run([path, "--version"])
    try:
        version = parse_version(done.stdout)
    except OutputError as error:
        words = done.stderr.strip() or done.stdout.strip() or f"exit status {done.exit_status}"
        raise FioError(
            f"{path} does not tell its version: {words}",
            hint="check that this fio works: fio --version",
            context={"path": path},
        ) from error
    if version < OLDEST_FIO:
        raise FioError(
            f"{path} is {done.stdout.strip()}; Runs need fio 3.18 or newer",
            hint="install a newer fio and put it first on PATH",
            context={"path": path, "version": done.stdout.strip()},
        )
    return path


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return "" if match is None else match[1].strip()


def _online(executor: Executor) -> int:
    """Return how many CPUs are online, from a list such as ``0-3,8``."""
    text = (executor.read_text("/sys/devices/system/cpu/online") or "").strip()
    ranges = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _fio_version(executor: Executor) -> str:
    """Return what fio says of itself, or an empty text when it is missing or does not start."""
    path = executor.which("fio")
    if path is None:
        return ""
    try:
        done = executor.run([path, "--version"])
    except TransportError:
        return ""
    return "" if done.exit_status else done.stdout.strip()


def _virtualization(executor: Executor, cpu_text: str) -> str:
    """Return what systemd detects; without it, what the CPU tells a guest."""
    detect = executor.which("systemd-detect-virt")
    if detect is not None and (told := executor.run([detect]).stdout.strip()):
        return told
    return "vm" if _HYPERVISOR_FLAG.search(cpu_text) else ""
