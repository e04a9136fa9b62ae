"""Every host of an inventory looked at before anything is asked of it: facts, or why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from volbench.engine.hosts.connected_host import MOST_THREADS, ConnectedHost
from volbench.engine.hosts.volume_probe import find_volume, probe_host, probe_volume
from volbench.engine.sampling.clock_offset import Clock, read_clock
from volbench.errors import VolbenchError
from volbench.model.results.provenance import HostFacts, VolumeFacts


@dataclass(frozen=True)
class Seen:
    """What a look at one host gave.

    Attributes:
        name: of the host.
        problem: why it can't take part; empty when it can.
        hint: what to do about it.
        host: what it is; None when it did not answer.
        clock: how its clock stands; None when it does not tell.
        boot_id: tells two names of one machine.
        volumes: role to what it is.
        trouble: role to why its volume can't be used.
    """

    name: str
    problem: str = ""
    hint: str = ""
    host: HostFacts | None = None
    clock: Clock | None = None
    boot_id: str = ""
    volumes: dict[str, VolumeFacts] = field(default_factory=dict)
    trouble: dict[str, str] = field(default_factory=dict)


def survey(stations: Sequence[ConnectedHost]) -> list[Seen]:
    """Look at hosts side by side; one that does not answer holds nobody up."""
    if not stations:
        return []
    with ThreadPoolExecutor(min(len(stations), MOST_THREADS)) as pool:
        return list(pool.map(_look, stations))


def _look(station: ConnectedHost) -> Seen:
    executor = station.executor
    try:
        volumes: dict[str, VolumeFacts] = {}
        trouble: dict[str, str] = {}
        host = probe_host(executor)
        for role, target in station.host.volumes.items():
            try:
                volumes[role] = probe_volume(
                    executor, find_volume(executor, role=role, target=target)
                )
            except VolbenchError as error:
                if error.transient:
                    raise
                trouble[role] = error.message
        return Seen(
            name=station.name,
            host=host,
            clock=read_clock(executor),
            boot_id=(executor.read_text("/proc/sys/kernel/random/boot_id") or "").strip(),
            volumes=volumes,
            trouble=trouble,
        )
    except VolbenchError as error:
        return Seen(name=station.name, problem=error.message, hint=error.hint)


def shared_machines(seen: Sequence[Seen]) -> list[tuple[str, ...]]:
    """Return the names that mean one machine, by its boot id."""
    return _groups((one.boot_id, one.name) for one in seen)


def shared_volumes(seen: Sequence[Seen]) -> list[tuple[str, ...]]:
    """Return volumes, as ``host:target``, that are one disk by its serial number."""
    return _groups(
        (facts.serial, f"{one.name}:{facts.target}")
        for one in seen
        for facts in one.volumes.values()
    )


def _groups(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        if key:
            found.setdefault(key, []).append(name)
    return [tuple(names) for names in found.values() if len(set(names)) > 1]
