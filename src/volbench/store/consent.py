"""Signature of a campaign's plan and journal, made with a key that each user keeps elsewhere.

What a folder says may only be acted upon (volumes overwritten, files removed, processes ended) if
this user wrote it. The key is never stored in a folder, so that a folder can be mailed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import ArchiveError
from volbench.store.archive import Archive, parse_campaign, write_atomic
from volbench.store.layout import Layout

_KEY_BYTES = 32
_FORMAT = 1
_LIKE = "plan it again, with targets of your own: volbench run --like {root} --on ROLE=TARGET"


@dataclass(frozen=True)
class Seal:
    """Proof that one user wrote a plan, and with which the lines of its journal are chained.

    Attributes:
        key: the user's.
        plan: signature of the plan, which the first line of the journal follows.
    """

    key: bytes
    plan: str

    def follow(self, before: str, line: str) -> str:
        """Return the signature of a journal line after the signature of the line before it."""
        return _mac(self.key, f"line {before} {line}".encode())


def sign_campaign(layout: Layout) -> Seal:
    """Sign the plan of a campaign that was just made.

    Raises:
        ArchiveError: the user's key or the folder cannot be written, or the key is not private.
    """
    key = _own_key(make=True)
    plan = _plan_mac(key, layout.campaign.read_bytes())
    content = {"format": _FORMAT, "key": _key_id(key), "plan": plan}
    write_atomic(layout.consent, json.dumps(content) + "\n")
    return Seal(key, plan)


def read_own_campaign(root: Path) -> tuple[Layout, Archive, Seal]:
    """Open a campaign folder that this user planned, unchanged since.

    Raises:
        ArchiveError: no campaign there, damaged, changed, or planned by another user.
    """
    layout = Layout(root)
    content = _bytes_of(layout.campaign)
    archive = parse_campaign(layout, content)
    return layout, archive, _seal_of(layout, content)


def seal_of(layout: Layout) -> Seal:
    """Return the seal of a campaign that this user planned.

    Raises:
        ArchiveError: it was changed since, or planned by another user.
    """
    return _seal_of(layout, _bytes_of(layout.campaign))


def _seal_of(layout: Layout, content: bytes) -> Seal:
    try:
        signed = json.loads(layout.consent.read_bytes())
        key_id, plan = str(signed["key"]), str(signed["plan"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise _foreign(layout, "its plan is not signed") from error
    key = _own_key(make=False)
    if not key or key_id != _key_id(key):
        raise _foreign(layout, "another user planned it, or this one on another machine")
    if not hmac.compare_digest(plan, _plan_mac(key, content)):
        raise _foreign(layout, f"{layout.campaign.name} was changed since it was planned")
    return Seal(key, plan)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ArchiveError(
            f"{path.parent} is no campaign folder: {path.name} cannot be read ({error})",
            hint="name the folder that `volbench run` wrote with --output",
            context={"path": str(path.parent)},
        ) from error


def _foreign(layout: Layout, reason: str) -> ArchiveError:
    return ArchiveError(
        f"{layout.root} is read-only: {reason}",
        hint=_LIKE.format(root=layout.root),
        context={"path": str(layout.root)},
    )


def _mac(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _plan_mac(key: bytes, content: bytes) -> str:
    return _mac(key, b"plan " + content)


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"volbench key " + key).hexdigest()[:16]


def key_file() -> Path:
    """Return the file of the user's key (XDG Base Directory Specification, state)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    state = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"
    return state / "volbench" / "key"


def _own_key(*, make: bool) -> bytes:
    """Return the user's key; empty when there is none and none is to be made."""
    try:
        path = key_file()
        if make and not path.exists():
            _make_key(path)
        return _read_key(path)
    except FileNotFoundError:
        return b""
    except (OSError, RuntimeError) as error:
        raise ArchiveError(
            f"the key that signs campaigns cannot be used: {error}",
            hint="set XDG_STATE_HOME to a folder that only you can write to",
        ) from error


def _make_key(path: Path) -> None:
    """Make a key; of two controllers at once the first wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if not path.exists():
            os.link(aside, path)
    except FileExistsError:
        return
    finally:
        aside.unlink(missing_ok=True)


def _read_key(path: Path) -> bytes:
    """Return the key in a file that nobody else can read or replace."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        for place, found in ((path, os.fstat(descriptor)), (path.parent, path.parent.stat())):
            forbidden = 0o077 if place == path else 0o022
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & forbidden:
                raise ArchiveError(
                    f"{place} is not private: its owner and nobody else may use it",
                    hint=f"if you trust it: chown {os.geteuid()} {place}; "
                    f"chmod {'600' if place == path else '700'} {place}",
                    context={"path": str(place)},
                )
        return _key_in(path, file.read(2 * _KEY_BYTES + 1))


def _key_in(path: Path, content: bytes) -> bytes:
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ArchiveError(
            f"{path} is damaged",
            hint="remove it; campaigns that it signed can then be read, but not resumed",
            context={"path": str(path)},
        )
    return key
