"""Frames of storms: clients that start one after another on a volume with a cap."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from tests.present.frames_for_plots import Row, frames, identity, result

START_S = 1_700_000_000.0
BOOT_S, AFTER_S = 60, 300


def utc(seconds: float) -> str:
    """Return an instant as frames tell it."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def client(name: str, *, campaign: str = "fast", host: str = "local", repeat: int = 1) -> Row:
    """Return the columns of one client that every frame shares."""
    run = f"001-vm-r{repeat}-{name}"
    place = {"campaign": campaign, "run": run, "host": host}
    return identity("vm", repeat=repeat) | place | {"profile": "boot-storm", "group": "boot"}


def series(row: Row, direction: str, iops: Sequence[float], *, start_s: float) -> list[Row]:
    """Return rows of the series, one a second, of a client whose I/O began at an instant."""
    return [
        {**row, "direction": direction, "t_s": t + 1.0, "utc": utc(start_s + t + 1.0), "iops": rate}
        for t, rate in enumerate(iops)
    ]


def samples(
    row: Row, reads: Sequence[float], writes: Sequence[float], *, start_s: float
) -> list[Row]:
    """Return rows of the device frame, one in five seconds."""
    shared = {name: value for name, value in row.items() if name != "group"}
    return [
        {**shared, "device": "vdb", "level": "volume", "interval_s": 5.0, "after_fio": False}
        | {"t_s": 5.0 * (n + 1), "utc": utc(start_s + 5.0 * (n + 1))}
        | {"read_iops": read, "write_iops": write}
        for n, (read, write) in enumerate(zip(reads, writes, strict=True))
    ]


def storm(
    *,
    clients: int = 30,
    stagger_s: int = 20,
    cap: float = 7200.0,
    campaign: str = "fast",
    seed: int = 1,
) -> dict[str, pd.DataFrame]:
    """Return a campaign of clients that boot for a minute and are busy for five after it.

    Each wants 120 I/Os a second while it boots and 480 after; together they get no more than the
    cap. The device sees two in a hundred more, in samples of five seconds.
    """
    noise = np.random.default_rng(seed)
    length_s = stagger_s * (clients - 1) + BOOT_S + AFTER_S
    wanted = np.zeros((clients, 2, length_s))
    for number in range(clients):
        start = number * stagger_s
        middle, end = start + BOOT_S, start + BOOT_S + AFTER_S
        wanted[number, :, start:middle] = np.array([[108.0], [12.0]])
        wanted[number, :, middle:end] = np.array([[192.0], [288.0]])
    wanted *= noise.normal(1.0, 0.12, wanted.shape).clip(0.4)
    total = wanted.sum(axis=(0, 1))
    got = wanted * np.minimum(1.0, cap / np.maximum(total, 1.0))
    summary: list[Row] = []
    reported: list[Row] = []
    device: list[Row] = []
    for number in range(clients):
        row = client(f"c{number + 1:02d}", campaign=campaign)
        start = number * stagger_s
        end = start + BOOT_S + AFTER_S
        for way, rates in zip(("read", "write"), got[number], strict=True):
            summary.append(result("vm", direction=way, rw="randrw") | row)
            mine = [float(rate) for rate in rates[start:end]]
            reported += series(row, way, mine, start_s=START_S + start)
        seen = 1.02 * got[:, :, start:end].sum(axis=0).reshape(2, -1, 5).mean(axis=2)
        device += samples(row, *seen.tolist(), start_s=START_S + start)
    return frames(summary, series=reported, device=device)


def both(*campaigns: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the frames of several campaigns as one."""
    return {
        name: pd.concat([frame[name] for frame in campaigns], ignore_index=True)
        for name in campaigns[0]
    }
