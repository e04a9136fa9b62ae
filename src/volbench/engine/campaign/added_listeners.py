"""Listeners that extensions add to every campaign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.extension import extensions, load
from volbench.model.campaign.event import Listener
from volbench.store.layout import Layout


@contextmanager
def added_listeners(layout: Layout, hosts: Sequence[ConnectedHost]) -> Iterator[list[Listener]]:
    """Yield the listeners of extensions around the execution of a campaign.

    An error that ends the campaign passes through the context managers of the extensions.
    """
    references = [each for extension in extensions() for each in extension.listeners]
    with ExitStack() as stack:
        found = [stack.enter_context(load(each)(layout, hosts)) for each in references]
        yield [listener for listener in found if listener is not None]
