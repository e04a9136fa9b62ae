"""Campaign folder: creation, campaign.json, run folders and controller lock."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pydantic import Field, ValidationError

from volbench.errors import ArchiveError, RefusedError, quoted
from volbench.model.campaign.planned_run import Campaign
from volbench.model.frozen_model import Frozen
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.store.atomic_files import (
    content_of,
    first_error,
    is_half_written,
    parse_json,
    remove_half_written,
    sync_folder,
    unwritable,
    write_atomic,
)
from volbench.store.held_folder import (
    checked_results_folder,
    has_mount,
    hold_folder,
    make_private_folder,
    refuse_foreign,
    refuse_foreign_links,
    refuse_link,
)
from volbench.store.layout import Layout, RunFolder

FORMAT = 1  # Format version of the campaign folder; incremented on incompatible changes


class Provenance(Frozen):
    """Software, hosts and volumes of a campaign."""

    volbench_version: str  # volbench version that planned the campaign
    python_version: str  # Python version of the controller
    hosts: tuple[HostFacts, ...] = ()  # facts per host
    volumes: tuple[VolumeFacts, ...] = ()  # facts per role


class Archive(Frozen):
    """Content of campaign.json."""

    format: int = Field(default=FORMAT, ge=1)
    campaign: Campaign
    provenance: Provenance
    profiles: dict[str, str] = Field(default_factory=dict)


def create_campaign(root: Path, archive: Archive) -> Layout:
    """Create a campaign folder with mode 0700 and its plan, unsigned."""
    layout = create_folder(root)
    write_atomic(layout.campaign, plan_bytes(archive))
    return layout


def plan_bytes(archive: Archive) -> bytes:
    """Return the content of campaign.json."""
    return f"{archive.model_dump_json(indent=1)}\n".encode()


def create_folder(root: Path) -> Layout:
    """Create a campaign folder with mode 0700 that has no plan yet."""
    refuse_used(root)
    try:
        layout = Layout(root, made=make_private_folder(root))
        with hold_folder(layout.root, made=layout.made):
            layout.runs.mkdir(exist_ok=True)
        sync_folder(root.resolve().parent)
    except OSError as error:
        raise unwritable(root, error) from error
    return layout


def refuse_used(root: Path) -> None:
    """Refuse a path that is unusable for a new campaign.

    Files of a controller that was killed before it wrote its plan do not count.
    """
    refuse_foreign_links(root)
    place = next(path for path in root.absolute().parents if path.exists())
    if os.geteuid() == 0:
        checked_results_folder(place)
    outer = next((path for path in root.absolute().parents if Layout(path).campaign.exists()), None)
    if outer is not None:
        hint = "choose a folder outside of it with --output"
        raise ArchiveError(f"{root} is within the campaign {outer}", hint=hint, path=str(root))
    refuse_link(root)
    try:
        used = root.exists() and not all(map(_may_precede_plan, root.iterdir()))
    except OSError as error:
        raise unwritable(root, error) from error
    if used:
        hint = "choose a new folder with --output"
        if is_held(Layout(root)):
            hint += f", or follow the one that runs there: volbench status {quoted(root)} --follow"
        elif Layout(root).campaign.exists():
            hint += f", or continue what has not ended there: volbench resume {quoted(root)}"
        raise ArchiveError(f"{root} is not empty", hint=hint, path=str(root))


def _may_precede_plan(path: Path) -> bool:
    layout = Layout(path.parent)
    if path.is_symlink():
        return False
    if path in {layout.runs, layout.inputs}:
        names = [each.name for each in path.iterdir() if not is_half_written(each)]
        return all(path == layout.inputs and re.fullmatch("[0-9a-f]{64}", name) for name in names)
    if path == layout.consent:
        return content_of(path).startswith(b'{"format": ')
    return (path == layout.lock and not path.stat().st_size) or is_half_written(path)


def _refuse_inner_links(layout: Layout) -> None:
    """Refuse a campaign folder that holds a symbolic link, or one of root's that could get one."""
    status = layout.root.stat()
    is_roots, is_reached = status.st_uid == 0, status.st_mode & 0o011
    waiting = [layout.root]
    while waiting:
        folder = waiting.pop()
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise RefusedError(
                        f"{folder / entry.name} is a symbolic link, which is not followed",
                        hint="remove it, or copy what it leads to into its place",
                    )
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(folder / entry.name)
                    inner = entry.stat(follow_symlinks=False)
                    if is_roots and (inner.st_uid or is_reached):
                        refuse_foreign(waiting[-1], inner)  # links could be planted at any time


def read_campaign(root: Path) -> tuple[Layout, Archive]:
    """Open a campaign folder."""
    layout = Layout(root)
    return layout, parse_campaign(layout, plan_content(layout))


def plan_content(layout: Layout) -> bytes:
    """Return the bytes of campaign.json."""
    try:
        if layout.campaign.is_file():
            _refuse_inner_links(layout)
        return content_of(layout.campaign)
    except OSError as error:
        name = Path(str(error.filename or layout.campaign)).name
        is_missing = isinstance(error, FileNotFoundError)
        reason = f"it has no {name}" if is_missing else f"{name} cannot be read: {error.strerror}"
        raise ArchiveError(
            f"{layout.root} is not a campaign folder: {reason}",
            hint="pass the --output folder of `volbench run`",
            path=str(layout.root),
        ) from error


def parse_campaign(layout: Layout, content: bytes) -> Archive:
    """Parse campaign.json."""
    path = layout.campaign
    try:
        document = parse_json(content)
        version = document.get("format") if isinstance(document, dict) else None
        is_newer = isinstance(version, int) and version > FORMAT
        archive = None if is_newer else Archive.model_validate_json(content)
    except ValueError as error:
        reason = first_error(error) if isinstance(error, ValidationError) else error
        raise ArchiveError(
            f"{path} is damaged: {reason}",
            hint="restore it from a backup; the raw files in runs/ are readable without it",
            path=str(path),
        ) from error
    if archive is None:
        message = f"{path} has format {version}; this volbench reads up to {FORMAT}"
        raise ArchiveError(message, hint="update volbench", path=str(path))
    return archive


def fresh_run_folder(layout: Layout, run_id: str, *, durable: bool = True) -> RunFolder:
    """Return an empty folder for a run; files of an earlier attempt move to ``attempts``.

    Args:
        durable: whether to fsync; if not, sync the whole folder later.
    """
    folder = layout.run(run_id)
    try:
        folder.path.mkdir(exist_ok=True)
        earlier = [path for path in folder.path.iterdir() if path != folder.attempts]
        if earlier:
            attempt = folder.attempts / str(1 + attempts_before(folder))
            attempt.mkdir(parents=True)
            for path in earlier:
                path.rename(attempt / path.name)
        if durable:
            sync_folder(layout.runs)
    except OSError as error:
        raise unwritable(folder.path, error) from error
    return folder


def forget_attempt(folder: RunFolder) -> None:
    """Remove the files of an attempt that started no process."""
    try:
        if has_mount(folder.path):
            raise RefusedError(f"something is mounted below {folder.path}", hint="unmount that")
        for path in set(folder.path.glob("*")) - {folder.attempts}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise unwritable(folder.path, error) from error


def attempts_before(folder: RunFolder) -> int:
    """Return the number of earlier attempts of a run."""
    return sum(1 for _ in folder.attempts.glob("*"))


@contextmanager
def hold_campaign(layout: Layout, *, is_moved: bool = False) -> Iterator[None]:
    """Hold the exclusive lock of a campaign, so that only one controller runs it.

    The kernel releases the lock when the process exits or crashes. Temporary files of killed
    processes are removed. The folder is held open too; see `hold_folder`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_folder(layout.root, made=layout.made, is_moved=is_moved))
            descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_half_written(layout.root)
        except BlockingIOError as error:
            raise ArchiveError(
                f"another volbench process is running the campaign in {layout.root}",
                hint=f"wait until it has ended, or stop it{_how_to_stop(layout.lock)}",
                path=str(layout.root),
            ) from error
        except OSError as error:
            raise unwritable(layout.lock, error) from error
        yield


def _how_to_stop(lock: Path) -> str:
    seen, held = lock.stat(), Path("/proc/locks").read_text(encoding="ascii").splitlines()
    file = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    fields = (line.split() for line in held if line.endswith(f" {file} 0 EOF"))
    return next((f": kill {field[4]}" for field in fields if field[1] == "FLOCK"), " with Ctrl-C")


def is_held(layout: Layout) -> bool:
    """Return whether a controller on this machine holds the lock of the campaign; see flock(2)."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(layout.lock, flags)
    except OSError:  # there is none: never locked
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
