"""SSH route to a host: address, user, keys, jump hosts and ProxyCommand.

The inventory takes precedence over ``~/.ssh/config``, and that over ssh's defaults. ssh starts a
ProxyCommand with the user's shell. volbench splits it as a shell would, then replaces placeholders,
so that no value is ever parsed by a shell.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from volbench.errors import InputError, InventoryError, TransportError
from volbench.execute.ssh.ssh_config import Entry, SshConfig
from volbench.model.campaign.host import Host

_DEFAULT_PORT = 22
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_DEFAULT_KNOWN = ("known_hosts", "known_hosts2")
_GLOBAL_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_MAX_HOPS = 8  # Longer routes are mistakes. Noticed by: tests/execute/ssh/test_ssh_route.py
_NEEDS_SHELL = re.compile(r"[|&;<>()$`]")
_PLACEHOLDER = re.compile(r"%(.)")
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?P<name>\[[^\]\s]+\]|[^@:\s\[\]/]+)(?::(?P<port>\d+))?/?"
)


@dataclass(frozen=True)
class Hop:
    """One sshd of a route, with the credentials for it."""

    name: str  # name in the inventory or in a jump list
    address: str  # host name or IP address
    port: int
    user: str
    key_files: tuple[Path, ...] = ()  # existing private keys, in the order of use
    # certificate of one of them, in addition to ``KEY-cert.pub``
    certificate_file: Path | None = None
    identities_only: bool = False  # whether to ignore agent keys that are not among `key_files`
    agent: str = ""  # socket of the agent; empty for none
    known_as: str = ""  # name in known_hosts files
    known_hosts: tuple[Path, ...] = ()  # known_hosts files, which need not exist
    # program and arguments of its ProxyCommand; empty to connect to its port
    proxy: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """User, address and port, for messages."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"


@dataclass(frozen=True)
class Route:
    """Hops to a host: jump hosts first, the host itself last."""

    hops: tuple[Hop, ...]

    @property
    def target(self) -> Hop:
        """The host itself."""
        return self.hops[-1]


@dataclass(frozen=True)
class Resolver:
    """Resolver of routes to hosts."""

    config: SshConfig  # ssh configuration
    # hosts of the inventory, which may serve as jump hosts
    others: Mapping[str, Host] = field(default_factory=dict)
    # socket of the agent, unless the configuration sets one
    agent: str = field(default_factory=lambda: os.environ.get("SSH_AUTH_SOCK", ""))

    def route(self, host: Host) -> Route:
        """Return the route to a host."""
        return Route(self._hops(host, ()))

    def _hops(self, host: Host, before: tuple[str, ...]) -> tuple[Hop, ...]:
        if host.name in before or len(before) > _MAX_HOPS:
            raise InventoryError(
                f"the jump hosts of {(before or (host.name,))[0]} form a cycle: "
                + " -> ".join((*before, host.name)),
                hint="list each host only once per route",
            )
        entry = self.config.lookup(host.address)
        jumps = host.jump
        if jumps is None:
            jumps = tuple(hop.strip() for hop in entry.jump.split(",")) if entry.jump else ()
        hops: tuple[Hop, ...] = ()
        for number, jump in enumerate(jumps):
            through = self._jump(jump, host.name)
            if number:  # reached through the previous jump hosts
                through = through.model_copy(update={"jump": ()})
            hops += self._hops(through, (*before, host.name))
        return (*hops, self._hop(host, entry))

    def _jump(self, text: str, host: str) -> Host:
        if text in self.others:
            return self.others[text]
        jump = _JUMP.fullmatch(text)
        if jump is None or int(jump["port"] or 1) not in range(1, 65536):
            raise InventoryError(
                f"{host}: the jump host {text!r} is neither in the inventory nor an address",
                hint="use a host name of the inventory, or user@host:port",
            )
        name = jump["name"].strip("[]")
        port = int(jump["port"]) if jump["port"] else None
        known = self.others.get(name)
        if known is not None:
            return known.model_copy(
                update={"port": port or known.port, "user": jump["user"] or known.user}
            )
        return Host(name=name, address=name, port=port, user=jump["user"])

    def _hop(self, host: Host, entry: Entry) -> Hop:
        keys, chosen = self._keys(host, entry)
        port = host.port or entry.port or _DEFAULT_PORT
        name = (entry.alias or entry.hostname).lower()
        agent = self._agent(entry.identity_agent)
        user = host.user or entry.user or _current_user()
        values = {"h": entry.hostname, "p": str(port), "r": user, "n": host.address}
        is_proxied = entry.proxy_command and host.jump is None and not entry.jump
        return Hop(
            name=host.name,
            address=entry.hostname,
            port=port,
            user=user,
            key_files=keys,
            certificate_file=self.config.expand(entry.certificate_file)
            if entry.certificate_file
            else None,
            identities_only=chosen or entry.identities_only,
            agent=agent,
            known_as=name if port == _DEFAULT_PORT or entry.alias else f"[{name}]:{port}",
            known_hosts=self._known_keys(entry),
            proxy=proxy_argv(entry.proxy_command, values) if is_proxied else (),
        )

    def _keys(self, host: Host, entry: Entry) -> tuple[tuple[Path, ...], bool]:
        """Return the key files, and whether they are set in the inventory."""
        if host.key:
            path = self.config.expand(host.key) if host.key.startswith("~") else Path(host.key)
            if not path.is_file():
                raise InventoryError(
                    f"{host.name}: the key {host.key} does not exist",
                    hint="set `key` to the path of a private key, or omit it",
                )
            return (path,), True
        names = entry.identity_files or tuple(f"~/.ssh/{name}" for name in _DEFAULT_KEYS)
        paths = (self.config.expand(name) for name in names)
        found = (path for path in paths if path.is_file() or Path(f"{path}.pub").is_file())
        return tuple(found), False

    def _agent(self, named: str | None) -> str:
        if named is None or named == "SSH_AUTH_SOCK":
            return self.agent
        if named.lower() == "none":
            return ""
        if named.startswith("$"):
            return os.environ.get(named.strip("${}"), "")
        return str(self.config.expand(named))

    def _known_keys(self, entry: Entry) -> tuple[Path, ...]:
        default = tuple(f"~/.ssh/{name}" for name in _DEFAULT_KNOWN)
        user = default if entry.known_hosts is None else entry.known_hosts
        everyone = _GLOBAL_KNOWN if entry.global_known_hosts is None else entry.global_known_hosts
        return tuple(self.config.expand(name) for name in (*user, *everyone))


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise InventoryError(
            "the current user has no name on this machine", hint="set `user` in the inventory"
        ) from error


def proxy_argv(command: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return program and arguments of a ProxyCommand; of %h, %p and %r, the values are given."""
    if _NEEDS_SHELL.search(command):
        raise _unusable(command, "it needs a shell", "put it into a script, and name the script")
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise _unusable(command, str(error), "check its quotes") from error
    arguments = arguments[1:] if arguments[:1] == ["exec"] else arguments
    if not arguments:
        raise _unusable(command, "it names no program", "write it as for ssh")

    def value(placeholder: re.Match[str]) -> str:
        known = {"%": "%", **values}
        if placeholder[1] not in known:
            raise _unusable(command, f"{placeholder[0]} is not supported", "use %h, %p, %r and %%")
        return known[placeholder[1]]

    return tuple(_PLACEHOLDER.sub(value, word) for word in arguments)


def open_proxy(argv: tuple[str, ...], *, host: str) -> socket.socket:
    """Start a ProxyCommand and return the socket to it; it ends when the socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, as for ssh
                argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise TransportError(
                f"the ProxyCommand of {host} cannot be started: {error.strerror}",
                hint=f"check it in ~/.ssh/config: {argv[0]}",
            ) from error
    Thread(target=process.wait, daemon=True).start()
    return ours


def _unusable(command: str, reason: str, hint: str) -> InputError:
    return InputError(f"ProxyCommand {command!r} cannot be used: {reason}", hint=hint)
