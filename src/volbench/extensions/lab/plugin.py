"""nbdkit plugin of the simulated disk; runs in nbdkit's Python, not in volbench.

``nbdkit python plugin.py scenario=FILE`` with a file written by `DiskParameters.to_json`. Only the
standard library may be imported, directly or indirectly.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))

from volbench.extensions.lab.disk_model import DiskParameters, Pacer
from volbench.extensions.lab.simulated_disk import Disk

nbdkit: Any = import_module("nbdkit")

API_VERSION = 2

_HOLE = 1 | 2  # NBD_STATE_HOLE and NBD_STATE_ZERO of the NBD protocol's base:allocation


_FILL_BYTES = 1 << 20


class _Volume:
    """The served volume: the disk's behaviour, and its data in memory."""

    disk: Disk
    parameters: DiskParameters
    memory: int


_volume = _Volume()


def thread_model() -> int:
    """Allow parallel requests."""
    return int(nbdkit.THREAD_MODEL_PARALLEL)


def config(key: str, value: str) -> None:
    """Read the only parameter: the file that describes the disk."""
    if key != "scenario":
        raise RuntimeError(f"unknown parameter {key}")
    _volume.parameters = DiskParameters.from_json(Path(value).read_text(encoding="utf-8"))


def config_complete() -> None:
    """Refuse to start without a scenario."""
    if not hasattr(_volume, "parameters"):
        raise RuntimeError("scenario=FILE is missing")


def get_ready() -> None:
    """Create the disk in memory: sparse, or full of data when restored. It outlives connections."""
    _volume.disk = Disk(_volume.parameters, pacer=Pacer())
    _volume.memory = os.memfd_create("volbench-lab")
    os.ftruncate(_volume.memory, _volume.parameters.size_bytes)
    if not _volume.parameters.restored:
        return
    content = random.Random(_volume.parameters.seed).randbytes(_FILL_BYTES)  # noqa: S311 - no secret
    for offset in range(0, _volume.parameters.size_bytes, _FILL_BYTES):
        rest = _volume.parameters.size_bytes - offset
        os.pwrite(_volume.memory, content[:rest], offset)


def after_fork() -> None:
    """Reduce the kernel's timer slack; the default adds 50 us to every sleep."""
    Path("/proc/self/timerslack_ns").write_text("1000", encoding="ascii")


def open(readonly: bool) -> int:  # noqa: A001, FBT001 - name and signature required by nbdkit
    """Accept a connection; all share the same disk."""
    del readonly
    return 1


def get_size(handle: int) -> int:
    """Return the capacity."""
    del handle
    return _volume.parameters.size_bytes


def can_multi_conn(handle: int) -> bool:
    """Allow several connections, which all see the same data."""
    del handle
    return True


def can_fua(handle: int) -> int:
    """Treat forced writes as writes: memory is the only storage."""
    del handle
    return int(nbdkit.FUA_NATIVE)


def can_extents(handle: int) -> bool:
    """Report unwritten extents to clients."""
    del handle
    return True


def pread(handle: int, buffer: bytearray, offset: int, flags: int) -> None:
    """Read into a buffer."""
    del handle, flags
    done = _volume.disk.read(time.monotonic(), offset, len(buffer))
    os.preadv(_volume.memory, [buffer], offset)
    _sleep_until(done)


def pwrite(handle: int, buffer: bytes, offset: int, flags: int) -> None:
    """Write a buffer."""
    del handle, flags
    done = _volume.disk.write(time.monotonic(), offset, len(buffer))
    os.pwrite(_volume.memory, buffer, offset)
    _sleep_until(done)


def zero(handle: int, count: int, offset: int, flags: int) -> None:
    """Write zeros, like any other write."""
    pwrite(handle, bytes(count), offset, flags)


def trim(handle: int, count: int, offset: int, flags: int) -> None:
    """Discard a range: its blocks become cold and read as zeros."""
    del handle, flags
    _volume.disk.trim(offset, count)
    os.pwrite(_volume.memory, bytes(count), offset)


def flush(handle: int, flags: int) -> None:
    """Do nothing: acknowledged writes are stable."""
    del handle, flags


def extents(handle: int, count: int, offset: int, flags: int) -> Iterator[tuple[int, int, int]]:
    """Yield written and unwritten extents."""
    del handle, flags
    for extent in _volume.disk.extents(offset, count):
        yield extent.offset, extent.length, 0 if extent.written else _HOLE


def _sleep_until(done: float) -> None:
    remaining = done - time.monotonic()
    if remaining > 0:
        time.sleep(remaining)
