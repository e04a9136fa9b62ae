"""How the values of declared limits are read, by key; for prices and volume types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from volbench.errors import InputError
from volbench.units import parse_rate, parse_size


@dataclass(frozen=True)
class LimitKey:
    """One key under ``limits``.

    Attributes:
        read: text to a number above 0.
    """

    read: Callable[[str], float]


def _above_0(parse: Callable[[str], float], example: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = parse(text)
        if not 0 < number < float("inf"):
            raise InputError(f"must be above 0, not {text}", hint=f"write it like {example}")
        return number

    return read


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"must be a number, not {text!r}", hint="write it like 1100") from None


_COUNT = LimitKey(_above_0(_number, "1100"))
_RATE = LimitKey(_above_0(parse_rate, "125MB/s"))

LIMIT_KEYS: Mapping[str, LimitKey] = {
    "iops": _COUNT,
    "bandwidth": _RATE,
    "burst_iops": _COUNT,
    "burst_ios": _COUNT,
    "burst_bandwidth": _RATE,
    "burst_bytes": LimitKey(_above_0(parse_size, "3g")),
}
"""Every key, in the order of the documentation."""
