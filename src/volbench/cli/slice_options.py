"""Options that slices add to the verbs of the core, and what stands in for an absent slice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Protocol

from volbench.cli.options import Decorator, OptionGroup, Verb
from volbench.slices import is_present, load

if TYPE_CHECKING:
    from volbench.model.campaign.event import Listener
    from volbench.store.layout import Layout

ListenersOf = Callable[["Layout"], "list[Listener]"]


def options_of_slice(reference: str, keyword: str, *, absent: object) -> Decorator:
    """Return a decorator that gives a verb the options of a slice as one keyword.

    Args:
        reference: a decorator of the slice; see `volbench.slices.load`.
        absent: value of the keyword where the slice is absent.
    """
    if is_present(reference):
        decorator: Decorator = load(reference)
        return decorator

    def add(verb: Verb) -> Verb:
        @wraps(verb)
        def wrapped(*arguments: object, **given: object) -> None:
            verb(*arguments, **{keyword: absent}, **given)

        return wrapped

    return OptionGroup(keyword, add)


class Metrics(Protocol):
    """What is served of a campaign while it runs; a frozen dataclass."""

    def served(self) -> AbstractContextManager[ListenersOf]:
        """Serve metrics inside the block; yield a function that adds those of a campaign."""


@dataclass(frozen=True)
class _NoMetrics:
    def served(self) -> AbstractContextManager[ListenersOf]:
        return nullcontext(lambda _layout: [])


NO_METRICS: Metrics = _NoMetrics()
# Adds the options of what is served to a verb, as the keyword `metrics`
WITH_METRICS = options_of_slice("monitoring.metrics_server:METRICS", "metrics", absent=NO_METRICS)
