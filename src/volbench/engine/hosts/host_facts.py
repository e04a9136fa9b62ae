"""Facts about a machine: kernel, CPUs, memory, fio, virtualization, and its identity."""

from __future__ import annotations

import hashlib
import re

from volbench.errors import TransportError
from volbench.execute.protocol import Executor
from volbench.model.results.provenance import HostFacts

_CPU_MODEL = re.compile(r"^(?:model name|cpu model|Model|cpu)\s*:\s*(.+)$", re.MULTILINE)
_MEMORY = re.compile(r"^MemTotal:\s*(\d+) kB$", re.MULTILINE)
_PRETTY_NAME = re.compile(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", re.MULTILINE)
_HYPERVISOR_FLAG = re.compile(r"^flags\s*:.*\bhypervisor\b", re.MULTILINE)


def probe_host(executor: Executor, *, fio_version: str = "") -> HostFacts:
    """Return facts about a machine, with or without fio.

    Args:
        fio_version: version of its fio, if already known.
    """
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
        fio_version=fio_version or _fio_version(executor),
        virtualization=_virtualization(executor, cpu_text),
    )


def machine_of(executor: Executor) -> str:
    """Return an identity of the machine that does not disclose its machine-id.

    machine-id(5) is confidential, so its digest is used; without one, the digest of the host name.
    The identity of a pod is that of its node and its claim: its host name is another one each time.
    """
    machine_id = executor.identity or (executor.read_text("/etc/machine-id") or "").strip()
    name = machine_id or (executor.read_text("/proc/sys/kernel/hostname") or "").strip()
    return hashlib.sha256(f"volbench {name}".encode()).hexdigest()[:16]


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return "" if match is None else match[1].strip()


def _online(executor: Executor) -> int:
    """Return the number of CPUs online, from a list such as ``0-3,8``."""
    text = (executor.read_text("/sys/devices/system/cpu/online") or "").strip()
    ranges = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _fio_version(executor: Executor) -> str:
    """Return the version of fio; empty if it is missing or does not start."""
    path = executor.which("fio")
    if path is None:
        return ""
    try:
        done = executor.run([path, "--version"])
    except TransportError:
        return ""
    return "" if done.exit_status else done.stdout.strip()


def _virtualization(executor: Executor, cpu_text: str) -> str:
    """Return the hypervisor detected by systemd; without systemd, from the CPU flags."""
    detect = executor.which("systemd-detect-virt")
    if detect is not None and (detected := executor.run([detect]).stdout.strip()):
        return detected
    return "vm" if _HYPERVISOR_FLAG.search(cpu_text) else ""
