"""Checks of a whole campaign on a machine before its first run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

from volbench.engine.guard.device_guard import NOT_OPENED, Opened
from volbench.engine.guard.run_guard import (
    OPTION_CONSENT,
    RunConsent,
    check_run,
    check_space,
    may_write,
    question_about,
)
from volbench.engine.guard.scratch_files import displaces
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.described_volumes import Content, HostState, look_at
from volbench.engine.hosts.device_lock import room_left
from volbench.errors import FioError, InputError, NoSpaceError, quoted
from volbench.execute.agent.block_reads import reach_nbd
from volbench.execute.agent.locks import Room
from volbench.execute.agent.volumes import DescribedFile, KnownFile
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import render, writes
from volbench.model.campaign.planned_files import Range, device_ranges, file_ranges, planned_files
from volbench.model.campaign.planned_run import Campaign, Consent, FileIdentity, Run, VolumeKind
from volbench.model.profile.option_policy import block_sizes
from volbench.model.profile.secret_values import without_references
from volbench.model.results.provenance import HostFacts
from volbench.plan.expansion.expand import missing_size
from volbench.units import format_capacity

_SERIAL = "serial:"
# Length of the job files of one fio process: half of the longest argument list of Linux.
# Noticed by: test_preflight.py::test_a_rejected_job_is_found_among_many
_MAX_JOB_FILES_CHARS = 64 << 10
_MAX_JOB_FILES = 200  # Of one fio process: far below the usual limit of open files
_CPU_LIST = re.compile(r"([0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*)?")

_DEFAULT_BLOCK = 4096
_COPYING = ("btrfs", "zfs", "bcachefs", "nilfs2")  # Keep what is overwritten for a while
_MAX_ANNOUNCED = 1000  # Files of an announcement, whose blocks are looked at
LeftByOthers = Callable[[Room], tuple[int, Sequence[str]]]
"""Return the free bytes that other campaigns leave, and their keys; see `locks.announce`."""


def check_campaign(
    host: ConnectedHost, campaign: Campaign, *, facts: HostFacts, campaign_dir: str
) -> dict[str, FileIdentity]:
    """Check every run that a campaign plans for a host.

    Args:
        campaign_dir: absolute path of the campaign folder.

    Returns:
        The files of the user that the runs use, by path.
    """
    made: set[str] = set()
    found: dict[str, FileIdentity] = {}
    runs = _distinct(run for run in campaign.runs if run.host == host.name)
    guard = RunGuard(host.executor, campaign, campaign_dir)
    with ThreadPoolExecutor(1) as thread:
        parsing = thread.submit(check_job_files, host, runs) if host.fio else None
        state = guard.look(runs)
    _check_exports(host, runs)
    for run in runs:
        for part in run.parts:
            _check_blocks(part, state)
            if part.volume.kind is VolumeKind.FILE and part.volume.target not in made:
                _check_file_size(part, state)
        check_cpus(run, cpus=facts.cpus)
        check_memory(run, memory_bytes=facts.usable_memory_bytes)
        guard.check(run, state, ours=made.__contains__, rooms=False)
        kept = guard.files_to_keep(run, state, ours=made.__contains__)
        found.update({file.path: file.identity for file in kept})
        made.update(path for path in planned_files(run) if _is_missing(path, state))
    check_rooms(runs, state, partial(room_left, host.executor, campaign, None))
    if parsing is not None:
        parsing.result()
    return found


def _check_exports(host: ConnectedHost, runs: Sequence[Run]) -> None:
    """Check that the servers of NBD exports can be reached; fio reports it after a wait only."""
    for uri in dict.fromkeys(r.volume.target for r in runs if r.volume.kind is VolumeKind.NBD):
        if reason := host.executor.ask(reach_nbd, uri):
            raise InputError(
                f"{uri} cannot be reached from {host.name}: {reason}",
                hint="start the server of the export, or correct the URI",
            )


def _check_file_size(run: Run, state: HostState) -> None:
    """Check that a job whose file is new or empty says how large it is to be."""
    seen = state.volumes[run.volume.target].stat
    if (seen is None or not seen.size_bytes) and (has_none := missing_size(run)):
        is_new = "does not exist" if seen is None else "is empty"
        raise InputError(
            f"job {run.job} {has_none}, and {run.volume.target} {is_new}",
            hint="name a device, a directory or a file with content, or give the size of the new "
            "file: --set size=1g",
        )


def _distinct(runs: Iterable[Run]) -> list[Run]:
    """Return one run of each group of runs that differ only in repeat and seed."""
    same = {"id": "", "repeat": 1, "seed": 0, "step": 0}
    return list({run.model_copy(update=same).model_dump_json(): run for run in runs}.values())


def _check_blocks(run: Run, state: HostState) -> None:
    """Check direct I/O in blocks below 4 KiB against the logical block size of the device."""
    direct = (each for each in map(run.effective, run.sections) if each.get("direct", "0") == "1")
    block_bytes = min((min(block_sizes(each)) for each in direct), default=_DEFAULT_BLOCK)
    seen = state.volumes.get(run.volume.target)
    if block_bytes >= _DEFAULT_BLOCK or seen is None or seen.device is None:
        return
    if (logical_bytes := seen.device.logical_block_bytes or 0) > block_bytes:
        raise InputError(
            f"job {run.job} requests direct I/O of {block_bytes} bytes, but {run.volume.target}"
            f" has logical blocks of {logical_bytes} bytes",
            hint=f"leave the job out with --set '{run.job}=', or all such jobs with a pattern "
            "such as --set '*-512='",
        )


class RunGuard:
    """Guard of the runs of a campaign on one host."""

    def __init__(self, executor: Executor, campaign: Campaign, campaign_dir: str) -> None:
        self._executor = executor
        self._campaign = campaign
        self._campaign_dir = campaign_dir  # absolute path of the campaign folder
        hosts = {host.name: host for host in campaign.hosts}
        host = hosts.get(executor.host)
        self._by_sudo = host is not None and host.sudo

    def look(
        self,
        runs: Sequence[Run],
        *,
        opened: Opened = NOT_OPENED,
        space: Sequence[str] = (),
        flush_s: float = 0.0,
    ) -> HostState:
        """Return the state of the volumes and files of runs, and the free space at paths.

        Dirty pages of the volumes are written back before, in at most `flush_s`.
        """
        questions = [
            question_about(
                part, planned_files(part), self._consent(part), opened.get(part.volume.target)
            )
            for run in runs
            for part in run.parts
            if part.volume.kind is not VolumeKind.NBD
        ]
        return look_at(
            self._executor,
            questions,
            campaign_dir=self._campaign_dir,
            space=space,
            flush_s=flush_s,
            by_sudo=self._by_sudo,
        )

    def check(
        self,
        run: Run,
        state: HostState,
        *,
        ours: Callable[[str], bool],
        opened: Opened = NOT_OPENED,
        rooms: bool = True,
    ) -> None:
        """Check one run, and unless other runs follow the free space for its files."""
        for part in run.parts:
            check_run(
                part,
                state,
                files=planned_files(part),
                consent=self._consent(part, asked=run.volume.target),
                ours=ours,
                opened=opened.get(part.volume.target),
            )
        if rooms:
            left = partial(room_left, self._executor, self._campaign, run.client)
            check_rooms([run], state, left)

    def files_to_keep(
        self, run: Run, state: HostState, *, ours: Callable[[str], bool]
    ) -> tuple[KnownFile, ...]:
        """Return the files of a user that a run must leave in their places, with their lengths."""
        files = {path: state.files[path] for path in planned_files(run) if not ours(path)}
        return tuple(
            KnownFile(
                *(name, file.stat.identity, file.stat.size_bytes),
                file.stat.allocated_bytes if file.named else 0,
                None if file.content is None else Content([file.content]).mark,
            )
            for path, file in files.items()
            if file.stat is not None and not displaces(run)
            # by the planned path too: a folder of it may become a link
            for name in {file.real, path if file.identity == file.stat.identity else file.real}
        )

    def _consent(self, run: Run, *, asked: str = "") -> RunConsent:
        given = {name: getattr(self._campaign, name) for name in Consent.model_fields}
        allowed = {"allow_destroy": allowed_for(run, self._campaign)}
        more = {"campaign_dir": self._campaign_dir, "by_sudo": self._by_sudo, "asked": asked}
        return RunConsent(**given | allowed | more)


def check_rooms(runs: Sequence[Run], state: HostState, left_by_others: LeftByOthers) -> None:
    """Check the free space of each filesystem for all that runs allocate and keep."""
    groups: dict[tuple[tuple[int, int], int], dict[str, Range]] = {}
    devices: dict[str, set[Range]] = {}
    targets: dict[tuple[int, int], str] = {}
    copied = _copied(runs, state)
    for number, run in enumerate(runs):
        for part in filter(may_write, run.parts):
            target, options = part.volume.target, map(part.effective, part.sections)
            if part.volume.pin is not None:
                devices.setdefault(target, set()).update(device_ranges(part))
            if not (ranges := _allocated(part, state)):
                continue
            mount = state.volumes[target].storage
            targets[place := mount.number if mount else (0, 0)] = target
            is_kept = not any(each.get("unlink", "0") == "1" for each in options)
            own = groups.setdefault((place, -1 if is_kept else number), {})
            for path, (start, end) in ranges.items():
                first, last = own.get(path, (start, end))
                own[path] = min(start, first), max(end, last)
    parts = [part for run in runs for part in run.parts]
    sizes = (part.effective(each).get("size", "") for part in parts for each in part.sections)
    largest = max((int(size) for size in sizes if size.isdecimal()), default=0)
    written: dict[str, int] = {}
    beside: dict[tuple[int, int], int] = {}
    for (place, _), unlinked in sorted(groups.items()):  # the last announcement is the largest
        used = {**groups.get((place, -1), {}), **unlinked}
        missing = {
            path: _missing_bytes(state.files[path], used[path], is_copied=path in copied)
            for path in used
        }
        target, size_bytes = targets[place], sum(end - start for start, end in used.values())
        written[target] = max(written.get(target, 0), size_bytes)
        seen = state.volumes[targets[place]]
        new_files = sum(_is_missing(path, state) for path in used)
        if new_files > seen.space[1]:
            raise NoSpaceError(
                f"{targets[place]} has room for {seen.space[1]} more files, not {new_files}",
                hint="decrease nrfiles or numjobs, or free inodes (df -i)",
            )
        if needed_bytes := sum(missing.values()):
            beside[place] = max(beside.get(place, 0), needed_bytes)
            first_path, *others = files = tuple(filter(missing.get, missing))
            folder = first_path.rpartition("/")[0]
            files = () if copied or len(files) > _MAX_ANNOUNCED else files
            free, keys = left_by_others(Room(place, seen.nearest, needed_bytes, files))
            check_space(
                f"the layout of {len(others) + 1} files in {folder}" if others else first_path,
                free_bytes=min(free, seen.space[0]),
                others=keys,
                needed_bytes=needed_bytes,
                jobs=max(needed_bytes / (largest or needed_bytes), 1),
            )
    for target, used_ranges in devices.items():
        written[target] = sum(end - start for start, end in used_ranges)
    _check_below(written, beside, state, left_by_others)


def _check_below(
    written: Mapping[str, int],
    beside: Mapping[tuple[int, int], int],
    state: HostState,
    left_by_others: LeftByOthers,
) -> None:
    """Check the filesystems of sparse files below volumes, where other files take bytes too."""
    needed: dict[tuple[int, int], dict[str, int]] = {}
    rooms: dict[tuple[int, int], tuple[Room, int]] = {}
    for target, written_bytes in written.items():
        for room, free_bytes in state.volumes[target].holes:
            rooms[room.place] = room, free_bytes
            needed.setdefault(room.place, {})[target] = min(room.needed_bytes, written_bytes)
    for place, sizes in needed.items():
        if below_bytes := sum(sizes.values()):
            room, free_bytes = rooms[place]
            room = room._replace(needed_bytes=below_bytes + beside.get(place, 0))
            free, keys = left_by_others(room)
            check_space(
                " and ".join(sizes),
                free_bytes=min(free, free_bytes),
                needed_bytes=room.needed_bytes,
                others=keys,
            )


def _copied(runs: Sequence[Run], state: HostState) -> set[str]:
    """Return the files whose overwritten blocks stay on their filesystem for a while."""
    written = (part for run in runs for part in run.parts if writes(part))
    parts = (part for part in written if part.volume.target in state.volumes)  # none of NBD
    mounts = ((part, state.volumes[part.volume.target].storage) for part in parts)
    copying = (part for part, mount in mounts if mount and mount.filesystem in _COPYING)
    return {path for part in copying for path in _allocated(part, state)}


def _allocated(run: Run, state: HostState) -> dict[str, Range]:
    """Return the ranges of files for which a run allocates space; it only reads what is there."""
    stats = {path: file.stat for path, file in state.files.items() if file.stat is not None}
    ranges = file_ranges(run, {path: stat.size_bytes for path, stat in stats.items()})
    return {
        path: (start if path in stats and stats[path].size_bytes >= end else 0, end)
        for path, (start, end) in ranges.items()
        if path in state.files
        and (path not in stats or stats[path].size_bytes < end or writes(run))
    }


def _missing_bytes(file: DescribedFile, used: Range, *, is_copied: bool) -> int:
    """Return the bytes that a file lacks at most in a range, in whole blocks, and for copies."""
    size_bytes, allocated_bytes = used[1], 0
    if file.stat is not None:
        size_bytes = max(size_bytes, file.stat.size_bytes)
        allocated_bytes = file.stat.allocated_bytes
    lacking_bytes = max(0, min(used[1] - used[0], size_bytes - allocated_bytes))
    copied_bytes = file.copied_bytes + (used[1] - used[0] if is_copied else 0)
    return -(-lacking_bytes // _DEFAULT_BLOCK) * _DEFAULT_BLOCK + copied_bytes


def _is_missing(path: str, state: HostState) -> bool:
    return path in state.files and state.files[path].stat is None


def allowed_for(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return the targets that a run may overwrite on its host, as paths and URIs.

    On another machine ``/dev/sdb`` is a different disk, so consent on the command line needs the
    host's name as a prefix (``vm01:/dev/sdb``), and the inventory names devices by serial number or
    by a path below /dev/disk/by-id.
    """
    hosts = {host.name: host for host in campaign.hosts}
    host = hosts.get(run.host)
    if host is None or host.is_local:
        given = campaign.allow_destroy
    else:
        named = f"{run.host}:"
        given = tuple(
            entry.removeprefix(named)
            for entry in campaign.allow_destroy
            if entry.startswith((named, OPTION_CONSENT))
        )
    listed = host.allow_destroy if host is not None else ()
    pin = run.volume.pin
    by_serial = pin is not None and bool(pin.serial) and f"{_SERIAL}{pin.serial}" in listed
    return (
        *given,
        *(entry for entry in listed if not entry.startswith(_SERIAL)),
        *((run.volume.target,) if by_serial else ()),
    )


def check_cpus(run: Run, *, cpus: int) -> None:
    """Check the CPUs that options name against those of the host."""
    for section, name in product(run.sections, ("cpus_allowed", "verify_async_cpus")):
        text = run.effective(section).get(name, "")
        if not _CPU_LIST.fullmatch(text):
            raise InputError(
                f"job {run.job}: {name}={text} is not a list of CPUs",
                hint="write it like 0, 0-3 or 0,2",
            )
        highest = max(map(int, re.findall(r"\d+", text)), default=0)
        if highest and highest >= cpus:
            raise InputError(
                f"job {run.job} requests CPU {highest} ({name}={text}), but this machine "
                f"has only {'CPU 0' if cpus == 1 else f'the CPUs 0 to {cpus - 1}'}",
                hint=f"choose one that exists with --set {name}=0, "
                f"or let fio use all with --set {name}=",
            )


def check_memory(run: Run, *, memory_bytes: int | None) -> None:
    """Check fio's buffers, one per I/O in flight, and its locked memory, against the host's."""
    needed_bytes = sum(_memory_bytes(run.effective(section)) for section in run.sections)
    if memory_bytes is not None and needed_bytes > memory_bytes:
        raise InputError(
            f"job {run.job} needs {format_capacity(needed_bytes)} of memory (numjobs x (iodepth x "
            f"bs + lockmem)), but may use only {format_capacity(memory_bytes)} of memory here",
            hint="decrease numjobs, iodepth, bs or lockmem; a pod may have a limit: --pod "
            "limit.memory=...",
        )


def _memory_bytes(options: Mapping[str, str]) -> int:
    """Return the memory of a section; each of numjobs locks its own."""
    depth, locked_bytes = int(options.get("iodepth", "1")), int(options.get("lockmem", "0"))
    job_bytes = depth * max(block_sizes(options)) + locked_bytes
    return int(options.get("numjobs", "1")) * job_bytes


def check_job_files(host: ConnectedHost, runs: Sequence[Run]) -> None:
    """Check that the installed fio can parse every job file, without running any."""
    jobs = {without_references(render(run)): run for run in reversed(runs)}
    for texts in _batches(list(reversed(jobs))):
        rejected = _first_rejected(host, texts)
        if rejected is None:
            continue
        run = jobs[rejected[0]]
        raise FioError(
            f"fio rejects job {run.job}: {rejected[1]}",
            hint=f"see its job file: volbench profile render {quoted(run.profile)} -o DIR",
        )


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    for text in texts:
        is_long = sum(map(len, batch)) + len(text) > _MAX_JOB_FILES_CHARS
        if batch and (is_long or len(batch) == _MAX_JOB_FILES):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _first_rejected(host: ConnectedHost, texts: Sequence[str]) -> tuple[str, str] | None:
    """Return the first job file that fio rejects, and fio's message.

    One process parses all files, because its start takes longer than parsing a thousand files. fio
    does not name the rejected file, so it is found by bisection. Without a given clock source fio
    first compares the clocks of all CPUs for 50 ms; a clock source in a job file takes precedence.
    """
    argv = [host.fio, "--parse-only", "--clocksource=clock_gettime"]
    done = host.executor.run(argv, texts=texts)
    if not done.exit_status:
        return None
    if len(texts) == 1:
        message = done.stderr.strip() or done.stdout.strip()
        message = message or f"it ended with status {done.exit_status} and printed nothing"
        return texts[0], message.replace(done.argv[-1], "job file")
    middle = len(texts) // 2
    return _first_rejected(host, texts[:middle]) or _first_rejected(host, texts[middle:])
