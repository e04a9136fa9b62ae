"""Verification of SSH host keys.

Unknown hosts are refused by default; if accepted, their keys are added to volbench's own
known_hosts file only. A changed key is always refused. For the format of the files see sshd(8),
"SSH_KNOWN_HOSTS FILE FORMAT" (OpenSSH 9.2).
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import HostKeyError, InputError
from volbench.execute.ssh.ssh_route import Hop

AUTHORITY = "@cert-authority"
REVOKED = "@revoked"


def default_known_hosts() -> Path:
    """Return the default path of volbench's known_hosts file."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config else Path.home() / ".config") / "volbench" / "known_hosts"


@dataclass(frozen=True)
class KnownHosts:
    """Known host keys."""

    path: Path  # volbench's known_hosts file, which need not exist
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
                f"{_host_pattern(hop)} is unknown: it presents {kind} {fingerprint(blob)}",
                hint="if another file has its key, pass --known-hosts FILE; else compare this "
                "fingerprint with the host's own (ssh-keygen -lf "
                "/etc/ssh/ssh_host_ed25519_key.pub), then connect once with ssh, "
                "or pass --accept-new-host-keys",
            )
        with _locked(self.path):
            if not self._is_known(hop, kind=kind, blob=blob):  # another process may have added it
                self._add(f"{hop.known_as} {kind} {base64.b64encode(blob).decode('ascii')}\n")

    def _known_keys(self, hop: Hop) -> list[KnownKey]:
        return [
            key for path in (*hop.known_hosts, self.path) for key in read_keys(path, hop.known_as)
        ]

    def _is_known(self, hop: Hop, *, kind: str, blob: bytes) -> bool:
        """Return whether a key is known; raise if the host has a different known key."""
        known_keys = self._known_keys(hop)
        for key in known_keys:
            if key.marker == REVOKED and key.blob == blob:
                raise HostKeyError(
                    f"{_host_pattern(hop)} presents a key revoked in {key.location}: "
                    f"{kind} {fingerprint(blob)}",
                    hint="do not connect; ask the administrator who revoked it",
                )
        plain = [key for key in known_keys if not key.marker]
        if any(key.blob == blob for key in plain):
            return True
        if plain:
            raise _changed(hop, kind=kind, blob=blob, known=plain[0])
        for key in known_keys:
            if key.marker == AUTHORITY:
                raise HostKeyError(
                    f"{_host_pattern(hop)} has only a certificate authority ({key.location}), "
                    "and volbench does not support host certificates",
                    hint=f"add the host key to {self.path} under the name {hop.known_as}",
                )
        return False

    def _add(self, line: str) -> None:
        """Add a line atomically."""
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            old = self.path.read_bytes() if self.path.exists() else b""
            start = old if not old or old.endswith(b"\n") else old + b"\n"
            with temporary.open("wb") as file:
                file.write(start + line.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from error


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
        f"the key of {_host_pattern(hop)} has changed: it presents {kind} {fingerprint(blob)}, "
        f"and {known.location} has {known.kind} {fingerprint(known.blob)}",
        hint="this may be a man-in-the-middle attack. Only if the host was reinstalled, "
        f"remove the old key: ssh-keygen -f '{known.path}' -R '{hop.known_as}'",
    )


def _host_pattern(hop: Hop) -> str:
    return hop.name if hop.name == hop.known_as else f"{hop.name} ({hop.known_as})"


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be written: {error.strerror}", hint="choose another file with --known-hosts"
    )


@dataclass(frozen=True)
class KnownKey:
    """A known_hosts line that matches a host."""

    marker: str  # ``@cert-authority``, ``@revoked`` or empty
    kind: str  # type of the key, such as ``ssh-ed25519``
    blob: bytes  # public key in wire format
    location: str  # file and line number
    path: Path


def read_keys(path: Path, name: str) -> list[KnownKey]:
    """Return the keys of a name in a known_hosts file; empty if the file is missing."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}",
            hint="check its permissions: it holds known host keys",
        ) from error
    return list(_matching(text, path, name))


def _matching(text: str, path: Path, name: str) -> Iterator[KnownKey]:
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        if len(fields) < 3 or not _matches(fields[0], name):
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except binascii.Error:  # ssh skips malformed lines, too
            continue
        yield KnownKey(marker, fields[1], blob, f"{path}:{number}", path)


def fingerprint(blob: bytes) -> str:
    """Return the fingerprint of a key in the format of ssh."""
    digest = hashlib.sha256(blob).digest()
    return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")


def _matches(patterns: str, name: str) -> bool:
    """Return whether a pattern matches a name and no ``!`` pattern does."""
    if patterns.startswith("|"):
        return _hashed(patterns, name)
    matches = False
    for pattern in patterns.lower().split(","):
        # ``*`` and ``?`` are wildcards, brackets literal (``[host]:port``)
        expression = re.escape(pattern.removeprefix("!")).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(expression, name):
            if pattern.startswith("!"):
                return False
            matches = True
    return matches


def _hashed(text: str, name: str) -> bool:
    parts = text.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return False
    try:
        salt, digest = base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except binascii.Error:
        return False
    # The format prescribes SHA-1, used only to obscure host names.
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
