"""The parts of a scenario: texts with units in, numbers in base units out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from volbench.errors import InputError
from volbench.model.base import Frozen
from volbench.units import parse_duration, parse_rate, parse_size

_T = TypeVar("_T")


def _reading(parse: Callable[[str], _T]) -> Callable[[object], object]:
    """Return a validator that reads texts by `parse` and leaves what was read already."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except InputError as error:
            raise ValueError(f"{error.message} ({error.hint})") from error

    return read


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(f"{text!r} is not a whole number", hint="write it like 16")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{text!r} is not a number", hint="write it like 1100 or 0.5") from error


def _percent(text: str) -> float:
    return _number(text.strip().removesuffix("%"))


def _factor(text: str) -> float:
    return _number(text.strip()[:-1])


Bytes = Annotated[int, BeforeValidator(_reading(parse_size)), Field(gt=0)]
Seconds = Annotated[float, BeforeValidator(_reading(parse_duration)), Field(ge=0)]
Rate = Annotated[float, BeforeValidator(_reading(parse_rate)), Field(gt=0)]
Whole = Annotated[int, BeforeValidator(_reading(_whole))]
Number = Annotated[float, BeforeValidator(_reading(_number)), Field(allow_inf_nan=False)]
Percent = Annotated[float, BeforeValidator(_reading(_percent)), Field(allow_inf_nan=False)]
Positive = Annotated[float, BeforeValidator(_reading(_number)), Field(gt=0, allow_inf_nan=False)]


class Part(Frozen):
    """A mapping of a scenario; keys are as in the file, names carry their unit."""

    model_config = ConfigDict(populate_by_name=True)


class Service(Part):
    """How long the device works on a request.

    Attributes:
        latency_s: mean of the fixed part; ``latency``.
        sigma: shape of a log-normal spread around that mean; 0 for a constant.
        stream_bytes_per_s: speed of one request's bytes; None when size costs nothing; ``stream``.
    """

    latency_s: Seconds = Field(alias="latency", gt=0)
    sigma: Number = Field(default=0.0, ge=0, le=2)
    stream_bytes_per_s: Rate | None = Field(default=None, alias="stream")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        """Read a bare latency."""
        return {"latency": value} if isinstance(value, str) else value


class Services(Part):
    """Service of reads and writes, and how many requests are worked on at once."""

    read: Service
    write: Service
    slots: Whole | None = Field(default=None, ge=1, le=4096)


class Caps(Part):
    """What the provider allows, of everything together."""

    iops: Positive | None = None
    bandwidth_bytes_per_s: Rate | None = Field(default=None, alias="bandwidth")


class IopsBurst(Part):
    """Credits for I/Os: `to` while they last, `baseline` after; one is spent on each I/O."""

    to: Positive
    baseline: Positive
    credits_ios: Positive = Field(alias="credits")

    @model_validator(mode="after")
    def _above(self) -> Self:
        return _checked_burst(self, self.to, self.baseline)


class BandwidthBurst(Part):
    """Credits for bytes: `to` while they last, `baseline` after."""

    to: Rate
    baseline: Rate
    credits_bytes: Bytes = Field(alias="credits")

    @model_validator(mode="after")
    def _above(self) -> Self:
        return _checked_burst(self, self.to, self.baseline)


def _checked_burst(burst: _T, to: float, baseline: float) -> _T:
    if to <= baseline:
        raise ValueError(f"to ({to:g}) is not above baseline ({baseline:g})")
    return burst


class Burst(Part):
    """Credits that run out."""

    iops: IopsBurst | None = None
    bandwidth: BandwidthBurst | None = None


class Penalty(Frozen):
    """What a first touch costs: seconds, or so many times the service (``20x``)."""

    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    times: float | None = Field(default=None, ge=1, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.strip().lower().endswith("x"):
            return {"times": _reading(_factor)(value)}
        return {"seconds": _reading(parse_duration)(value)}

    def of(self, service: Service) -> float:
        """Return it in seconds."""
        if self.times is None:
            return self.seconds
        return (self.times - 1) * service.latency_s


class FirstTouch(Part):
    """The first touch of a block: what it costs, and how many blocks are prepared at once.

    A block is worked on once. A request waits for all blocks it needs. `parallel` None prepares any
    number of blocks at the same time.
    """

    write: Penalty = Penalty()
    read: Penalty = Penalty()
    parallel: Whole | None = Field(default=None, ge=1, le=4096)


class Cache(Part):
    """A write-back cache that takes writes quickly until it is full.

    Attributes:
        size_bytes: what it holds; ``size``.
        drain_bytes_per_s: how fast it empties, all the time; ``drain``.
        latency_s: of a write that it takes; ``latency``.
        when_full: ``drain``: writes go on as room appears. ``stall``: nothing is taken until the
            cache holds `resume_bytes` or less.
        resume_bytes: for ``stall``; ``resume_below``.
    """

    size_bytes: Bytes = Field(alias="size")
    drain_bytes_per_s: Rate = Field(alias="drain")
    latency_s: Seconds = Field(default=0.0001, alias="latency", gt=0)
    when_full: Literal["drain", "stall"] = "drain"
    resume_bytes: Bytes | None = Field(default=None, alias="resume_below")

    @model_validator(mode="after")
    def _stall_has_an_end(self) -> Self:
        if (self.when_full == "stall") != (self.resume_bytes is not None):
            raise ValueError("when_full: stall and resume_below go together")
        if self.resume_bytes is not None and self.resume_bytes >= self.size_bytes:
            raise ValueError("resume_below is not below size")
        return self


class Stall(Part):
    """A time in which nothing completes."""

    at_s: Seconds = Field(alias="at")
    length_s: Seconds = Field(alias="for", gt=0)


class Step(Part):
    """From `at` on everything is `to` times as fast as at first."""

    at_s: Seconds = Field(alias="at")
    to: Positive
