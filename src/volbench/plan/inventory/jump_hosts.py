"""Ways as they were written in, each way with the hosts it leads over out.

A host keeps the hosts of the inventory that it is reached through, so that it can be reached when
``--limit`` leaves those out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from volbench.model.campaign.host import Host, HostKind
from volbench.plan.inventory import checks
from volbench.plan.inventory.draft import Draft, HostReader


def resolve_hops(
    reader: HostReader, drafts: Mapping[str, Draft], hosts: Mapping[str, Host]
) -> dict[str, Host]:
    """Return the hosts with their hops; a way in a circle is noted as a problem."""
    cut = {name: _without_itself(host, drafts[name]) for name, host in hosts.items()}
    ways = _Ways(reader, drafts, cut)
    return {name: host.model_copy(update={"hops": ways.hops(host)}) for name, host in cut.items()}


def _without_itself(host: Host, draft: Draft) -> Host:
    """Return a host whose way, where it is meant for many, ends before that host itself."""
    if not host.jump or "jump" in draft.own:
        return host
    places = [checks.hop(text)[1] for text in host.jump]
    itself = {host.name, host.address}
    end = next((number for number, place in enumerate(places) if place in itself), len(places))
    return host.model_copy(update={"jump": host.jump[:end]})


@dataclass
class _Ways:
    reader: HostReader
    drafts: Mapping[str, Draft]
    hosts: Mapping[str, Host]

    def hops(self, host: Host) -> tuple[Host, ...]:
        """Return every host of the inventory that the way to a host leads over."""
        return tuple({hop.name: hop for hop in self._over(host, ())}.values())

    def _over(self, host: Host, before: tuple[str, ...]) -> Iterator[Host]:
        """Yield the hops of a host; `before` are the hosts whose way leads over it."""
        way = (*before, host.name)
        if host.name in before:
            circle = " -> ".join(way)
            self._complain(way[0], f"the way to {way[0]} goes in a circle: {circle}")
            return
        for number, text in enumerate(host.jump or ()):
            hop = self.hosts.get(checks.hop(text)[1])
            if hop is None:
                continue
            if hop.kind is HostKind.LOCAL:
                self._complain(way[0], f"the hop {hop.name} is the controller's own machine")
            yield hop
            if number == 0 or hop.name in way:  # the way to later ones was said: by those before
                yield from self._over(hop, way)

    def _complain(self, name: str, message: str) -> None:
        draft = self.drafts[name]
        node = draft.own.get("jump") or draft.inherited.get("jump") or draft.place
        self.reader.complain(node, message)
