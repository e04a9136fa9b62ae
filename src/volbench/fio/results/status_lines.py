"""Parser of fio's status lines into the progress of a run.

With ``--eta=always --output=FILE`` the lines are on stdout, each ended by a carriage return. fio
omits the rates while nothing completes, so a stall looks like missing rates.
"""

from __future__ import annotations

import re

from volbench.model.campaign.event import Progress

_LINE = re.compile(
    r"Jobs: \d+ \(f=-?\d+\)(?:, [^:]*)?"
    r"(?:: \[(?P<states>[^\]]*)\]\[(?:[\d.]+|-\.-)%\]"
    r"(?:\[(?P<bw>[rwt]=[^\]]*)\]\[(?P<iops>[rwt]=[^\]]*) IOPS\])?"
    r"\[eta [^\]]*\])?\s*",
    re.ASCII,
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([kKMGTP]?)(i?)(B|b|bit)?(?:/s)?", re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_RUNNING = frozenset("RrWwMmDdVFf")
_STARTING = frozenset("PCIp")
_QUIET_START_S = 3.0  # fio prints no rates in its first seconds
_LONGEST_LINE = 65_536


class ProgressReader:
    """Incremental parser of a process's output that keeps unfinished lines.

    Args:
        total_s: expected duration of the process; None when it ends with its data.
    """

    def __init__(self, *, total_s: float | None = None) -> None:
        self._total_s = total_s
        self._rest = ""
        self._state = "run"
        self._seen: set[str] = set()

    def feed(self, chunk: str, *, elapsed_s: float) -> Progress | None:
        """Return the progress in the last line that a chunk completes, or None without one.

        Args:
            elapsed_s: seconds since the start of the process, by the caller's clock.
        """
        *lines, rest = re.split(r"[\r\n]", self._rest + chunk)
        self._rest = rest[-_LONGEST_LINE:]
        newest: Progress | None = None
        for line in lines:
            match = _LINE.fullmatch(line.strip())
            if match is not None:
                newest = self._progress(match, elapsed_s)
        return newest

    def _progress(self, match: re.Match[str], elapsed_s: float) -> Progress:
        self._state = _state(match["states"]) or self._state
        bandwidth, iops = self._rates(match, elapsed_s)
        return Progress(
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            state=self._state,
            read_iops=iops.get("r"),
            write_iops=iops.get("w"),
            trim_iops=iops.get("t"),
            read_bw_bytes_per_s=bandwidth.get("r"),
            write_bw_bytes_per_s=bandwidth.get("w"),
            trim_bw_bytes_per_s=bandwidth.get("t"),
        )

    def _rates(
        self, match: re.Match[str], elapsed_s: float
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return bandwidth and IOPS by letter; a direction seen earlier and now missing is 0."""
        bandwidth, iops = _amounts(match["bw"]), _amounts(match["iops"])
        self._seen |= iops.keys()
        stalled = match["states"] is not None and elapsed_s > _QUIET_START_S
        silent = self._seen or (set("rwt") if stalled and self._state == "run" else set[str]())
        nothing = dict.fromkeys(silent, 0.0)
        return nothing | bandwidth, nothing | iops


def _state(states: str | None) -> str | None:
    """Return the combined state of the state letters in fio's ``eta.c``; None without letters."""
    letters = set(re.findall(r"([A-Za-z/_])(?:\(\d+\))?", states or ""))
    if not letters:
        return None
    if letters & _RUNNING:
        return "run"
    if "/" in letters:
        return "ramp"
    return "layout" if letters & _STARTING else "run"


def _amounts(text: str | None) -> dict[str, float]:
    """Return numbers by letter from a text like ``r=9.77MiB/s,w=512KiB/s`` or ``r=2501,w=2k``."""
    found: dict[str, float] = {}
    for part in (text or "").split(","):
        letter, _, amount = part.partition("=")
        match = _AMOUNT.fullmatch(amount)
        if match is None:
            continue
        number, prefix, binary, unit = match.groups()
        base = 1024 if binary else 1000
        bits = unit in {"b", "bit"}
        found[letter] = float(number) * base ** _POWERS[prefix.lower()] / (8 if bits else 1)
    return found
