"""Evidence that storage compressed or deduplicated what a run wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.frames.run_view import RunView, bytes_until_end, device_rows, total
from volbench.analyse.frames.workload_spec import WorkloadSpec

_REDUCED = 0.8  # Share of the bytes written below which a device did not store all of them
_LEAST_COMPRESSIBLE = 20
_COMPRESSING = frozenset({"zfs", "bcachefs"})  # Filesystems that compress by default


def reduction(view: RunView, direction: str) -> tuple[list[str], list[str]] | None:
    """Return the evidence for and against reduced data; None where all of it was stored.

    It needs a device that wrote clearly less than the run did past the page cache, and data or a
    filesystem that explains it.
    """
    written = total(view, "io_bytes", direction="write")
    if direction != "write" or view.is_buffered or not view.is_counted or not written > 0:
        return None
    levels = (device_rows(view, level=level) for level in ("volume", "backing"))
    stored = [
        bytes_until_end(rows, "write_bw_bytes_per_s", runtime=math.inf)
        for rows in levels
        if not rows.empty
    ]
    share = min(stored, default=written) / written
    causes = [*_of_data(view), *_of_filesystem(view)]
    if share >= _REDUCED or not causes:
        return None
    seen = f"the device wrote {100 * share:.0f} % of what the run wrote"
    return [seen, *causes], ["a cache below the filesystem would look the same"]


def _of_data(view: RunView) -> Iterator[str]:
    """Yield what makes the data of a run easy to store for less."""
    for load in view.workloads:
        if not load.writes:
            continue
        if load.is_on("zero_buffers") or "buffer_pattern" in load.options:
            yield "it wrote zeros or one pattern"
        elif (percent := _compressible(load)) >= _LEAST_COMPRESSIBLE:
            yield f"its data are {percent} % compressible or duplicates"
        elif not load.is_on("refill_buffers") and "refill_buffers" not in load.unreported_flags:
            yield "it wrote the same buffers again and again (no refill_buffers)"


def _compressible(load: WorkloadSpec) -> int:
    names = ("buffer_compress_percentage", "dedupe_percentage")
    return max(load.number(name, default=0) for name in names)


def _of_filesystem(view: RunView) -> Iterator[str]:
    facts = view.volume
    if facts is None:
        return
    options = [option for option in facts.mount_options.split(",") if "compress" in option]
    if options:
        yield f"its filesystem is mounted with {options[0]}"
    elif facts.filesystem in _COMPRESSING:
        yield f"{facts.filesystem} compresses by default"
