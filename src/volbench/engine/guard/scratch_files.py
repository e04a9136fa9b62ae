"""Scratch files on volumes: only files created by volbench are overwritten or removed.

They are in a private folder, where nobody else takes their names. The identity of a file (device,
inode, time of birth) is recorded as soon as fio has created it; any other file at its path counts
as foreign.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Protocol

from volbench.engine.hosts.described_volumes import describe_files, identities_of
from volbench.errors import RefusedError, VolbenchError, quoted
from volbench.execute.agent.files import FileStat, NamedFile, make_private_folder, remove_exactly
from volbench.execute.agent.processes import lifetime
from volbench.execute.agent.run_command import run
from volbench.execute.agent.volumes import (
    DescribedFile,
    DescribedVolume,
    KnownFile,
    folder_contents,
)
from volbench.execute.protocol import Executor, OperationError
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.jobs.render_job import writes
from volbench.model.campaign.planned_files import file_ranges, has_relative_offset, planned_files
from volbench.model.campaign.planned_run import FileIdentity, Run, Volume, VolumeKind
from volbench.model.profile.option_policy import displacing_option
from volbench.store.journal import History

# Seconds between polls for new files, until they are seen. What fio makes in between is unknown to
# a resume if the controller is killed then; a poll of another machine is one request.
# Noticed by: tests/torture/killed_campaigns.py
_UNSEEN_POLL_S = 0.01
_POLL_S = 0.1
_REMOTE_POLL_S = 2.0
_REMOTE_FILES_PER_POLL = 8  # Files checked per poll on another machine

# Seconds in which a filesystem takes a change of a time, also beside a busy fio.
# Noticed by: tests/cli/test_hung_volume.py
ANSWER_S = 5.0

_Identities = Mapping[str, FileIdentity | None]


class Log(Protocol):
    """Record that survives a crash: a Journal, or a thread-safe writer to one."""

    def write(self, kind: str, **facts: object) -> None:
        """Append an entry."""


class Scratch:
    """Scratch files of one campaign on one machine, shared by its clients.

    Args:
        history: of an earlier controller.
        is_own_machine: whether folders stay what they are; a new pod may have new ones.
    """

    def __init__(
        self,
        executor: Executor,
        log: Log,
        *,
        key: str,
        allowed: Callable[[Run], Sequence[str]],
        history: History,
        is_own_machine: bool = True,
    ) -> None:
        self._executor = executor
        self._log = log
        self._key = key
        self._allowed = allowed
        self._lock = RLock()
        families = history.families.get(executor.host, {})
        numbered = (f"{head}{n}" for head, count in families.items() for n in range(count))
        self._files = {**dict.fromkeys(numbered), **history.scratch.get(executor.host, {})}
        self._folders = dict(history.folders.get(executor.host, {}))
        self._inodes = dict(history.inodes.get(executor.host, {}) if is_own_machine else {})
        self._is_own_machine = is_own_machine
        self._begun = list(history.begun.get(executor.host, {}).values())
        self._abandoned: dict[str, FileIdentity] = {}
        self._found = dict(history.found.get(executor.host, {}) if is_own_machine else {})
        self._made: set[str] = set()
        self._awaited: dict[str, bool] = {}  # whether fio may make it more than once
        self._is_remote = executor.is_remote

    def place(self, run: Run, *, make: bool = True) -> Run | None:
        """Return a run whose new files are in the private folder of their volume.

        Files that exist and that the user named are used in place, as consent or as what is read.

        Args:
            make: create the folder if it is missing.

        Returns:
            The run; None if the folder is missing and is not to be created.
        """
        files = planned_files(run)
        is_directory = run.volume.kind is VolumeKind.DIRECTORY
        allowed = self._allowed(run) if is_directory else ()
        is_read = is_directory and not writes(run) and not self._folders  # with what was written
        is_read &= all("filename" in run.effective(section) for section in run.sections)
        looked = files if allowed or is_read else ()
        described = describe_files(self._executor, looked, allow=allowed)
        is_there = is_read and all(file.stat is not None for file in described)
        if not files or is_there or any(file.named for file in described):
            return run
        with self._lock:
            placed = [self._placed(volume, make=make) for volume in run.volume.each]
        volumes = [volume for volume in placed if volume is not None]
        return _with_volumes(run, volumes) if len(volumes) == len(placed) else None

    def _placed(self, volume: Volume, *, make: bool) -> Volume | None:
        if volume.kind is VolumeKind.FILE and any(identities_of(self._executor, [volume.target])):
            return volume
        folder = self._usable_folder(volume.place)
        if folder is None and make:
            folder = self._make_folder(volume.place)
        return None if folder is None else _in_folder(volume, folder)

    def is_in_place(self, run: Run, seen: Mapping[str, DescribedVolume]) -> bool:
        """Return whether the private folders of a placed run are still the recorded ones."""
        placed = (volume for volume in run.volume.each if volume.private_folder)
        folders = {volume.place: seen[volume.target].private_folder for volume in placed}
        with self._lock:
            return not [place for place in folders if not self._is_kept(place, folders[place])]

    def _is_kept(self, place: str, folder: FileIdentity | None) -> bool:
        if folder != self._folders[place][1]:
            (volume,) = describe_files(self._executor, [place])
            self._check_filesystem(place, volume.stat, folder)
        is_kept = folder == self._folders[place][1]
        if not is_kept:
            del self._folders[place]
        return is_kept

    def _check_filesystem(
        self, target: str, volume: FileStat | None, folder: FileIdentity | None
    ) -> None:
        """Check that a volume is the folder in which its private folder was made.

        Mounted again, it may have another device number, by which its files are then known: inode
        and time of birth of the folder identify it.
        """
        path, made = self._folders[target]
        device, inode = (volume.device, volume.inode) if volume else (None, 0)
        if (folder, device) == (None, made[:2]) and inode != (self._inodes.get(target) or inode):
            raise RefusedError(
                f"{target} is another folder than before: something is mounted over it, and hides "
                f"{path}, or it was replaced",
                hint=f"unmount that: umount {target}; then: volbench resume DIR",
            )
        if device == made[:2]:
            return
        if folder is None or folder != (*(device or ()), *made[2:]) or not made[-1]:
            raise RefusedError(
                f"{target} is on a different filesystem than before: its volume is unmounted, or "
                f"{path} on it was replaced",
                hint="mount it again, then continue with: volbench resume DIR; if it is mounted, "
                "plan a new campaign",
            )
        self._record_folder(target, path, folder)
        self._record_file(
            {
                file: (*folder[:2], *mark[2:])
                for file, mark in self._files.items()
                if mark and mark[-1] and mark[:2] == made[:2] and file.startswith(f"{path}/")
            }
        )

    def misses_files(self, run: Run) -> bool:
        """Return whether a file of a run is missing."""
        placed = self.place(run, make=False)
        return placed is None or None in identities_of(self._executor, planned_files(placed))

    def _usable_folder(self, target: str) -> str | None:
        """Return the private folder of a volume, unless it was replaced.

        One that this controller has used before is checked by `is_in_place` before a run.
        """
        if target not in self._folders:
            return None
        path, _ = self._folders[target]
        if path in self._made:
            return path
        volume, folder = describe_files(self._executor, [target, path])
        self._check_filesystem(target, volume.stat, folder.identity)
        _, identity = self._folders[target]
        if folder.identity == identity:
            seen = self._executor.ask(folder_contents, path)
            if all(self._is_own(file, mark) for file, mark in seen):
                self._made.add(path)
                return path
            self._abandoned[path] = identity
        del self._folders[target]
        return None

    def _is_there(self, folder: str, path: str = "") -> bool:
        """Return whether a path in a folder is there; a call on a frozen filesystem would block."""
        argv = ["touch", "-m", "--", f"{path or folder}/."]
        try:
            return not self._executor.ask(run, argv, ANSWER_S).status
        except OperationError as error:
            raise RefusedError(
                f"{folder} cannot be changed{_on_host(self._executor)}: {error.reason}",
                hint="if its filesystem is frozen, thaw it: fsfreeze -u its mount point; "
                "then repeat the command",
            ) from error

    def _make_folder(self, target: str) -> str:
        self._is_there(target)
        name = f"volbench-{self._key}"
        first = f"{target.rstrip('/')}/{name}"
        host = self._executor.host
        self._log.write("folder", host=host, target=target, path=first, identity=None)
        try:
            path, identity = self._executor.ask(make_private_folder, target, name)
            (volume,) = describe_files(self._executor, [target])
        except OperationError as error:
            raise RefusedError(
                f"{target}/{name} cannot be created{_on_host(self._executor)}: {error.reason}",
                hint=f"mount the volume there, or create the folder: mkdir -p {quoted(target)}"
                if "No such file" in error.reason
                else "check permissions and free space",
            ) from error
        if volume.stat and self._is_own_machine:
            self._inodes[target] = volume.stat.inode
        self._record_folder(target, path, identity)
        self._made.add(path)
        return path

    def _record_folder(self, target: str, path: str, identity: FileIdentity) -> None:
        on, inode = self._executor.host, self._inodes.get(target, 0)
        self._log.write("folder", host=on, target=target, path=path, identity=identity, inode=inode)
        self._folders[target] = path, identity

    def note_found(self, files: Sequence[KnownFile], *, displaced: str) -> None:
        """Record the files of a user that a run found; refuse another in the place of one."""
        with self._lock:
            found = {} if displaced else {**self._found}  # a run may have replaced them
            for path, identity, _, _, mark in files:
                known, last = found.get(path, (identity, mark))
                if known[2:] != identity[2:]:  # the number of its device changes with a boot
                    raise RefusedError(
                        f"{path} is another file than before: it was replaced, or mounted over",
                        hint="put the first one back, or measure this one in a new campaign",
                    )
                if mark and last is not None and mark != last:
                    raise RefusedError(
                        f"{path} holds {mark} now, which was not there before the last run",
                        hint="if it may be erased, measure the file in a new campaign",
                    )
                found[path] = known, last if mark is None else mark
            if found != self._found:
                files_found = {path: (*known, last) for path, (known, last) in found.items()}
                self._log.write("found", host=self._executor.host, files=files_found)
                self._found = found

    def is_recorded(self, path: str) -> bool:
        """Return whether this campaign made the file at a path, or is about to."""
        return path in self._files

    def owns(self, path: str, seen: Mapping[str, DescribedFile] | None = None) -> bool:
        """Return whether this campaign created the file at a path, as described before."""
        return self._is_own(path, seen[path].identity if seen else self._identities([path])[path])

    def _is_own(self, path: str, identity: FileIdentity | None) -> bool:
        return bool(identity) and self._files.get(path) == identity and self._is_certain(path)

    def _is_certain(self, path: str) -> bool:
        """Return whether an identity is certain: has a time of birth, or was recorded just now."""
        identity = self._files[path]
        return identity is not None and (bool(identity[-1]) or path in self._made)

    def _identities(self, paths: Sequence[str]) -> dict[str, FileIdentity | None]:
        """Return the identities of files, looked up now."""
        return dict(zip(paths, identities_of(self._executor, paths), strict=True))

    def expect(self, run: Run, seen: Mapping[str, DescribedFile]) -> None:
        """Record the files that a run is about to create, or to replace as they are too short."""
        paths = planned_files(run)
        with self._lock:
            sizes = {path: stat.size_bytes for path in paths if (stat := seen[path].stat)}
            ends, is_open = file_ranges(run, sizes), _is_made_often(run)
            short = (p for p, size in sizes.items() if is_open or size < ends.get(p, (0, 0))[1])
            absent = [path for path in paths if seen[path].identity is None]
            owned = (path for path in short if self._is_own(path, seen[path].identity))
            self._awaited.update(dict.fromkeys((*absent, *owned), is_open))
            self._record_file(dict.fromkeys(absent))

    def watcher(self, paths: Sequence[str]) -> Callable[[float], None]:
        """Return a function that polls for new files, called with the seconds since the start."""
        polled_s = 0.0

        def look(elapsed_s: float) -> None:
            nonlocal polled_s
            unseen = [path for path in paths if self._files.get(path) is None]
            interval_s = _UNSEEN_POLL_S if unseen else _POLL_S
            if self._is_remote:
                unseen, interval_s = unseen[:_REMOTE_FILES_PER_POLL], _REMOTE_POLL_S
            if elapsed_s - polled_s >= interval_s * (1 + len(paths) // 100):
                polled_s = elapsed_s
                self.settle(unseen if unseen or self._is_remote else paths)

        return look

    def awaits(self, paths: Sequence[str]) -> bool:
        """Return whether one of few files has not been seen yet."""
        return len(paths) <= 100 and any(self._files.get(path) is None for path in paths)

    def settle(self, paths: Iterable[str], *, is_over: bool = False) -> None:
        """Record the identity of files that a run has created.

        What replaces a file that fio makes only once is a user's.
        """
        paths = tuple(paths)
        with self._lock:
            asked, made = [p for p in paths if p in self._awaited], dict(self._folders.values())
            folders = {posixpath.dirname(path) for path in asked} & made.keys()
            seen = self._identities([*asked, *folders])
            moved = {folder for folder in folders if seen.pop(folder) != made[folder]}
            changed = {
                path: identity
                for path, identity in seen.items()
                if identity is not None and identity != (mark := self._files.get(path))
                if not (mark and identity[-1] < max(mark[-1], 1))  # fio's is known to be younger
                if posixpath.dirname(path) not in moved  # a link to a user's folder is there
            }
            for path in paths if is_over else [p for p in changed if not self._awaited[p]]:
                self._awaited.pop(path, None)
            self._made.update(changed)
            self._record_file(changed)

    def claim_born(self, run: Run, *, handle: str) -> None:
        """Record the files of a run created while its process ran without a controller."""
        lived = self._executor.ask(lifetime, handle)
        if lived is None or not lived.began_ns:
            return
        folders = {place: path for place, (path, _) in self._folders.items()}
        volumes = [_in_folder(each, folders.get(each.place, "")) for each in run.volume.each]
        last_ns, is_open = lived.ended_ns or math.inf, _is_made_often(run)
        with self._lock:
            planned = planned_files(_with_volumes(run, volumes))
            known = {p: self._files[p] or (0,) for p in planned if p in self._files}
            expected = [p for p, mark in known.items() if is_open or mark[-1] < lived.began_ns]
            self._awaited.update({} if lived.ended_ns else dict.fromkeys(expected, is_open))
            seen = self._identities(expected)
            made = {p: mark for p, mark in seen.items() if mark != self._files[p] and mark}
            self._record_file(
                {p: mark for p, mark in made.items() if lived.began_ns <= mark[-1] <= last_ns}
            )

    def _removable(self) -> list[tuple[str, FileIdentity]]:
        """Return the files and then the folders that volbench certainly created."""
        files = [
            (p, mark) for p, mark in sorted(self._files.items()) if mark and self._is_certain(p)
        ]
        return [*files, *self._folders.values(), *self._abandoned.items()]

    def _begun_folders(self) -> dict[str, FileIdentity]:
        """Return the folders that an earlier controller made, but did not live to record.

        Only an empty one is removed.
        """
        seen = describe_files(self._executor, self._begun) if self._begun else ()
        return {
            path: file.identity
            for path, file in zip(self._begun, seen, strict=True)
            if file.stat and file.stat.kind == "directory" and file.identity == file.stat.identity
        }

    def owe(self) -> None:
        """Let the machine remove these by itself if it loses the controller before they are gone.

        To be called when no run of the campaign is left there.
        """
        with self._lock:
            self._executor.owe([NamedFile(*file) for file in self._removable()])

    def remove(self) -> tuple[str, ...]:
        """Remove files and folders of volbench; return paths whose content it did not create."""
        with self._lock:
            folders = [(target, path) for target, (path, _) in self._folders.items()]
            hidden = [path for target, path in folders if self._is_hidden(target, path)]
            certain = dict(self._removable()) | self._begun_folders()
            unknown = dict.fromkeys(path for path in self._files if path not in certain)
            every = map(NamedFile._make, (unknown | certain).items())
            files = [file for file in every if not file.path.startswith(tuple(hidden))]
            removed = self._removed(files)
            listed = [file.path for file in files]
            free = {path for path, is_gone in zip(listed, removed, strict=True) if is_gone}
            gone = free & {path for _, path in folders}
            if named := [p for p in self._files if p in free and posixpath.dirname(p) not in gone]:
                self._log.write("scratch-removed", host=self._executor.host, paths=named)
            for target, path in folders:
                if path in free:
                    self._log.write("folder-removed", host=self._executor.host, target=target)
                    del self._folders[target]
            self._files = {path: self._files[path] for path in self._files if path not in free}
            return tuple(sorted({*self._files, *listed, *hidden} - free))

    def _is_hidden(self, target: str, path: str) -> bool:
        """Return whether another filesystem or folder is mounted over a private folder."""
        if self._is_there(target, path):
            return False
        (volume,) = describe_files(self._executor, [target])
        try:
            self._check_filesystem(target, volume.stat, None)
        except RefusedError:
            return volume.stat is not None
        return False

    def _removed(self, files: list[NamedFile]) -> list[bool]:
        """Remove files; return for each whether its path no longer exists."""
        try:
            return self._executor.ask(remove_exactly, files) if files else []
        except OperationError as error:
            raise VolbenchError(
                f"{files[0].path} cannot be removed{_on_host(self._executor)}: {error.reason}",
                hint="remove it manually",
            ) from error

    @property
    def paths(self) -> tuple[str, ...]:
        """All recorded paths, sorted."""
        return tuple(sorted(self._files))

    def _record_file(self, files: _Identities) -> None:
        if files:
            counts = _families([path for path, mark in files.items() if mark is None])
            listed = {p: mark for p, mark in files.items() if mark or _head(p) not in counts}
            host = self._executor.host
            self._log.write("scratch", host=host, files=listed, families=counts)
            self._files.update(files)


def displaces(run: Run) -> str:
    """Return the option or engine that may remove a file or change its length; or ""."""
    reviewed = shipped_table().options
    names = (displacing_option(run.effective(part), reviewed=reviewed) for part in run.sections)
    return next(filter(None, names), "")


def _is_made_often(run: Run) -> bool:
    """Return whether fio may make a file of a run anew after it has made it."""
    options = [run.effective(section) for section in run.sections]
    grows = any("offset_increment" in each or has_relative_offset(each) for each in options)
    return grows or len(options) > 1 or bool(displaces(run))


def _in_folder(volume: Volume, folder: str) -> Volume:
    return volume.model_copy(update={"private_folder": posixpath.basename(folder) or None})


def _with_volumes(run: Run, volumes: Sequence[Volume]) -> Run:
    """Return a run on other volumes than its own, one for each of them."""
    parts = run.volume.model_copy(update={"parts": tuple(volumes)})
    return run.model_copy(update={"volume": parts if run.volume.parts else volumes[0]})


def _families(paths: Sequence[str]) -> dict[str, int]:
    """Return heads of paths that are numbered from 0, such as ``/data/job.0.``, with their counts.

    fio names the files of a job so: 100,000 of them are one family.
    """
    numbers: dict[str, set[str]] = {}
    for path in paths:
        numbers.setdefault(_head(path), set()).add(path)
    return {
        head: len(known)
        for head, known in numbers.items()
        if len(known) > 1 and all(f"{head}{number}" in known for number in range(len(known)))
    }


def _head(path: str) -> str:
    """Return a path up to the number at its end."""
    return path.rstrip("0123456789")


def _on_host(executor: Executor) -> str:
    """Return where something happened, for messages; empty for this machine."""
    return f" on {executor.host}" if executor.is_remote else ""
