"""Hops as they were written in, the whole way to each host out.

A hop that is a host of the inventory is replaced by its address, user and port, with the way to
that host before it. So a host knows its way alone, whatever other hosts are left out later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from volbench.model.fleet import Host
from volbench.plan.inventory import checks
from volbench.plan.inventory.draft import Draft, HostReader


def resolve_hops(
    reader: HostReader, drafts: Mapping[str, Draft], hosts: Mapping[str, Host]
) -> dict[str, Host]:
    """Return the hosts with their whole way; a way in a circle is noted as a problem."""
    ways = _Ways(reader, drafts, hosts)
    return {
        name: host if host.jump is None else host.model_copy(update={"jump": ways.of(host, ())})
        for name, host in hosts.items()
    }


@dataclass
class _Ways:
    reader: HostReader
    drafts: Mapping[str, Draft]
    hosts: Mapping[str, Host]

    def of(self, host: Host, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return the way to a host; `before` are the hosts whose way leads over it."""
        if host.name in before:
            circle = " -> ".join((*before, host.name))
            self._complain(before[0], f"the way to {before[0]} goes in a circle: {circle}")
            return ()
        way: list[str] = []
        for text in host.jump or ():
            user, name, port = checks.hop(text)
            other = None if user or port else self.hosts.get(name)
            if name == host.name and other is host and "jump" not in self.drafts[name].own:
                break  # a way that is meant for many leads over this very host
            if other is None:
                way.append(text)
                continue
            if not way:
                way += self.of(other, (*before, host.name))
            way.append(self._hop(host, other))
        return tuple(way)

    def _hop(self, host: Host, hop: Host) -> str:
        if hop.is_local:
            self._complain(host.name, f"the hop {hop.name} is the controller's own machine")
        if hop.key and hop.key != host.key:
            self._complain(
                host.name,
                f"the hop {hop.name} has another key than {host.name}",
                hint="give the hop an alias with IdentityFile in ~/.ssh/config, and jump to that",
            )
        return checks.hop_text(hop.user, hop.address or hop.name, hop.port)

    def _complain(self, name: str, message: str, *, hint: str = "") -> None:
        draft = self.drafts[name]
        node = draft.own.get("jump") or draft.inherited.get("jump") or draft.place
        self.reader.complain(node, message, hint=hint)
