"""How a host is reached: a host of the inventory and ``~/.ssh/config`` enter, a route leaves.

Nothing is connected here. What the inventory says wins over the file, and the file over what is
usual.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from volbench.errors import InventoryError
from volbench.execute.ssh.config import Entry, SshConfig
from volbench.model.campaign.host import Host

_DEFAULT_PORT = 22
_USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_USUAL_KNOWN = ("known_hosts", "known_hosts2")
_GLOBAL_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_MAX_HOPS = 8
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?P<name>\[[^\]\s]+\]|[^@:\s\[\]/]+)(?::(?P<port>\d+))?/?"
)


@dataclass(frozen=True)
class Hop:
    """One sshd on the way, and how to log in to it.

    Attributes:
        name: as the inventory or the user calls it.
        address: name or IP address that is connected to.
        key_files: private keys in the order they are tried; each exists.
        certificate_file: that belongs to one of them; None for those beside their keys only.
        identities_only: whether keys of the agent that are none of `key_files` are left out.
        agent: socket of the agent; empty for none.
        known_as: the name its host key is on record under.
        known_hosts: files to look in; they need not exist.
    """

    name: str
    address: str
    port: int
    user: str
    key_files: tuple[Path, ...] = ()
    certificate_file: Path | None = None
    identities_only: bool = False
    agent: str = ""
    known_as: str = ""
    known_hosts: tuple[Path, ...] = ()

    @property
    def place(self) -> str:
        """Who logs in where, for messages."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"


@dataclass(frozen=True)
class Route:
    """The way to a host: jumps first, the host itself last."""

    hops: tuple[Hop, ...]

    @property
    def target(self) -> Hop:
        """The host itself."""
        return self.hops[-1]


@dataclass(frozen=True)
class Resolver:
    """Finds the way to hosts.

    Attributes:
        config: settings of ssh.
        others: hosts of the inventory that may be named as jumps.
        agent: socket of the agent where the configuration names none.
    """

    config: SshConfig
    others: Mapping[str, Host] = field(default_factory=dict)
    agent: str = field(default_factory=lambda: os.environ.get("SSH_AUTH_SOCK", ""))

    def route(self, host: Host) -> Route:
        """Return the way to a host.

        Raises:
            InventoryError: a key is missing, a jump can't be read, or jumps go round in circles.
            InputError: the configuration of ssh asks for what volbench does not do.
        """
        return Route(self._hops(host, ()))

    def _hops(self, host: Host, before: tuple[str, ...]) -> tuple[Hop, ...]:
        if host.name in before or len(before) > _MAX_HOPS:
            raise InventoryError(
                f"the jumps of {(before or (host.name,))[0]} go round in circles: "
                + " -> ".join((*before, host.name)),
                hint="name each host once on a way",
            )
        entry = self.config.lookup(host.address)
        jumps = host.jump
        if jumps is None:
            jumps = tuple(part.strip() for part in entry.jump.split(",")) if entry.jump else ()
            if entry.proxy_command and not jumps:
                raise _proxy_command(host.name, self.config.path)
        hops: tuple[Hop, ...] = ()
        for number, jump in enumerate(jumps):
            through = self._jump(jump, host.name)
            if number:  # the way to it was said: by the jumps before it
                through = through.model_copy(update={"jump": ()})
            hops += self._hops(through, (*before, host.name))
        return (*hops, self._hop(host, entry))

    def _jump(self, text: str, host: str) -> Host:
        if text in self.others:
            return self.others[text]
        found = _JUMP.fullmatch(text)
        if found is None or int(found["port"] or 1) not in range(1, 65536):
            raise InventoryError(
                f"{host}: the jump {text!r} is neither a host of the inventory nor an address",
                hint="write the name of a host, or user@host:port",
                context={"host": host},
            )
        name = found["name"].strip("[]")
        port = int(found["port"]) if found["port"] else None
        known = self.others.get(name)
        if known is not None:
            return known.model_copy(
                update={"port": port or known.port, "user": found["user"] or known.user}
            )
        return Host(name=name, address=name, port=port, user=found["user"])

    def _hop(self, host: Host, entry: Entry) -> Hop:
        keys, chosen = self._keys(host, entry)
        port = host.port or entry.port or _DEFAULT_PORT
        name = (entry.alias or entry.hostname).lower()
        agent = self._agent(entry.identity_agent)
        return Hop(
            name=host.name,
            address=entry.hostname,
            port=port,
            user=host.user or entry.user or _current_user(),
            key_files=keys,
            certificate_file=self.config.expand(entry.certificate_file)
            if entry.certificate_file
            else None,
            identities_only=chosen or entry.identities_only,
            agent=agent,
            known_as=name if port == _DEFAULT_PORT or entry.alias else f"[{name}]:{port}",
            known_hosts=self._known(entry),
        )

    def _keys(self, host: Host, entry: Entry) -> tuple[tuple[Path, ...], bool]:
        """Return the key files, and whether the inventory chose them."""
        if host.key:
            path = self.config.expand(host.key) if host.key.startswith("~") else Path(host.key)
            if not path.is_file():
                raise InventoryError(
                    f"{host.name}: the key {host.key} is not there",
                    hint="name the file of a private key, or leave `key` out",
                    context={"host": host.name, "path": str(path)},
                )
            return (path,), True
        names = entry.identity_files or tuple(f"~/.ssh/{name}" for name in _USUAL_KEYS)
        paths = (self.config.expand(name) for name in names)
        return tuple(path for path in paths if path.is_file() or _public(path).is_file()), False

    def _agent(self, named: str | None) -> str:
        if named is None or named == "SSH_AUTH_SOCK":
            return self.agent
        if named.lower() == "none":
            return ""
        if named.startswith("$"):
            return os.environ.get(named.strip("${}"), "")
        return str(self.config.expand(named))

    def _known(self, entry: Entry) -> tuple[Path, ...]:
        usual = tuple(f"~/.ssh/{name}" for name in _USUAL_KNOWN)
        user = usual if entry.known_hosts is None else entry.known_hosts
        everyone = _GLOBAL_KNOWN if entry.global_known_hosts is None else entry.global_known_hosts
        return tuple(self.config.expand(name) for name in (*user, *everyone))


def _public(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise InventoryError(
            "your own user has no name here", hint="give `user` in the inventory"
        ) from error


def _proxy_command(host: str, path: Path) -> InventoryError:
    return InventoryError(
        f"{host}: {path} has a ProxyCommand for it, which volbench does not run",
        hint="use ProxyJump there, or `jump` in the inventory",
        context={"host": host, "path": str(path)},
    )
