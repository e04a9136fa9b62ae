"""Anonymised traces: offsets shuffled in chunks, without names and dates.

Sizes, times and latencies stay, and so does locality within a chunk; which part of a disk was used
does not.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from volbench.extensions.traces.trace_file import TraceFacts, rows_of

Array = npt.NDArray[Any]

# Of a device: locality within 64 MiB of 256 GiB stays, and the layout does not. Noticed by:
# tests/extensions/traces/test_import_traces.py::test_an_anonymised_trace_keeps_what_matters
_CHUNKS = 4096
_MIN_CHUNK_BYTES = 64 << 10


class Anonymiser:
    """A shuffle of the chunks of each device, by numbers that nobody keeps.

    Args:
        device_bytes: size of each device, or the end of its last I/O.
    """

    def __init__(self, device_bytes: Mapping[str, int]) -> None:
        random = np.random.default_rng(secrets.randbits(128))
        self._sizes = dict(device_bytes)
        self._names = {
            name: f"disk{place}"
            for name, place in zip(
                device_bytes, 1 + random.permutation(len(device_bytes)), strict=True
            )
        }
        self._chunks = {
            name: max(_MIN_CHUNK_BYTES, 1 << (max(0, size - 1) // _CHUNKS).bit_length())
            for name, size in device_bytes.items()
        }
        # The last chunk, which is smaller, stays where it is
        self._places = {
            name: np.append(random.permutation(size // chunk), size // chunk)
            for (name, size), chunk in zip(device_bytes.items(), self._chunks.values(), strict=True)
        }

    def facts(self, facts: TraceFacts) -> TraceFacts:
        """Return the facts of the anonymised trace."""
        sizes = {self._names[name]: size for name, size in self._sizes.items()}
        changed = {"start_utc": "", "device_bytes": sizes, "anonymised": True}
        return facts.model_copy(update=changed)

    def rows(self, table: pa.Table) -> pa.Table:
        """Return rows with other offsets, without processes, and with other names of devices."""
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        devices = columns["device"]
        if isinstance(devices, pa.ChunkedArray):  # an empty column stays chunked
            return table
        names, codes = devices.dictionary.to_pylist(), devices.indices.to_numpy()
        offsets = columns["offset_bytes"].to_numpy()
        ends = columns["size_bytes"].to_numpy().astype(np.int64)
        moved = offsets.copy()
        for code, name in enumerate(names):
            mine = codes == code
            moved[mine] = self._moved(name, offsets[mine], ends[mine])
        renamed = pa.DictionaryArray.from_arrays(
            devices.indices, pa.array([self._names[name] for name in names], pa.string())
        )
        return rows_of({**columns, "offset_bytes": moved, "process": "", "device": renamed})

    def _moved(self, name: str, offsets: Array, sizes: Array) -> Array:
        chunk, places = self._chunks[name], self._places[name]
        index = np.minimum(offsets // chunk, len(places) - 1)
        moved = places[index] * chunk + (offsets - index * chunk)
        # An I/O across the end of its chunk may not reach beyond the device
        inside: Array = np.maximum(np.minimum(moved, self._sizes[name] - sizes), 0)
        return inside
