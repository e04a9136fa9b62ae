"""Signature of a campaign's plan and journal with the user's private key.

volbench acts on a campaign folder (overwrites volumes, removes files, kills processes) only if the
current user signed it. The key is stored outside of campaign folders, so that they can be shared.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import ArchiveError, RefusedError, quoted
from volbench.store.archive import (
    Archive,
    create_folder,
    hold_campaign,
    parse_campaign,
    plan_bytes,
    plan_content,
    refuse_used,
)
from volbench.store.atomic_files import content_of, parse_json, read_text, unwritable, write_atomic
from volbench.store.layout import Layout, key_file

_KEY_BYTES = 32
_FORMAT = 1


@dataclass(frozen=True)
class Seal:
    """Signature of a plan, and key of the hash chain of its journal."""

    key: bytes  # key of the user
    plan: str  # signature of the plan, the start of the chain

    def follow(self, previous: str, line: str) -> str:
        """Return the signature of a journal line, chained to the previous signature."""
        return _mac(self.key, f"line {previous} {line}".encode())


def create_signed_campaign(
    root: Path, archive: Archive, *, inputs: Mapping[str, bytes] | None = None
) -> Layout:
    """Create a campaign folder with its signed plan; after an error, no file of it is left.

    The plan is written last, so that no plan is ever unsigned.
    """
    content = plan_bytes(archive)
    _own_key(create=True)  # without one, not even the folder is made
    layout = create_folder(root)
    with hold_campaign(layout):
        refuse_used(root)  # another controller may have planned it meanwhile
        try:
            for digest, log in (inputs or {}).items():
                layout.inputs.mkdir(exist_ok=True)
                write_atomic(layout.inputs / digest, log)
            sign_plan(layout, content)
            write_atomic(layout.campaign, content)
        except ArchiveError:
            for digest in inputs or {}:
                (layout.inputs / digest).unlink(missing_ok=True)
            with suppress(OSError):  # what a killed controller left is in it
                layout.inputs.rmdir()
            layout.consent.unlink(missing_ok=True)
            layout.lock.unlink()
            layout.runs.rmdir()
            raise
    return layout


def sign_plan(layout: Layout, content: bytes) -> Seal:
    """Sign a plan, the content of campaign.json."""
    key = _own_key(create=True)
    plan = _plan_mac(key, content)
    signature = {"format": _FORMAT, "key": _key_id(key), "plan": plan}
    write_atomic(layout.consent, json.dumps(signature) + "\n")
    return Seal(key, plan)


def read_own_campaign(root: Path) -> tuple[Layout, Archive, Seal]:
    """Open a campaign folder signed by the current user."""
    layout = Layout(root)
    content = plan_content(layout)
    archive = parse_campaign(layout, content)
    campaign = archive.campaign
    if campaign.is_imported or campaign.is_watched:
        words, verb = ("a watch", "watch") if campaign.is_watched else ("an import", "run PROFILE")
        raise RefusedError(
            f"{campaign.name} is {words}, which cannot be resumed",
            hint=f"to measure again: volbench {verb}",
        )
    return layout, archive, _seal_of(layout, content)


def seal_of(layout: Layout) -> Seal:
    """Return the seal of a campaign signed by the current user."""
    return _seal_of(layout, plan_content(layout))


def _seal_of(layout: Layout, content: bytes) -> Seal:
    try:
        signed = parse_json(content_of(layout.consent))
    except (OSError, ValueError) as error:
        raise _read_only(layout, "its plan is not signed") from error
    match signed:
        case {"key": str(key_id), "plan": str(plan)} if plan.isascii():
            pass
        case _:
            raise _read_only(layout, "its plan is not signed")
    key = _own_key(create=False)
    if not key or key_id != _key_id(key):
        raise _read_only(layout, "it was planned by another user or on another machine")
    if not hmac.compare_digest(plan, _plan_mac(key, content)):
        raise _read_only(layout, f"{layout.campaign.name} was modified after planning")
    return Seal(key, plan)


@contextmanager
def hold_copies(layout: Layout, key: str) -> Iterator[None]:
    """Hold a campaign in all copies of its folder: two controllers would share its runs and locks.

    Copies have the same key.
    """
    path = key_file().with_name("running") / key
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise unwritable(path, error) from error
        with os.fdopen(descriptor, "r+") as file:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArchiveError(
                    f"{layout.root} is a copy of {file.read() or 'a campaign folder'}, where "
                    "another volbench runs the campaign",
                    hint="wait until it has ended; its results are in that folder",
                    path=str(layout.root),
                ) from error
            if not (path.exists() and path.samefile(f"/proc/self/fd/{descriptor}")):
                continue  # it was removed by the controller that held it
            try:
                file.truncate()  # a controller that was killed left its folder
                file.write(str(layout.root.resolve()))
                file.flush()
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def folder_of(key: str) -> Path | None:
    """Return where this user runs a campaign on this machine, or ran it until it was killed."""
    if not key.replace("-", "").isalnum():  # it may come from another machine
        return None
    folder = Path(read_text(key_file().with_name("running") / key).strip() or "/nonexistent")
    return folder if Layout(folder).campaign.exists() else None


def _read_only(layout: Layout, reason: str) -> ArchiveError:
    return ArchiveError(
        f"{layout.root} is read-only: {reason}",
        hint="plan it again with your own targets: "
        f"volbench run --like {quoted(layout.root)} --on ROLE=TARGET",
        path=str(layout.root),
    )


def _mac(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _plan_mac(key: bytes, content: bytes) -> str:
    return _mac(key, b"plan " + content)


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"volbench key " + key).hexdigest()[:16]


def _own_key(*, create: bool) -> bytes:
    """Return the user's key; empty if it does not exist and `create` is false."""
    try:
        path = key_file()
        if create and not path.exists():
            _create_key(path)
        return _read_key(path)
    except (OSError, RuntimeError) as error:
        if isinstance(error, FileNotFoundError) and not create:
            return b""
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        raise ArchiveError(
            f"the key that signs campaigns cannot be used: {reason}",
            hint="set XDG_STATE_HOME to a folder that only you can write to",
        ) from error


def _create_key(path: Path) -> None:
    """Create a key; if two controllers race, the first wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if not path.exists():
            os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)


def _read_key(path: Path) -> bytes:
    """Read a key file; refuse it if other users can read or replace it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        for checked, stats in ((path, os.fstat(descriptor)), (path.parent, path.parent.stat())):
            forbidden = 0o077 if checked == path else 0o022
            mode = "600" if checked == path else "700"
            if stats.st_uid != os.geteuid() or stat.S_IMODE(stats.st_mode) & forbidden:
                raise ArchiveError(
                    f"{checked} is not private: other users can access it",
                    hint=f"if you trust it: chown {os.geteuid()} {quoted(checked)}; "
                    f"chmod {mode} {quoted(checked)}",
                    path=str(checked),
                )
        content = file.read(2 * _KEY_BYTES + 1)
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ArchiveError(
            f"{path} is damaged",
            hint="remove it; campaigns signed with it remain readable, but cannot be resumed",
            path=str(path),
        )
    return key
