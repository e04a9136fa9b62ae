"""Campaigns of several clients that execute every step in parallel, each on its slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL, Host
from volbench.model.campaign.planned_run import Campaign, Run, Volume, VolumeKind
from volbench.model.client_counts import counted_job, split_count
from volbench.model.profile.profile_model import Phase, Profile, Start
from volbench.plan.expansion.expand import (
    EXAMPLE_BYTES,
    USUAL_FORMAT,
    Step,
    Terms,
    balanced,
    campaign_of,
    check_known_limits,
    check_length,
    check_sizes,
    derive,
    expand,
    index_width,
    root_seed,
    run_of,
    steps_of,
    with_files_of,
)
from volbench.plan.expansion.extents import Basis
from volbench.plan.expansion.shared_file import is_layout
from volbench.units import counted_noun

# Slices of a device begin at whole MiB, as partitions do (parted's optimal alignment). Noticed by:
# tests/plan/expansion/test_multi_client.py::test_a_device_is_divided_into_separate_slices
ALIGNMENT_BYTES = 1 << 20

# Options that a job cannot have on a shared device, with the reason
_OWN: dict[str, str] = {
    "offset": "volbench sets it",
    "offset_increment": "jobs in parallel would leave the slice of their client",
    "fill_device": "it would continue beyond the slice",
    "read_iolog": "a replay follows its log",
}


@dataclass(frozen=True)
class Share:
    """A client's share of a volume."""

    volume: Volume  # the shared volume
    index: int  # index of the share, from 0
    count: int  # number of shares; 1 where the volume is not shared
    label: str  # name of the client in file names

    @property
    def size_bytes(self) -> int:
        """Size of a slice of a device; of an example device in plans that are only shown."""
        whole_bytes = self.volume.size_bytes or EXAMPLE_BYTES
        return whole_bytes // self.count // ALIGNMENT_BYTES * ALIGNMENT_BYTES


def own_part(run: Run, share: Share) -> Run:
    """Return a run that stays within its client's share of the volume."""
    if share.count == 1:
        return run
    if share.volume.kind is VolumeKind.DIRECTORY:
        return _with_own_files(run, share)
    if share.volume.kind is not VolumeKind.DEVICE or share.volume.parts:
        hint = "name a directory, in which each client makes its own file, or a block device"
        raise _refusal(run, share, "it is neither a directory nor one device", hint)
    # A device is warmed completely by a single client.
    return run if run.extent is not None else _with_own_slice(run, share)


def _refusal(run: Run, share: Share, reason: str, hint: str) -> InputError:
    return InputError(
        f"job {run.job}: {share.count} clients on {run.host} cannot share {share.volume.target}: "
        f"{reason}",
        hint=hint,
    )


def _with_own_files(run: Run, share: Share) -> Run:
    """Return a run whose files in a directory are prefixed with the client's name."""
    sections = []
    for section in run.sections:
        options = run.effective(section)
        named = {"filename_format": f"{share.label}.{options.get('filename_format', USUAL_FORMAT)}"}
        if "filename" in options:
            names = options["filename"].split(":")
            own = (name if name == run.shared else f"{share.label}-{name}" for name in names)
            named = {"filename": ":".join(own)}
        sections.append(section.model_copy(update={"options": section.options | named}))
    return run.model_copy(update={"sections": tuple(sections)})


def _with_files_of_profile(run: Run) -> Run:
    """Return a run with the files of its job, whatever the number of clients."""
    job, count = split_count(run.job)
    return with_files_of(run, job) if count else run


def _with_own_slice(run: Run, share: Share) -> Run:
    if not share.size_bytes:
        raise _refusal(run, share, "less than 1 MiB for each", "use fewer clients")
    sections = []
    for section in run.sections:
        options = run.effective(section)
        for name, reason in _OWN.items():
            if options.get(name, "0") not in {"0", "0%"}:
                hint = f"remove {name}, or give each client a volume of its own"
                raise _refusal(run, share, f"the job sets {name}, and {reason}", hint)
        slice_options = {
            "offset": str(share.index * share.size_bytes),
            "size": str(_size_bytes(run, options, share)),
        }
        sections.append(section.model_copy(update={"options": section.options | slice_options}))
    return run.model_copy(update={"sections": tuple(sections)})


def _size_bytes(run: Run, options: dict[str, str], share: Share) -> int:
    """Return the size for a client: from the job, a percentage of the slice, or the slice."""
    text = options.get("size", "100%")
    if text.endswith("%"):
        size_bytes = share.size_bytes * int(text[:-1]) // 100
        return max(size_bytes // ALIGNMENT_BYTES, 1) * ALIGNMENT_BYTES
    if not text.isdecimal() or int(text) > share.size_bytes:
        raise _refusal(
            run,
            share,
            f"size {text} does not fit a slice of {share.size_bytes} bytes",
            "decrease size, or use fewer clients",
        )
    return int(text)


@dataclass(frozen=True)
class Client:
    """One of several processes that execute the same steps in parallel."""

    host: Host  # host of the client
    number: int  # index among the clients on its host, from 1; 0 for a single one
    volumes: Mapping[str, Volume]  # role to volume on its host
    # of the volumes that jobs warm, by role; empty for those of the `Terms`
    bases: Mapping[str, Basis] = field(default_factory=dict)

    def own_terms(self, terms: Terms) -> Terms:
        """Return the terms with what this host knows of its volumes."""
        return replace(terms, bases=self.bases or terms.bases)


def clients_of(hosts: Sequence[Client], count: int) -> list[Client]:
    """Return clients distributed evenly over hosts, ordered by host."""
    numbers = client_numbers(len(hosts), count)
    return [
        replace(host, number=number)
        for host, own_numbers in zip(hosts, numbers, strict=True)
        for number in own_numbers
    ]


def client_numbers(hosts: int, count: int) -> list[tuple[int, ...]]:
    """Return the client numbers of each host, for `count` clients distributed evenly.

    Every host has at least one client; a single client has the number 0.
    """
    each, more = divmod(count, hosts)
    totals = [each + (index < more) for index in range(hosts)]
    return [tuple(range(1, total + 1)) if total > 1 else (0,) for total in totals]


def expand_clients(
    profiles: Sequence[Profile], clients: Sequence[Client], terms: Terms
) -> Campaign:
    """Return the campaign in which every client runs the profiles, step by step.

    The order of the steps is the same for all clients. A client with less to warm than others
    skips the last warm-up steps. Hosts of several turns have steps of their own, one after another.
    Runs are ordered by step, then by client.

    Args:
        clients: clients in order of their starts; a single local client gives the plan of
            `expand`.
    """
    is_single = len(clients) == 1 and clients[0].host == Host(name=LOCAL)
    if is_single and not clients[0].number and not terms.client_counts:
        campaign = expand(profiles, clients[0].volumes, clients[0].own_terms(terms))
        check_known_limits(campaign.runs)
        check_sizes(campaign.runs)
        return campaign
    _check(profiles, clients)
    check_length(profiles, terms, clients=len(clients) * max(1, len(terms.client_counts)))
    root = root_seed(profiles, terms)
    fleet = _Fleet(clients, terms, lanes=max(profile.lanes for profile in profiles))
    planned = [
        (part, number)
        for number, client in enumerate(clients)
        for step in steps_of(profiles, client.volumes, client.own_terms(terms), root=root)
        for part in fleet.parts(number, step)
    ]
    turns = sorted({client.host.turn for client in clients})
    places = sorted(
        {(step.place, clients[number].host.turn): step for step, number in planned}.items(),
        key=lambda item: (
            item[0][0],
            balanced(turns, item[1].repeat - 1 if item[1].block else 0).index(item[0][1]),
        ),
    )
    index = {place: at for at, (place, _) in enumerate(places, start=1)}
    runs = tuple(
        fleet.run(step, number, index=at, count=len(places), root=root)
        for at, number, step in sorted(
            (
                (index[step.place, clients[number].host.turn], number, step)
                for step, number in planned
            ),
            key=itemgetter(0, 1),
        )
    )
    check_known_limits(runs)
    check_sizes(runs)
    hosts = tuple({client.host.name: client.host for client in clients}.values())
    return campaign_of(profiles, runs, terms, root=root).model_copy(
        update={
            "hosts": () if hosts == (Host(name=LOCAL),) else hosts,
            "policy": terms.policy,
            "quorum": terms.quorum,
        }
    )


class _Fleet:
    """The clients of a campaign: their names, seeds, and shares of volumes."""

    def __init__(self, clients: Sequence[Client], terms: Terms, *, lanes: int) -> None:
        self._clients, self._lanes = clients, lanes
        self._counts, before = terms.client_counts, terms.clients_before
        self._hosts = len({client.host.name for client in clients})
        turns = Counter[int]()
        self._numbers = []  # of each client within its turn
        for client in clients:
            self._numbers.append(turns[client.host.turn])
            turns[client.host.turn] += 1
        _check_counts(self._counts, min(turns.values()))
        self._ranks = dict[int, int]()  # of each client within its turn, from host to host
        ranks = Counter[int]()
        for number in sorted(range(len(clients)), key=lambda number: clients[number].number):
            self._ranks[number] = ranks[clients[number].host.turn]
            ranks[clients[number].host.turn] += 1
        # Files of clients that join later must not be laid out while the first ones are measured,
        # and whether a deeper queue is needed depends on the results of all clients.
        # Sections behind a stonewall wait for those of all volumes.
        self._takes_turns = len(turns) > 1 or bool(self._counts) or bool(terms.ladders) or lanes > 1
        most = max(client.number for client in clients)
        self._width = max(2, len(str(most)))
        self._shares: dict[str, list[Share]] = {}
        names = [self.name(number) for number in range(len(clients))]
        free = iter([name for name in before if name not in names])
        self._seeded_as = {name: name if name in before else next(free, name) for name in names}

    def name(self, number: int) -> str:
        """Return the name of a client: ``vm01``, ``c03`` or ``vm01-c03``."""
        client = self._clients[number]
        suffix = f"c{client.number:0{self._width}d}" if client.number else ""
        if suffix and self._hosts == 1 and client.host.is_local:
            return suffix
        return f"{client.host.name}-{suffix}" if suffix else client.host.name

    def parts(self, number: int, step: Step) -> list[Step]:
        """Return the steps of a client in place of one: a measured one for each number of clients.

        Every second repeat takes the numbers in reverse, so that a volume that becomes slower or
        faster with time does not look like an effect of their order.
        """
        if not self._takes_part(number, step):
            return []
        if not self._counts or step.job.phase is not Phase.MEASURED:
            return [step]
        in_order = self._counts if step.repeat % 2 else self._counts[::-1]
        return [
            replace(
                step,
                place=(step.place[0], place),
                job=step.job.model_copy(update={"name": counted_job(step.job.name, count)}),
            )
            for place, count in enumerate(in_order)
            if self._ranks[number] < count
        ]

    def _takes_part(self, number: int, step: Step) -> bool:
        """Return whether a client takes part in a step.

        The first client of a volume warms a device, and writes a shared file, for all others. Of a
        job on several volumes each client of a host has one volume.
        """
        if self._lanes > 1:
            return self._clients[number].number == max(step.lane, 1)
        share = self._share(number, step)
        own_files = share.volume.kind is VolumeKind.DIRECTORY
        is_own = own_files if step.touch else not is_layout(step.job)
        return is_own or share.index == 0

    def run(self, step: Step, number: int, *, index: int, count: int, root: int) -> Run:
        """Return the run of one client in one step."""
        client, name = self._clients[number], self.name(number)
        is_measured = step.job.phase is Phase.MEASURED
        start = step.profile.start if is_measured else Start.TOGETHER
        run = run_of(
            step,
            id_=f"{index:0{index_width(count)}d}-{step.label}-r{step.repeat}-{name}",
            volume=client.volumes[step.job.role],
            seed=derive(
                root, step.profile.name, step.workload, str(step.repeat), self._seeded_as[name]
            ),
            limits=client.host.limits.get(step.job.role) or client.host.limits.get("*"),
        )
        of_client = {"host": client.host.name, "client": client.number, "step": index}
        if self._hosts > 1:
            of_client["block"] = step.block
        offset_s = self._numbers[number] * step.profile.stagger_s
        started = {
            "start": start,
            # results of all clients decide what is precise, and which rate is next; a shared file
            # is there first
            "in_turn": self._takes_turns
            or step.profile.repeats.until is not None
            or bool(step.job.within)
            or step.job.shared is not None,
            "start_offset_s": offset_s if start is Start.STAGGERED else 0.0,
        }
        run = _with_files_of_profile(run.model_copy(update=of_client | started))
        return own_part(run, self._share(number, step))

    def _share(self, number: int, step: Step) -> Share:
        role = step.job.role
        if self._lanes > 1:
            return Share(self._clients[number].volumes[role], 0, 1, "")
        if role not in self._shares:
            self._shares[role] = self._shared_out(role)
        return self._shares[role][number]

    def _shared_out(self, role: str) -> list[Share]:
        keys = [(c.host.name, c.volumes[role].target) for c in self._clients]
        totals, before = Counter(keys), Counter[tuple[str, str]]()
        shares = []
        for client, key in zip(self._clients, keys, strict=True):
            label = f"c{client.number:0{self._width}d}"
            shares.append(Share(client.volumes[role], before[key], totals[key], label))
            before[key] += 1
        return shares


def _check_counts(counts: Sequence[int], most: int) -> None:
    """Refuse numbers of clients that are not there."""
    if max(counts, default=0) > most:
        listed, verb = ",".join(map(str, counts)), "is" if most == 1 else "are"
        raise InputError(
            f"--client-counts {listed}: there {verb} only {counted_noun(most, 'client')}",
            hint="add hosts, or pods by --replicas, or clients of one host by --set clients=N",
        )


def _check(profiles: Sequence[Profile], clients: Sequence[Client]) -> None:
    """Refuse clients that are duplicates or lack a volume, and rounds on several of them."""
    if not clients:
        raise InputError("there are no clients", hint="name at least one host")
    names = Counter((client.host.name, client.number) for client in clients)
    (host, number), count = names.most_common(1)[0]
    if count > 1:
        raise InputError(
            f"host {host} has two clients with the number {number}", hint="name each host once"
        )
    lanes = max(profile.lanes for profile in profiles)
    if lanes > 1 and max(profile.clients for profile in profiles) > 1:
        message = "a job on several volumes at the same time has a client for each of them"
        raise InputError(message, hint="leave out clients")
    roles = set().union(*(profile.roles for profile in profiles))
    for client in clients:
        if missing := sorted(roles - client.volumes.keys()):
            raise InputError(
                f"host {client.host.name} has no volume for the role {missing[0]!r}",
                hint=f"add --on {missing[0]}={client.host.name}:PATH; with an inventory"
                f" --on {missing[0]}=PATH, or the volume to the host in it",
            )
    searched = [each for each in profiles if any(job.within for job in each.jobs)]
    if len(clients) > 1 and any(each.start is not Start.TOGETHER for each in searched):
        message = "within adds up the rates of clients that run together"
        raise InputError(message, hint="write start: together, or leave out start")
    in_rounds = next((profile.name for profile in profiles if profile.rounds), None)
    if in_rounds is not None and len(clients) > 1:
        raise InputError(
            f"profile {in_rounds} repeats its jobs until its volume is steady, but "
            f"{len(clients)} clients do not become steady at the same time",
            hint="run it on one host after another (--limit HOST), each into a folder of its own; "
            "or write --set rounds= --set repeat=5 for a fixed number of rounds",
        )
