"""Hosts named with their volumes as scp names files: ``[ROLE=][USER@]HOST:PATH``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL
from volbench.plan.inventory.host_document import check_target

_ROLE = r"(?:(?P<role>[A-Za-z0-9_][A-Za-z0-9_-]*)=)?"
# A host is what stands before the first colon without a slash, an IPv6 address in brackets. After
# the colon of a URI, such as nbd://host/name, two slashes follow.
_NAMED = re.compile(
    _ROLE + r"(?:(?P<user>[^/:]*)@)?(?P<host>\[[\w.%-]*:[\w:.%-]*\]|[^/:@]+):(?!//)(?P<path>.*)",
    re.DOTALL,
)
_LOCAL = re.compile(_ROLE + "(?P<path>.*)", re.DOTALL)


class NamedVolume(NamedTuple):
    """A volume on a host."""

    role: str
    path: str  # on the host; empty for none
    host: str = LOCAL  # name in the inventory; may have ranges
    login: tuple[tuple[str, str], ...] = ()  # keys of the host in the inventory: user, address


def named_volume(text: str) -> NamedVolume | None:
    """Return the volume on a host that a text names; None for a target of this machine."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    role, user, host, path = match.groups()
    if port := re.match(r"(\d+):", path):
        raise InputError(
            f"--on {text}: {port[1]} is no path, and a port cannot stand there",
            hint=f"write Port {port[1]} for {host} in ~/.ssh/config, or port: {port[1]} in an"
            " inventory",
        )
    login = [("user", user)] if user is not None else []
    if ":" in host:  # an address is no name of folders
        login.append(("address", host))
        host = re.sub("[^0-9A-Za-z.]+", "-", host).strip("-")
    return NamedVolume(role or "data", path, host, tuple(login))


def named_hosts(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the inventory that targets stand for, and the targets that all hosts have.

    The inventory is empty if no target names a host; else targets of this machine are those of the
    host ``local``.
    """
    if not any(map(named_volume, texts)):
        return "", [*texts]
    hosts: dict[str, dict[str, Any]] = {}
    paths: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        role, path = re.findall(_LOCAL, text)[0]
        path = path if "://" in path else str(Path(path).absolute())
        volume = named_volume(text) or NamedVolume(role or "data", path)
        login = dict(volume.login)
        if hosts.setdefault(volume.host, login) != login:
            raise InputError(
                f"--on names {volume.host} with two users", hint="name one user for each host"
            )
        own = paths.setdefault(volume.host, {}).setdefault(volume.role, [])
        own += [check_target(volume.path)] if volume.path else []
    first, *others = paths.values()
    shared = [
        path if role == "data" else f"{role}={path}" for role in first for path in first[role]
    ]
    if any(other != first for other in others):
        shared = []
        for name, volumes in paths.items():
            if any(len(of_role) > 1 for of_role in volumes.values()):
                raise InputError(
                    f"--on names several volumes of {name}, and other volumes of other hosts",
                    hint="compare volumes of one host, or hosts with a volume each",
                )
    document = {
        name: {**hosts[name], "volumes": {role: each[0] for role, each in own.items() if each}}
        for name, own in paths.items()
    }
    from volbench.model.document.yaml_text import yaml_text  # noqa: PLC0415 - slow to import

    return yaml_text({"hosts": document}), shared
