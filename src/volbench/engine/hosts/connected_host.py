"""Host of a plan with its executor and clock offset, and parallel work on several hosts.

A host's clock is read between two readings of the local clock, so the error of their midpoint is
at most half the time between them (D. L. Mills, RFC 5905, section 8). Of several exchanges the
shortest counts. An offset below its error bound is ignored, because it may not exist at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from volbench.errors import CampaignError, VolbenchError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import ClockReading, Executor
from volbench.execute.scheduler import on_each
from volbench.model.campaign.host import LOCAL, Host
from volbench.units import folded_names

_MAX_LISTED = 5


@dataclass(frozen=True)
class Clock:
    """Offset of a host's clock."""

    offset_s: float = 0.0  # lead over the controller's clock; 0 if below the error bound
    bound_s: float = 0.0  # maximum error of the offset
    round_trip_s: float = 0.0  # round-trip time to the host
    lead_s: float | None = None  # lead of the host's clock over its monotonic clock, if known


def estimate_clock(readings: Sequence[ClockReading]) -> Clock:
    """Return the offset from the reading with the smallest error."""
    best = min(readings, key=_bound_s)
    round_trip_s = best.received_s - best.sent_s
    bound_s = _bound_s(best)
    offset_s = best.remote_s - (best.sent_s + best.received_s) / 2
    lead_s = best.remote_s - best.steady_s
    if abs(offset_s) <= bound_s:
        return Clock(0.0, abs(offset_s) + bound_s, round_trip_s, lead_s)
    return Clock(offset_s, bound_s, round_trip_s, lead_s)


def _bound_s(reading: ClockReading) -> float:
    return (reading.received_s - reading.sent_s) / 2


Found = TypeVar("Found")


@dataclass(frozen=True)
class ConnectedHost:
    """A host and its executor; ready to run once its tools and its clock offset are known."""

    host: Host  # the host as described by the inventory
    executor: Executor  # its executor, with the host's name
    fio: str = ""  # path of fio on the host; empty until it is detected
    fio_version: str = ""  # such as ``fio-3.33``; empty until it is detected
    clock: Clock = field(default_factory=Clock)  # its clock offset from the controller

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name


def this_machine(*, fio: str = "") -> ConnectedHost:
    """Return the controller's own machine as a host."""
    return ConnectedHost(Host(name=LOCAL), LocalExecutor(), fio)


def on_every_host(
    hosts: Sequence[ConnectedHost], work: Callable[[ConnectedHost], Found]
) -> list[Found]:
    """Call a function for every host in parallel; return the results in the order of the hosts."""
    results = on_each(hosts, work)
    raise_all(hosts, results)
    return [result for result in results if not isinstance(result, VolbenchError)]


def raise_all(hosts: Sequence[ConnectedHost], results: Sequence[object]) -> None:
    """Raise all errors among the results of hosts as one error."""
    errors = [
        (host.name, result)
        for host, result in zip(hosts, results, strict=True)
        if isinstance(result, VolbenchError)
    ]
    if errors and len(hosts) == 1:
        name, error = errors[0]
        if name not in error.message and not hosts[0].host.is_local:
            error.message = f"{name}: {error.message}"
        raise error
    if errors:
        raise _combined(errors, of=len(hosts))


def by_cause(problems: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the names of hosts of one cause, the first reason and their number.

    Reasons of one cause differ in names and numbers.
    """
    causes: dict[str, list[tuple[str, str]]] = {}
    for name, reason in problems:
        cause = re.sub(r"[\d.:]+", "", reason.replace(name, ""))
        causes.setdefault(cause, []).append((name, reason))
    found = []
    for alike in causes.values():
        names, count = folded_names([name for name, _ in alike]), len(alike)
        more = f" (the first of {count} hosts)" if count > 1 else ""
        found.append((names, alike[0][1] + more, count))
    return found


def _combined(errors: Sequence[tuple[str, VolbenchError]], *, of: int) -> VolbenchError:
    """Return one error for several hosts, of their common class and with all host names."""
    causes = by_cause((name, error.message) for name, error in errors)
    listed = [f"{names}: {reason}" for names, reason, _ in causes[:_MAX_LISTED]]
    if more := sum(count for _, _, count in causes[_MAX_LISTED:]):
        listed.append(f"and {more} more")
    # A class of another module may be made in another way; `volbench.errors` has its general form.
    classes = {
        next(kind for kind in type(error).__mro__ if kind.__module__ == VolbenchError.__module__)
        for _, error in errors
    }
    name, hint = next(((name, error.hint) for name, error in errors if error.hint), ("", ""))
    if any(error.hint != hint for _, error in errors):
        hint = f"for {name}: {hint}"
    error_class: type[VolbenchError] = classes.pop() if len(classes) == 1 else CampaignError
    return error_class(
        f"{len(errors)} of {of} hosts cannot take part: {'; '.join(listed)}", hint=hint
    )
