"""Folder of a run in the campaign, and its work folder on the target machine.

On the controller's own machine both are the same. On other machines, files are written before the
start, and fetched after the process has ended. Secrets reach fio by its environment, and are
masked in what it writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from volbench.engine.guard.device_guard import Attachment
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.execute.agent.supervisor import NOT_STARTED
from volbench.execute.protocol import Executor, Process, Supervision
from volbench.model.campaign.planned_run import Run
from volbench.model.campaign.run_secrets import missing_secrets, variables_of
from volbench.model.profile.option_policy import SENT_LOGS
from volbench.model.profile.secret_values import mask_text
from volbench.store.atomic_files import read_bytes, read_text, sync_files, write_atomic
from volbench.store.layout import JOB_FILE, Layout, RunFolder

# Endings of files without texts; the job file refers to its secrets by name
_LOGS = frozenset({".log", ".zst"})
_REPORT = re.compile(r"^volbench-hold: (\w+) ([0-9:]{0,40})$", re.MULTILINE)
_DEVICE_CHANGES = {
    "node": "it cannot be opened as a block device",
    "number": "its device number is {} now",
    "size": "it has {} sectors now",
    "boot": "the machine has restarted",
    "diskseq": "it was attached again",
}


class RunDirectory:
    """Campaign folder and work folder of a run."""

    def __init__(self, executor: Executor, folder: RunFolder, *, name: str = "") -> None:
        self.executor = executor
        self.folder = folder
        self.path = executor.work_folder(os.fspath(folder.path), name=name)
        self._unsynced: list[Path] = []
        self._unsent: dict[str, str] = {} if self.is_here else {f"{self.path}/": ""}

    @property
    def is_here(self) -> bool:
        """Whether the work folder is the campaign's own folder."""
        return self.path == os.fspath(self.folder.path)

    def keep(self, path: Path, text: str) -> None:
        """Write a file of the campaign; `sync` makes it durable."""
        write_atomic(path, text, durable=False)
        self._unsynced.append(path)

    def sync(self) -> None:
        """Flush written files to disk, which there is no time for between two runs."""
        sync_files(self._unsynced)
        self._unsynced.clear()

    def put(self, name: str, text: str) -> None:
        """Write a file for the process, with a copy in the campaign; `start` sends it."""
        self.keep(self.folder.path / name, text)
        if not self.is_here:
            self._unsent[self.path_of(name)] = text

    def put_log(self, digest: str) -> None:
        """Check a log that the run replays, and let `start` send it to another machine."""
        path = Layout(self.folder.path.parent.parent).inputs / digest
        content = read_bytes(path)
        if sha256(content).hexdigest() != digest:
            raise ArchiveError(
                f"the replayed log {path} is missing, or was modified after planning",
                hint="plan a new campaign: volbench run",
                path=str(path),
            )
        if not self.is_here:
            text = content.decode("utf-8", "surrogateescape")
            self._unsent[self.path_of(f"{SENT_LOGS}/{digest}")] = text

    def make_folder(self, name: str) -> None:
        """Create a folder that the controller can write to, even if the process runs as root."""
        (self.folder.path / name).mkdir(exist_ok=True)
        if not self.is_here:
            self._unsent[f"{self.path_of(name)}/"] = ""

    def path_of(self, name: str) -> str:
        """Return the path of a file on the machine."""
        return f"{self.path}/{name}"

    def start(
        self,
        argv: Sequence[str],
        *,
        stderr: str,
        supervision: Supervision | None = None,
        on_intent: Callable[[str], None] | None = None,
    ) -> Process:
        """Start a program in the work folder, after its files were sent; see `Executor.start`."""
        process = self.executor.start(
            argv,
            cwd=self.path,
            stderr=self.path_of(stderr),
            files=self._unsent,
            supervision=supervision,
            on_intent=on_intent,
        )
        self._unsent = {}
        return process

    def fetch(self) -> None:
        """Copy the process's files to the campaign, unless both folders are the same."""
        if not self.is_here:
            self.executor.fetch_work_folder(self.path, os.fspath(self.folder.path))

    def remove(self) -> None:
        """Remove the work folder after the fetch, unless both folders are the same."""
        if not self.is_here:
            self.executor.remove_work_folder(self.path)


def secrets_of(run: Run, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a run needs, by environment variable."""
    if missing := missing_secrets([run], secrets):
        name, use = next(iter(missing.items()))
        raise InputError(f"the password for {use} is unknown", hint=f"set the variable {name}")
    return {name: secrets[name] for name in variables_of(run)}


def scrub(folder: Path, run: Run) -> None:
    """Mask the secrets of a run in its files: fio reports all options it was given."""
    if not variables_of(run) or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in _LOGS and path.name != JOB_FILE:
            text = path.read_text(encoding="utf-8", errors="replace")
            if (masked := mask_text(text)) != text:
                write_atomic(path, masked)


def devices_to_hold(
    run: Run, attachments: Mapping[str, Attachment | None]
) -> tuple[dict[str, object], ...]:
    """Return the block devices that the supervisor of a run checks and holds.

    Held by the process that becomes fio, it needs no controller, and no other disk can get
    the device's number meanwhile.

    Args:
        attachments: target to the attachment that the guard accepted; none to hold nothing.
    """
    return tuple(
        {
            "node": volume.node,
            "number": f"{volume.pin.major}:{volume.pin.minor}",
            "size_bytes": volume.pin.size_bytes,
            "boot_id": attachment.boot_id,
            "diskseq": attachment.diskseq,
            "exclusive": False,
        }
        for volume in run.volume.each
        if volume.pin is not None and (attachment := attachments.get(volume.target))
    )


def check_start(run: Run, folder: RunFolder, exit_status: int | None) -> None:
    """Check that the program was started on the device that the guard accepted."""
    if exit_status != NOT_STARTED or run.volume.size_bytes is None:
        return
    report = _REPORT.search(read_text(folder.stderr))
    if report is None or report[1] not in _DEVICE_CHANGES:
        return
    raise RefusedError(
        f"{run.volume.target} on {run.host} was replaced right before the start of {run.id}: "
        + _DEVICE_CHANGES[report[1]].format(report[2]),
        hint="nothing was written; examine it there with lsblk, attach the planned device again "
        "and continue with volbench resume DIR, or plan a new campaign",
    )
