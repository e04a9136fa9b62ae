"""Logs of a watched host: each disk has its own, in the form that samplers of runs write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from volbench.analyse.frames.kernel_counters import is_count
from volbench.errors import ArchiveError, unwritten
from volbench.store.layout import RunFolder
from volbench.store.log_files import compress

_DISK_FIELDS, _STEAL = 14, 8  # Fields of lines of /proc
_PRESSURE = ("some ", "full ", "cpu-some ")


def split_sample(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the lines of the host in a sample, and the lines of each disk by its name.

    Of pressures only totals are kept, and the CPU times of programs, kernel and interrupts are
    added up: separately, they took an eighth of a log.
    """
    host: list[str] = []
    disks: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split()
        if not fields or fields[0] == ".":
            continue
        if len(fields) >= _DISK_FIELDS and fields[0].isdecimal():
            disks.setdefault(fields[2].replace("/", "!"), []).append(line.strip())
        elif fields[0].startswith(("ioerr", "ebs")) and len(fields) > 2:
            disks.setdefault(fields[1], []).append(line)
        elif line.startswith(_PRESSURE):
            host.append(f"{fields[0]} {fields[-1]}")
        elif fields[0] == "cpu" and len(fields) > _STEAL and all(map(is_count, fields[1:])):
            user, nice, system, idle, iowait, irq, soft, steal = map(int, fields[1 : _STEAL + 1])
            busy = user + nice + system + irq + soft
            host.append(f"cpu {busy} 0 0 {idle} {iowait} 0 0 {steal}")
        else:
            host.append(line)
    return host, disks


class WatchLog:
    """Log that is plain while it grows, and compressed when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error

    def write(self, text: str) -> None:
        """Add whole lines."""
        try:
            os.write(self._descriptor, text.encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close and compress the log."""
        os.close(self._descriptor)
        compress(self._path)

    def _unwritable(self, error: Exception) -> ArchiveError:
        hint = "check permissions; the samples so far are kept"
        message, hint = unwritten(self._path, error, hint=hint)
        return ArchiveError(message, hint=hint, path=str(self._path))


class DiskLog(WatchLog):
    """Log of one disk while it is watched."""

    def __init__(self, folder: RunFolder, devices: Sequence[str]) -> None:
        super().__init__(folder.samples)
        self._devices = tuple(devices)
        self._is_begun = False

    def add(self, host: Sequence[str], disks: dict[str, list[str]]) -> None:
        """Add one sample: the lines of the host, and the lines of this disk."""
        mine = [line for name in self._devices for line in disks.get(name, ())]
        started = "" if self._is_begun else "! started\n"
        self._is_begun = True
        self.write("\n".join([*host, *mine, ".", started]))

    def mark(self, line: str) -> None:
        """Add a mark, one line without its sign."""
        self.write(f"! {line}\n")
