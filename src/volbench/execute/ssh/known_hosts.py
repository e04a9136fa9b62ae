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
    """One line that matches a host.

    Attributes:
        marker: ``@cert-authority``, ``@revoked`` or empty.
        kind: type of the key, such as ``ssh-ed25519``.
        blob: the public key as it is sent.
        place: file and line.
    """

    marker: str
    kind: str
    blob: bytes
    place: str
    path: Path


def known_keys(path: Path, name: str) -> list[KnownKey]:
    """Return the keys that a file has for a name; a missing file has none.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}",
            hint="check its permissions: host keys are looked up there",
            context={"path": str(path)},
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
        except binascii.Error:  # ssh skips damaged lines too
            continue
        yield KnownKey(marker, words[1], blob, f"{path}:{number}", path)


def fingerprint(blob: bytes) -> str:
    """Return a key's fingerprint as ssh shows it."""
    digest = hashlib.sha256(blob).digest()
    return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")


def _matches(patterns: str, name: str) -> bool:
    """Return whether patterns match a name: one of them does, and none with a ``!``."""
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
    # The format itself prescribes SHA-1; it only hides names here.
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _glob(pattern: str) -> re.Pattern[str]:
    """Return a pattern of ssh: ``*`` and ``?`` are special, brackets belong to ``[host]:port``."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
