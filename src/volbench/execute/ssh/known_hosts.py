"""Parser of known_hosts files (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT", OpenSSH 9.2)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import InputError

AUTHORITY = "@cert-authority"
REVOKED = "@revoked"


@dataclass(frozen=True)
class KnownKey:
    """A known_hosts line that matches a host."""

    marker: str  # ``@cert-authority``, ``@revoked`` or empty
    kind: str  # type of the key, such as ``ssh-ed25519``
    blob: bytes  # public key in wire format
    place: str  # file and line number
    path: Path


def known_keys(path: Path, name: str) -> list[KnownKey]:
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
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        if len(words) < 3 or not _matches(words[0], name):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except binascii.Error:  # ssh skips malformed lines, too
            continue
        yield KnownKey(marker, words[1], blob, f"{path}:{number}", path)


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
        if _glob(pattern.removeprefix("!")).fullmatch(name):
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


def _glob(pattern: str) -> re.Pattern[str]:
    """Compile an ssh pattern: ``*`` and ``?`` are wildcards, brackets literal (``[host]:port``)."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
