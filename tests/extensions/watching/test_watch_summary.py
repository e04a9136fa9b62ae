"""Sentences about a watch, from rows with a known answer."""

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd

from volbench.extensions.watching.watch_summary import summary_lines


class Watched:
    """A watch of 20 s: a disk is saturated for three of them, by dd; another has no I/O."""

    seen, read_iops = 1.0, 0.0
    campaigns = "w"
    more: tuple[str, ...] = ()  # processes that write as much as db

    @property
    def names(self) -> Any:  # noqa: ANN401 - campaigns that are watches
        """Return the opened campaigns by name."""
        return dict.fromkeys(
            self.campaigns, SimpleNamespace(campaign=SimpleNamespace(is_watched=1))
        )

    def frame(self, name: str) -> pd.DataFrame:
        """Return the frame `device` or `processes`."""
        rows = [*(self._process_rows() if name == "processes" else self._rows())]
        return pd.DataFrame([{"campaign": each} | row for each in self.campaigns for row in rows])

    def _process_rows(self) -> Any:  # noqa: ANN401 - rows
        for t_s in (5.0, 10.0, 15.0, 20.0):
            small = dict.fromkeys((*self.more, "db"), 4e6)
            for process, size in {"dd": 40e6 if t_s == 10 else 0, **small}.items():
                read = 5 * 4096 * self.read_iops or 9e9
                bytes_of = {"read_bytes": read, "write_bytes": size * self.seen}
                yield {"host": "h", "process": process, "t_s": t_s, "interval_s": 5.0} | bytes_of

    def _rows(self) -> Any:  # noqa: ANN401 - the same
        for device in ("idle", "sdb"):
            for second in range(1, 21):
                is_full = device == "sdb" and 6 < second <= 10
                rate = 0.0 if device == "idle" else 3000.0 if is_full else 100.0
                yield {
                    "run": device,
                    "host": "h",
                    "device": device,
                    "level": "volume",
                    "t_s": float(second),
                    "interval_s": 1.0,
                    "utc": f"2026-11-29T10:00:{second:02d}.000Z",
                    "read_iops": self.read_iops,
                    "write_iops": rate,
                    "read_bw_bytes_per_s": 4096 * self.read_iops,
                    "write_bw_bytes_per_s": 4096 * rate,
                    "queue_depth": 31.0 if is_full else 0.2,
                    "active_percent": 89.0 if second == 8 else 100.0 if is_full else 5.0,
                    "cpu_busy_percent": 95.0 if second == 20 else 10.0,
                    "iowait_percent": 2.0,
                }


def test_a_summary_says_who_saturated_what_and_when() -> None:
    """With the peak, the share of the time, and the processes of the saturated time alone."""
    disk, idle, cpu = summary_lines(cast("Any", Watched()))
    assert disk == (
        "sdb: 680 writes/s (2.79 MB/s) on average; peak 3k IOPS at 10:00:07; busy 23 % of the "
        "time; saturated for 3s: 10:00:06 to 10:00:10; meanwhile, bytes written to all disks: "
        "dd 81 %, db 8.1 %, unattributed 11 %."
    )
    (short := Watched()).seen = 0.01  # most was written by processes that ended between two looks
    assert "all disks: dd 0.8 %, db 0.08 %, unattributed 99.1 %." in next(
        summary_lines(cast("Any", short))
    )
    (twice := Watched()).seen = 2.0  # as of a loop device and of who writes to it
    assert "all disks: dd 91 %, db 9.1 %." in next(summary_lines(cast("Any", twice)))
    (many := Watched()).more = ("ls", "du", "cp")
    shares = next(summary_lines(cast("Any", many))).partition("all disks: ")[2]
    assert shares == "dd 71 %, cp 7.1 %, db 7.1 %, others 14 %."
    assert idle == "1 disk had no I/O."
    assert cpu == "CPU: 14 % busy, 2 % iowait; above 90 % for 1s, longest 10:00:19 to 10:00:20."
    (two := Watched()).campaigns = "wx"  # nothing was watched between them
    lines = [f"{name}: {line}" for name in "wx" for line in (disk, idle, cpu)]
    assert [*summary_lines(cast("Any", two))] == lines


def test_both_directions_and_all_disks_are_named() -> None:
    """Reads that kept the disk busy as well, and bytes of processes that are of two disks."""
    (both := Watched()).read_iops = 2000.0
    disk, other, _ = summary_lines(cast("Any", both))
    assert "meanwhile, bytes read from all disks: db 5" in disk
    assert "; bytes written to all disks: dd 81 %" in disk
    assert other.startswith("idle: 2k reads/s")
