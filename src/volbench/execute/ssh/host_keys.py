"""Verification of SSH host keys.

Unknown hosts are refused by default; if accepted, their keys are added to volbench's own
known_hosts file only. A changed key is always refused.
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import HostKeyError, InputError
from volbench.execute.ssh.known_hosts import (
    AUTHORITY,
    REVOKED,
    KnownKey,
    fingerprint,
    known_keys,
)
from volbench.execute.ssh.ssh_route import Hop


def default_known_hosts() -> Path:
    """Return the default path of volbench's known_hosts file."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config else Path.home() / ".config") / "volbench" / "known_hosts"


@dataclass(frozen=True)
class KnownHosts:
    """Known host keys."""

    own: Path  # volbench's known_hosts file, which need not exist
    accept_new: bool = False  # whether to add the keys of unknown hosts to it

    def kinds(self, hop: Hop) -> tuple[str, ...]:
        """Return the types of the known keys of a hop."""
        return tuple(dict.fromkeys(key.kind for key in self._known_keys(hop) if not key.marker))

    def check(self, hop: Hop, *, kind: str, blob: bytes) -> None:
        """Verify the key of a host."""
        if self._is_known(hop, kind=kind, blob=blob):
            return
        if not self.accept_new:
            raise HostKeyError(
                f"{_name(hop)} is unknown: it presents {kind} {fingerprint(blob)}",
                hint="compare this fingerprint with the host's own (ssh-keygen -lf "
                "/etc/ssh/ssh_host_ed25519_key.pub), then connect once with ssh, "
                "or pass --accept-new-host-keys",
            )
        with _locked(self.own):
            if not self._is_known(hop, kind=kind, blob=blob):  # another process may have added it
                self._add(f"{hop.known_as} {kind} {base64.b64encode(blob).decode('ascii')}\n")

    def _known_keys(self, hop: Hop) -> list[KnownKey]:
        return [
            key for path in (*hop.known_hosts, self.own) for key in known_keys(path, hop.known_as)
        ]

    def _is_known(self, hop: Hop, *, kind: str, blob: bytes) -> bool:
        """Return whether a key is known; raise if the host has a different known key."""
        found = self._known_keys(hop)
        for key in found:
            if key.marker == REVOKED and key.blob == blob:
                raise HostKeyError(
                    f"{_name(hop)} presents a key revoked in {key.place}: "
                    f"{kind} {fingerprint(blob)}",
                    hint="do not connect; ask the administrator who revoked it",
                )
        plain = [key for key in found if not key.marker]
        if any(key.blob == blob for key in plain):
            return True
        if plain:
            raise _changed(hop, kind=kind, blob=blob, known=plain[0])
        for key in found:
            if key.marker == AUTHORITY:
                raise HostKeyError(
                    f"{_name(hop)} has only a certificate authority ({key.place}), "
                    "and volbench does not support host certificates",
                    hint=f"add the host key to {self.own} under the name {hop.known_as}",
                )
        return False

    def _add(self, line: str) -> None:
        """Add a line atomically."""
        temporary = self.own.with_name(f".{self.own.name}.{os.getpid()}.tmp")
        try:
            old = self.own.read_bytes() if self.own.exists() else b""
            start = old if not old or old.endswith(b"\n") else old + b"\n"
            with temporary.open("wb") as file:
                file.write(start + line.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.own)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _unwritable(self.own, error) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, whose directory is created if missing."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(
            path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _changed(hop: Hop, *, kind: str, blob: bytes, known: KnownKey) -> HostKeyError:
    return HostKeyError(
        f"the key of {_name(hop)} has changed: it presents {kind} {fingerprint(blob)}, "
        f"and {known.place} has {known.kind} {fingerprint(known.blob)}",
        hint="this may be a man-in-the-middle attack. Only if the host was reinstalled, "
        f"remove the old key: ssh-keygen -f '{known.path}' -R '{hop.known_as}'",
    )


def _name(hop: Hop) -> str:
    return hop.name if hop.name == hop.known_as else f"{hop.name} ({hop.known_as})"


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be written: {error.strerror}",
        hint="choose another file with --known-hosts",
    )
