"""Campaigns of several clients that execute every step in parallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from volbench.catalogue.evaluate import check_known_limits
from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL, Host, HostKind, Policy
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.model.profile.profile_model import Phase, Profile, Start
from volbench.plan.expansion.client_slices import Share, own_part
from volbench.plan.expansion.expand import (
    Step,
    Terms,
    campaign_of,
    check_length,
    derive,
    expand,
    index_width,
    root_seed,
    run_of,
    steps_of,
)


@dataclass(frozen=True)
class Client:
    """One of several processes that execute the same steps in parallel."""

    host: Host  # host of the client
    number: int  # index among the clients on its host, from 1; 0 for a single one
    volumes: Mapping[str, Volume]  # role to volume on its host
    # sizes of the volumes that jobs warm, by role; empty for those of the `Terms`
    sizes_bytes: Mapping[str, int] = field(default_factory=dict)

    def own_terms(self, terms: Terms) -> Terms:
        """Return the terms with the sizes of this host's volumes."""
        return replace(terms, sizes_bytes=self.sizes_bytes or terms.sizes_bytes)


def clients_of(hosts: Sequence[Client], count: int) -> list[Client]:
    """Return clients distributed evenly over hosts, ordered by host."""
    numbers = client_numbers(len(hosts), count)
    return [
        replace(host, number=number)
        for host, own in zip(hosts, numbers, strict=True)
        for number in own
    ]


def client_numbers(hosts: int, count: int) -> list[tuple[int, ...]]:
    """Return the client numbers of each host, for `count` clients distributed evenly.

    Every host has at least one client; a single client has the number 0.
    """
    each, more = divmod(count, hosts)
    totals = [each + (place < more) for place in range(hosts)]
    return [tuple(range(1, total + 1)) if total > 1 else (0,) for total in totals]


def expand_clients(
    profiles: Sequence[Profile],
    clients: Sequence[Client],
    terms: Terms,
    *,
    policy: Policy = Policy.ALL,
    quorum: int = 0,
) -> Campaign:
    """Return the campaign in which every client runs the profiles, step by step.

    The order of the steps is the same for all clients. A client with less to warm than others
    skips the last warm-up steps. Runs are ordered by step, then by client.

    Args:
        clients: clients in order of their starts; a single local client gives the plan of
            `expand`.
        quorum: that number when the policy is ``quorum``.
    """
    if len(clients) == 1 and clients[0].host == Host(name=LOCAL) and not clients[0].number:
        campaign = expand(profiles, clients[0].volumes, clients[0].own_terms(terms))
        check_known_limits(campaign.runs)
        return campaign
    _check(clients, {job.role for profile in profiles for job in profile.jobs})
    _check_rounds(profiles, clients)
    check_length(profiles, terms, clients=len(clients))
    root = root_seed(profiles, terms)
    fleet = _Fleet(clients, terms.clients_before)
    planned = [
        (step, number)
        for number, client in enumerate(clients)
        for step in steps_of(profiles, client.volumes, client.own_terms(terms), root=root)
        if fleet.takes_part(number, step)
    ]
    places = sorted({step.place for step, _ in planned})
    index = {place: at for at, place in enumerate(places, start=1)}
    planned.sort(key=lambda planned_step: (planned_step[0].place, planned_step[1]))
    runs = tuple(
        fleet.run(step, number, index=index[step.place], count=len(places), root=root)
        for step, number in planned
    )
    check_known_limits(runs)
    hosts = tuple({client.host.name: client.host for client in clients}.values())
    return campaign_of(profiles, runs, terms, root=root).model_copy(
        update={
            "hosts": () if hosts == (Host(name=LOCAL),) else hosts,
            "policy": policy,
            "quorum": quorum,
        }
    )


class _Fleet:
    """The clients of a campaign: their names, seeds, and shares of volumes."""

    def __init__(self, clients: Sequence[Client], before: Sequence[str]) -> None:
        self._clients = clients
        self._hosts = len({client.host.name for client in clients})
        most = max(client.number for client in clients)
        self._width = max(2, len(str(most)))
        self._shares: dict[str, list[Share]] = {}
        names = [self.name(number) for number in range(len(clients))]
        free = iter([name for name in before if name not in names])
        self._seeded_as = {name: name if name in before else next(free, name) for name in names}

    def name(self, number: int) -> str:
        """Return the name of a client: ``vm01``, ``c03`` or ``vm01-c03``."""
        client = self._clients[number]
        own = f"c{client.number:0{self._width}d}" if client.number else ""
        if own and self._hosts == 1 and client.host.kind is HostKind.LOCAL:
            return own
        return f"{client.host.name}-{own}" if own else client.host.name

    def takes_part(self, number: int, step: Step) -> bool:
        """Return whether a client takes part in a step: its first client warms a shared device."""
        share = self._share(number, step)
        own_files = share.volume.kind is VolumeKind.DIRECTORY
        return step.touch is None or own_files or share.index == 0

    def run(self, step: Step, number: int, *, index: int, count: int, root: int) -> Run:
        """Return the run of one client in one step."""
        client, name = self._clients[number], self.name(number)
        width = index_width(count)
        measured = step.job.phase is Phase.MEASURED
        start = step.profile.start if measured else Start.TOGETHER
        limits = client.host.limits.get(step.job.role) or client.host.limits.get("*")
        usual = run_of(
            step,
            id_=f"{index:0{width}d}-{step.label}-r{step.repeat}-{name}",
            volume=client.volumes[step.job.role],
            seed=derive(
                root, step.profile.name, step.label, str(step.repeat), self._seeded_as[name]
            ),
            limits=limits,
        )
        mine = usual.model_copy(
            update={
                "host": client.host.name,
                "client": client.number,
                "step": index,
                "start": start,
                "start_offset_s": number * step.profile.stagger_s
                if start is Start.STAGGERED
                else 0.0,
            }
        )
        return own_part(mine, self._share(number, step))

    def _share(self, number: int, step: Step) -> Share:
        """Return the client's share of its volume."""
        role = step.job.role
        if role not in self._shares:
            self._shares[role] = self._shared_out(role)
        return self._shares[role][number]

    def _shared_out(self, role: str) -> list[Share]:
        volumes = [client.volumes[role] for client in self._clients]
        places = [
            (client.host.name, volume.target)
            for client, volume in zip(self._clients, volumes, strict=True)
        ]
        totals, before = Counter(places), Counter[tuple[str, str]]()
        shares = []
        for client, volume, place in zip(self._clients, volumes, places, strict=True):
            label = f"c{client.number:0{self._width}d}"
            shares.append(Share(volume, before[place], totals[place], label))
            before[place] += 1
        return shares


def _check_rounds(profiles: Sequence[Profile], clients: Sequence[Client]) -> None:
    """Refuse rounds on several clients: these do not reach steady state at the same time."""
    named = next((profile.name for profile in profiles if profile.rounds), None)
    if named is not None and len(clients) > 1:
        raise InputError(
            f"profile {named} goes on in rounds until its volume is steady, and {len(clients)} "
            "clients are not steady at the same time",
            hint="run it on one host after another (--limit HOST), each into a folder of its own; "
            "or write --set rounds= --set repeat=5 for a fixed number of rounds",
        )


def _check(clients: Sequence[Client], roles: set[str]) -> None:
    """Refuse clients that are duplicates or lack a volume."""
    if not clients:
        raise InputError("there are no clients", hint="name at least one host")
    names = Counter((client.host.name, client.number) for client in clients)
    host, number = max(names, key=lambda name: names[name])
    if names[host, number] > 1:
        raise InputError(
            f"host {host} has two clients with the number {number}",
            hint="name each host once",
        )
    for client in clients:
        if missing := sorted(roles - client.volumes.keys()):
            raise InputError(
                f"host {client.host.name} has no volume for the role {missing[0]!r}",
                hint=f"add --on {missing[0]}=PATH, or the volume to the host in the inventory",
            )
