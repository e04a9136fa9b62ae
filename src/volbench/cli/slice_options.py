"""Options that slices add to the verbs of the core, and what stands in for an absent slice."""

from __future__ import annotations

from functools import wraps

from volbench.cli.options import Decorator, Metrics, OptionGroup, Verb
from volbench.slices import is_present, load


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


# Adds the options of what is served to a verb, as the keyword `metrics`
WITH_METRICS = options_of_slice("monitoring.metrics_server:METRICS", "metrics", absent=Metrics())
