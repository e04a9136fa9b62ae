"""Bytes that a device moved while the tool did I/O, from rates over intervals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]


def bytes_until_end(rows: pd.DataFrame, column: str, *, runtime: float) -> float:
    """Return the bytes a device moved from the begin of the I/O until the tool ended.

    Args:
        column: a column of rates, such as ``write_bw_bytes_per_s``.
        runtime: when the tool's I/O ended; infinity for all that was sampled.
    """
    return float(np.nansum(bytes_before(rows, column, end_s=runtime)))


def bytes_before(rows: pd.DataFrame, column: str, *, end_s: float) -> Floats:
    """Return the bytes of each interval from the begin of the I/O until an instant.

    An interval that reaches past the instant counts by its share before it; one that began before
    the I/O did is taken to be idle until then.

    Args:
        column: a column of rates, such as ``write_bw_bytes_per_s``.
        end_s: seconds since the I/O began.
    """
    interval = rows["interval_s"].to_numpy(dtype=float)
    end = rows["t_s"].to_numpy(dtype=float)
    begin = np.maximum(end - interval, 0.0)
    share = np.clip((end_s - begin) / np.maximum(end - begin, 1e-9), 0.0, 1.0)
    share[end <= 0] = 0.0
    moved: Floats = rows[column].to_numpy(dtype=float) * interval * share
    return moved
