"""A host of the plan and what reaches it: many at once looked at, what each is told together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from volbench.engine.hosts.machine import Machine
from volbench.errors import CampaignError, VolbenchError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.host import LOCAL, Host

MOST_THREADS = 64
"""Threads cost little; few of them behind hosts that do not answer cost seconds."""

_MOST_TOLD = 5

Place = TypeVar("Place", "ConnectedHost", Machine)
Found = TypeVar("Found")


@dataclass(frozen=True)
class ConnectedHost:
    """A host that was connected to.

    Attributes:
        host: as the inventory has it.
        executor: reaches it; has the host's name.
    """

    host: Host
    executor: Executor

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name


def this_machine() -> ConnectedHost:
    """Return the controller's own machine, without any inventory."""
    return ConnectedHost(Host(name=LOCAL), LocalExecutor())


def of_each(places: Sequence[Place], look: Callable[[Place], Found]) -> list[Found]:
    """Return what a look at each of them gives, in their order; they are looked at side by side.

    Raises:
        VolbenchError: of the only one, its own; of several, all that went wrong, in one.
    """
    told = found_or_error(places, look)
    raise_together(places, told)
    return [one for one in told if not isinstance(one, VolbenchError)]


def found_or_error(
    places: Sequence[Place], look: Callable[[Place], Found]
) -> list[Found | VolbenchError]:
    """Return what a look at each of them gives, or why it gave nothing, in their order."""

    def kept(place: Place) -> Found | VolbenchError:
        try:
            return look(place)
        except VolbenchError as error:
            return error

    if len(places) < 2:
        return [kept(place) for place in places]
    with ThreadPoolExecutor(min(len(places), MOST_THREADS)) as pool:
        return list(pool.map(kept, places))


def raise_together(places: Sequence[Place], told: Sequence[object]) -> None:
    """Raise what went wrong at any of the places, as one error."""
    problems = [
        (place.name, one)
        for place, one in zip(places, told, strict=True)
        if isinstance(one, VolbenchError)
    ]
    if problems and len(places) == 1:
        raise problems[0][1]
    if problems:
        raise _together(problems, of=len(places))


def _together(problems: Sequence[tuple[str, VolbenchError]], *, of: int) -> VolbenchError:
    """Return one error for several hosts, of the class of the first, with all their names."""
    first = problems[0][1]
    told = [f"{name}: {error.message}" for name, error in problems[:_MOST_TOLD]]
    if len(problems) > _MOST_TOLD:
        told.append(f"and {len(problems) - _MOST_TOLD} more")
    names = ", ".join(name for name, _ in problems)
    kinds = {type(error) for _, error in problems}
    kind = type(first) if len(kinds) == 1 else CampaignError
    return kind(
        f"{len(problems)} of {of} hosts can't take part: {'; '.join(told)}",
        hint=first.hint,
        context={"hosts": names},
    )
