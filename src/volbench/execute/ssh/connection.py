"""SSH connection to a host, through its jump hosts.

Each hop has its own SSH transport, tunnelled through the previous one; the controller verifies and
authenticates to every host of the route. Dead links are detected by the kernel (TCP_USER_TIMEOUT)
and by keepalives.
"""

from __future__ import annotations

import logging
import shlex
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from volbench.errors import ConnectError, TransportError, VolbenchError
from volbench.execute.channels import connection_lost
from volbench.execute.scheduler import on_each
from volbench.execute.ssh.authentication import authenticate
from volbench.execute.ssh.host_keys import KnownHosts, default_known_hosts
from volbench.execute.ssh.ssh_config import SshConfig
from volbench.execute.ssh.ssh_route import Hop, Resolver, Route, open_proxy
from volbench.model.campaign.host import SSH, Host, by_name

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # errors are raised, not logged

CONNECT_S = 15.0  # Of a hop; a busy sshd needs seconds. Noticed by: tests/fleet/test_ssh_faults.py
OPEN_S = 10.0  # Opening a session on an open connection is cheap: a timeout indicates a fault

# Without it a cut link hangs for longer than 25 s. Noticed by: tests/fleet/test_ssh_faults.py
USER_TIMEOUT_S = 15
_STUCK_S = 10.0  # Of an exchange of keys. Noticed by: test_host_faults.py
KEEPALIVE_S = 5  # Data for the kernel to miss on an idle link: TCP_USER_TIMEOUT needs some.
WINDOW_BYTES = 8 * 1024**2  # 2 MiB would limit a link of 1 Gbit/s at 20 ms. Noticed by: no test.
# Concurrent logins per sshd. The default MaxStartups, 10:30:100, drops connections above ten
# unauthenticated ones (sshd_config(5)), which count until sshd notices their end.
LOGINS_AT_ONCE = 6

# Concurrent sessions per connection. The default MaxSessions is 10 (sshd_config(5)); a session
# counts until sshd notices its end.
CHANNELS_AT_ONCE = 6

_RSA = ("rsa-sha2-512", "rsa-sha2-256")
_PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254, 5.1)


class LoginLimits:
    """Semaphores that limit concurrent logins to each sshd."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, int], threading.Semaphore] = {}
        self._lock = threading.Lock()

    def of(self, hop: Hop) -> threading.Semaphore:
        """Return the semaphore of the sshd at a hop."""
        with self._lock:
            return self._limits.setdefault(
                (hop.address, hop.port), threading.Semaphore(LOGINS_AT_ONCE)
            )


class Connection:
    """An open connection to a host."""

    def __init__(self, host: str, transports: list[paramiko.Transport]) -> None:
        self.host = host  # host name
        # whether a command timed out, so that the connection itself may be dead
        self.in_doubt = False
        self._transports = transports
        self._channels = threading.Semaphore(CHANNELS_AT_ONCE)

    @property
    def is_alive(self) -> bool:
        """Whether the transports of all hops are active."""
        return all(transport.is_active() for transport in self._transports)

    def open_channel(self, within_s: float) -> paramiko.Channel:
        """Open a channel, to be closed by `close_channel`."""
        if not self._channels.acquire(timeout=within_s):
            raise _busy(self.host, f"no session became free in {within_s:g} s")
        timeout_s = min(within_s, OPEN_S / 2 if self.in_doubt else OPEN_S)
        try:
            channel = self._transports[-1].open_session(window_size=WINDOW_BYTES, timeout=timeout_s)
        except BaseException as error:
            self._channels.release()
            if isinstance(error, paramiko.ChannelException):  # the connection is fine
                raise _busy(self.host, error.text) from error
            if isinstance(error, paramiko.SSHException | EOFError | OSError):
                self.close()
                raise connection_lost(self.host, str(error), sent=False) from error
            raise
        self.in_doubt = False
        return channel

    def close_channel(self, channel: paramiko.Channel) -> None:
        """Close a channel; if that hangs, close the connection."""
        self._channels.release()
        if channel.closed:
            channel.close()  # releases its pipe
            return

        def close_quietly() -> None:  # a connection that is broken already has nothing to report
            with suppress(OSError, EOFError, paramiko.SSHException):
                channel.close()

        closer = threading.Thread(target=close_quietly, daemon=True)
        closer.start()
        closer.join(2.0)
        if closer.is_alive():
            self.close()

    def close(self) -> None:
        """Close all hops in reverse order."""
        for transport in reversed(self._transports):
            transport.close()


def connect(
    route: Route, *, known: KnownHosts, logins: LoginLimits, within_s: float = CONNECT_S
) -> Connection:
    """Connect to a host, hop by hop."""
    transports: list[paramiko.Transport] = []
    try:
        for hop in route.hops:
            with logins.of(hop):
                previous = transports[-1] if transports else None
                transport = _verified(hop, previous, known=known, within_s=within_s)
                transports.append(transport)
                authenticate(transport, hop)
            transport.set_keepalive(KEEPALIVE_S)
    except BaseException:
        Connection(route.target.name, transports).close()
        raise
    return Connection(route.target.name, transports)


def _busy(host: str, reason: str) -> ConnectError:
    return ConnectError(
        f"{host} opens no session: {reason}",
        hint="its sshd may limit sessions (MaxSessions), or be out of processes",
        sent=False,
    )


def _verified(
    hop: Hop, previous: paramiko.Transport | None, *, known: KnownHosts, within_s: float
) -> paramiko.Transport:
    """Return a transport to a host whose key has been verified."""
    begun = time.monotonic()
    if previous is not None:
        sock: socket.socket | paramiko.Channel = _tunnel(hop, previous, within_s)
    elif hop.proxy:
        sock = open_proxy(hop.proxy, host=hop.name)
    else:
        sock = _open_socket(hop, within_s)
    left_s = max(1.0, within_s - (time.monotonic() - begun))
    try:
        transport = paramiko.Transport(sock, default_window_size=WINDOW_BYTES)
        transport.banner_timeout = left_s
        transport.auth_timeout = CONNECT_S
    except (paramiko.SSHException, EOFError, OSError) as error:
        sock.close()
        raise _closed_early(hop, error) from error
    try:
        _prefer(transport, known.kinds(hop))
        transport.start_client(timeout=left_s)
        key = transport.get_remote_server_key()
        known.check(hop, kind=key.get_name(), blob=key.asbytes())
    except paramiko.ssh_exception.IncompatiblePeer as error:
        _drop(transport, sock)
        message = f"{hop.name} and volbench have no SSH algorithm in common: {error}"
        hint = "let its sshd_config allow one of them as well, or connect through a jump host that"
        raise TransportError(message, hint=f"{hint} does") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        _drop(transport, sock)
        is_stuck = transport.remote_version and time.monotonic() - begun >= _STUCK_S
        raise (_stuck(hop) if is_stuck else _closed_early(hop, error)) from error
    except VolbenchError:
        _drop(transport, sock)
        raise
    return transport


def _drop(transport: paramiko.Transport, sock: socket.socket | paramiko.Channel) -> None:
    transport.close()
    sock.close()


def _prefer(transport: paramiko.Transport, kinds: tuple[str, ...]) -> None:
    """Prefer known types of host key, as ssh does."""
    known = [name for kind in kinds for name in (_RSA if kind == "ssh-rsa" else (kind,))]
    options = transport.get_security_options()
    supported = list(options.key_types)
    preferred = [name for name in known if name in supported]
    options.key_types = [*preferred, *(name for name in supported if name not in preferred)]


def _open_socket(hop: Hop, within_s: float) -> socket.socket:
    """Open a TCP connection with a limit on unacknowledged data (TCP_USER_TIMEOUT)."""
    try:
        sock = socket.create_connection((hop.address, hop.port), timeout=within_s)
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise _unreachable(hop, "temporary failure in name resolution") from error
        raise TransportError(
            f"{hop.name} has no address: {hop.address} cannot be resolved ({error.strerror})",
            hint="correct `address` in the inventory, or HostName in ~/.ssh/config; a role is"
            " written like data=PATH",
        ) from error
    except TimeoutError as error:
        raise _unreachable(hop, f"no answer in {within_s:.0f} s") from error
    except OSError as error:
        raise _unreachable(hop, error.strerror or str(error)) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_S * 1000)
    return sock


def _tunnel(hop: Hop, previous: paramiko.Transport, within_s: float) -> paramiko.Channel:
    """Open a tunnel to a host through the previous hop."""
    try:
        return previous.open_channel(
            "direct-tcpip",
            (hop.address, hop.port),
            ("127.0.0.1", 0),
            window_size=WINDOW_BYTES,
            timeout=within_s,
        )
    except paramiko.ChannelException as error:
        if error.code == _PROHIBITED:
            raise TransportError(
                f"the jump host before {hop.name} does not forward connections",
                hint="set AllowTcpForwarding in its sshd_config, or choose another jump host",
            ) from error
        raise _unreachable(hop, f"from its jump host: {error.text}") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise _unreachable(hop, f"from its jump host: {error}") from error


def _unreachable(hop: Hop, reason: str) -> ConnectError:
    return ConnectError(
        f"{hop.name} cannot be reached at {hop.address} port {hop.port}: {reason}",
        hint="check that the host and its sshd are up, and the network path to it",
        sent=False,
    )


def _stuck(hop: Hop) -> ConnectError:
    return ConnectError(
        f"{hop.name} greets, but the exchange of keys does not end: large packets may be lost on"
        " the way",
        hint=f"compare ping -M do -s 1400 {hop.address} with -s 500; lower the MTU of the route, or"
        " let routers send ICMP",
        sent=False,
    )


def _closed_early(hop: Hop, error: Exception) -> ConnectError:
    return ConnectError(
        f"{hop.name} closed the connection before the login: {error or type(error).__name__}",
        hint=f"run its ProxyCommand by hand: {shlex.join(hop.proxy)}"
        if hop.proxy
        else "its sshd may be starting, or busy (MaxStartups); see its log",
        sent=False,
    )


@dataclass
class _Entry:
    """Route and open connection of a host."""

    route: Route
    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None


class ConnectionPool:
    """Connections to hosts."""

    def __init__(self, resolver: Resolver, *, known: KnownHosts) -> None:
        self._resolver = resolver
        self._known = known
        self._logins = LoginLimits()
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def add(self, host: Host) -> Route:
        """Register a host by name and return its route, without connecting."""
        with self._lock:
            if host.name not in self._entries:
                self._entries[host.name] = _Entry(self._resolver.route(host))
            return self._entries[host.name].route

    def existing(self, name: str) -> Connection | None:
        """Return the existing connection to a host, which may have died, or None."""
        return self._entries[name].connection

    def connection(self, name: str) -> Connection:
        """Return the connection to a host, opened if there is none or it is dead."""
        entry = self._entries[name]
        with entry.lock:
            if entry.connection is not None and entry.connection.is_alive:
                return entry.connection
            if entry.connection is not None:
                entry.connection.close()
                entry.connection = None
            entry.connection = connect(
                entry.route, known=self._known, logins=self._logins, within_s=CONNECT_S
            )
            return entry.connection

    def close(self) -> None:
        """Close all connections; programs on the hosts continue."""
        with self._lock:
            entries = list(self._entries.values())
        on_each(entries, _close_entry)


def open_pool(
    hosts: Iterable[Host],
    *,
    config: Path | None = None,
    known_hosts: Path | None = None,
    accept_new: bool = False,
) -> ConnectionPool:
    """Return a pool for the hosts of an inventory, without connecting."""
    listed = tuple(hosts)
    others = {name: host for name, host in by_name(listed).items() if host.kind == SSH}
    known = KnownHosts(known_hosts or default_known_hosts(), accept_new=accept_new)
    pool = ConnectionPool(Resolver(SshConfig(config), others=others), known=known)
    for host in others.values():
        pool.add(host)
    return pool


def _close_entry(entry: _Entry) -> None:
    with entry.lock:
        if entry.connection is not None:
            entry.connection.close()
            entry.connection = None
