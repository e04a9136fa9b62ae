"""Snapshots of a host: read-only requests answered together, in one round trip.

Within a snapshot the answers to looks (stat, readlink, files, folders) are all of one instant. Any
other request drops them, and the next look takes them anew.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.execute.shell import posix_scripts
from volbench.execute.shell.remote_script import ScriptAnswer, ScriptCall

# Scripts that change nothing
LOOKS = frozenset(
    {
        posix_scripts.WHICH,
        posix_scripts.READ,
        posix_scripts.LIST,
        posix_scripts.REAL,
        posix_scripts.STAT,
        posix_scripts.FREE,
    }
)

MAX_AGE_S = 2.0  # Age above which answers are taken anew

_MAX_LEARNED = 500
_MAX_KEYS = 1500
_WELL_KNOWN = (
    "/proc/self/mountinfo",
    "/proc/swaps",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/etc/fstab",
    "/etc/machine-id",
    "/etc/os-release",
    "/proc/sys/kernel/osrelease",
    "/sys/devices/system/cpu/online",
)
_HARMLESS = frozenset({"sync", "systemd-detect-virt"})
# Scripts that change only work folders, or temporary ones, which are not looked at
_KEPT = frozenset(
    {
        posix_scripts.FILES,
        posix_scripts.RUN_ON_FILES,
    }
)
# Programs that are likely to be asked; only a success counts as their answer
_QUERIES = (("fio", "--version"), ("systemd-detect-virt",))
_FLAGS = ("62", "KILL", "", "")  # Arguments of `posix_scripts.RUN` before those of `_QUERIES`
_PROGRAMS = ("fio", "sh", "python3", "systemd-detect-virt")
_ATTRIBUTES = (
    "dev",
    "size",
    "ro",
    "partition",
    "serial",
    "device/serial",
    "device/model",
    "loop/backing_file",
    "dm/name",
    "dm/uuid",
    "queue/scheduler",
    "queue/rotational",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/write_cache",
)

_LINKS = ("slaves", "holders")

Key = tuple[str, tuple[str, ...]]


@dataclass
class _Snapshot:
    """Answers of a snapshot."""

    seeds: tuple[Key, ...]
    answers: dict[Key, ScriptAnswer] = field(default_factory=dict)
    devices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    taken_s: float = 0.0
    changes: int = 0

    def answer(self, key: Key) -> ScriptAnswer | None:
        """Return the answer to a look; None if it was not foreseen."""
        return self.answers.get(key) or _attribute(self.devices, key)

    def clear(self) -> None:
        """Drop all answers."""
        self.answers.clear()
        self.devices = {}


class LookAhead:
    """Snapshots of one host, at most one for each thread."""

    def __init__(
        self, send: Callable[[ScriptCall], ScriptAnswer], *, work_folder: str = ""
    ) -> None:
        self._send = send
        self._always = ((posix_scripts.REAL, (work_folder,)),) if work_folder else ()
        self._current = threading.local()
        self._last: _Snapshot | None = None
        self._changes = 0
        self._learned: dict[Key, None] = {}
        self.programs: dict[str, str] = {}

    @contextmanager
    def snapshot(self, paths: Sequence[str]) -> Iterator[None]:
        """Answer the looks of this thread together; a snapshot within another one does nothing.

        What earlier snapshots did not foresee is asked for again. The answers of the last snapshot
        serve again while they are fresh and nothing was changed.
        """
        if self._running is not None:
            yield
            return
        snapshot = self._current.snapshot = _Snapshot((*self._always, *_seeds(paths)))
        last = self._last
        is_fresh = last is not None and last.changes == self._changes
        if is_fresh and last is not None and last.answers.keys() >= set(snapshot.seeds):
            snapshot.answers, snapshot.devices = dict(last.answers), last.devices
            snapshot.taken_s, snapshot.changes = last.taken_s, last.changes
        try:
            yield
        finally:
            self._current.snapshot = None
            self._last = snapshot

    @property
    def _running(self) -> _Snapshot | None:
        found: _Snapshot | None = getattr(self._current, "snapshot", None)
        return found

    def answer(self, call: ScriptCall) -> ScriptAnswer | None:
        """Return the answer to a look; None for other requests, and outside of a snapshot."""
        snapshot, key = self._running, self._key(call)
        if key is None and snapshot is not None and not _keeps_answers(call):
            snapshot.clear()
        return None if key is None or snapshot is None else self._look(snapshot, key, call)

    def note(self, call: ScriptCall) -> None:
        """Note that a request was carried out, of any thread: it may have changed something."""
        if self._key(call) is None and not _keeps_answers(call):
            self._changes += 1
            self._last = None  # hundreds of hosts have half a megabyte of answers each

    def _look(self, snapshot: _Snapshot, key: Key, call: ScriptCall) -> ScriptAnswer | None:
        if snapshot.answers and time.monotonic() - snapshot.taken_s > MAX_AGE_S:
            snapshot.clear()
        if not snapshot.answers:
            self._take(snapshot, key)
        if (answer := snapshot.answer(key)) is not None:
            return answer
        if key[0] == posix_scripts.RUN:
            return None
        answer = snapshot.answers[key] = self._send(call)
        if len(self._learned) < _MAX_LEARNED:
            self._learned[key] = None
        return answer

    def _key(self, call: ScriptCall) -> Key | None:
        """Return the key of a look; None for other requests."""
        if call.script in LOOKS:
            return call.script, call.arguments
        program, *arguments = call.arguments[len(_FLAGS) :] or ("",)
        name = posixpath.basename(program)
        is_found = program in {name, self.programs.get(name)}
        is_plain = call.script == posix_scripts.RUN and call.arguments[: len(_FLAGS)] == _FLAGS
        if is_plain and is_found and (name, *arguments) in _QUERIES:
            return call.script, (*_FLAGS, name, *arguments)
        return None

    def _take(self, snapshot: _Snapshot, key: Key) -> None:
        """Ask for everything that is likely to be asked for."""
        snapshot.changes = self._changes
        keys = list(dict.fromkeys((key, *snapshot.seeds, *self._learned)))[:_MAX_KEYS]
        answer = self._send(ScriptCall(_batch(keys), _ATTRIBUTES, f"examining {key[1][0]}"))
        snapshot.taken_s = time.monotonic()
        outputs = _outputs(answer, count=len(keys) + 1)
        snapshot.devices = _devices(outputs[0].stdout) if outputs else {}
        for found_key, each in zip(keys, outputs[1:], strict=False):
            if found_key[0] != posix_scripts.RUN or each.status == 0:
                snapshot.answers[found_key] = each
        for (script, arguments), found in snapshot.answers.items():
            if script == posix_scripts.WHICH and found.status == 0:
                self.programs[arguments[0]] = os.fsdecode(found.stdout).removesuffix("\n")


def _keeps_answers(call: ScriptCall) -> bool:
    """Return whether a request changes nothing that is looked at.

    A shell script that runs its name, as that of `flush_volume` does, changes what the program
    changes.
    """
    if call.script != posix_scripts.RUN:
        return call.script in _KEPT
    argv = call.arguments[len(_FLAGS) :]
    program = argv[3] if argv[:2] == ("sh", "-c") and len(argv) > 3 else next(iter(argv), "")
    return posixpath.basename(program) in _HARMLESS


def _seeds(paths: Iterable[str]) -> Iterator[Key]:
    """Yield the looks at some paths and their parents, and at well-known files."""
    for path in _WELL_KNOWN:
        yield posix_scripts.READ, (path,)
    for program in _PROGRAMS:
        yield posix_scripts.WHICH, (program,)
    for query in _QUERIES:
        yield posix_scripts.RUN, (*_FLAGS, *query)
    yield posix_scripts.LIST, ("/sys/block",)
    yield posix_scripts.STAT, ("/proc/self", "follow")
    above = dict.fromkeys(
        str(place)
        for path in paths
        for place in (PurePosixPath(path), *PurePosixPath(path).parents)
    )
    for place in above:
        yield posix_scripts.REAL, (place,)
        yield posix_scripts.STAT, (place, "follow")
        yield posix_scripts.STAT, (place, "")
        yield posix_scripts.FREE, (place,)


# Print attributes of all block devices, which are one line each: ATTRIBUTE..
_SYSFS = (
    'for d in /sys/block/* /sys/block/*/*/partition; do d=${d%/partition}; [ -d "$d" ] || '
    "continue; "
    'r=$(readlink -f -- "$d"); echo "/ $d $r"; for a do x=; if [ -f "$r/$a" ] && [ -r "$r/$a" ]; '
    'then IFS= read -r x <"$r/$a"; echo "+ $a $x"; else echo "- $a"; fi; done; '
    'for l in slaves holders; do x=; for e in "$r/$l"/*; do [ -e "$e" ] && x=$x${e##*/}/; done; '
    'echo "= $l $x"; done; done; exit 0'
)


def _batch(keys: Sequence[Key]) -> str:
    """Return the script that answers many looks, and prints the attributes of block devices."""
    scripts = list(dict.fromkeys(script for script, _ in keys))
    lines = [f"s_{number}={shlex.quote(script)}" for number, script in enumerate(scripts)]
    lines.append(f'look {shlex.quote(_SYSFS)} "$@"')
    lines += [
        f'look "$s_{scripts.index(script)}" {shlex.join(arguments)}' for script, arguments in keys
    ]
    return "\n".join([*lines, "exit 0"])


def _outputs(answer: ScriptAnswer, *, count: int) -> list[ScriptAnswer]:
    """Return the answers of a batch; none of a malformed one, so that each is asked for alone."""
    mark = re.escape(answer.mark.encode())
    parts = re.split(rb"\n%s (\d{1,3})\n" % mark, answer.stdout)
    outputs, statuses = parts[:-1:2], [int(status) for status in parts[1::2]]
    if len(outputs) != count or len(statuses) != count:
        return []
    return [
        ScriptAnswer(status, b"", output.decode("utf-8", "replace"), answer.mark)
        if status
        else ScriptAnswer(0, output, "", answer.mark)
        for output, status in zip(outputs, statuses, strict=True)
    ]


def _devices(output: bytes) -> dict[str, Sequence[str]]:
    """Return the lines about each block device, by both of its folders and by its number.

    They are taken apart when asked for: a host may have hundreds of devices, a controller hundreds
    of hosts.
    """
    found: dict[str, Sequence[str]] = {}
    for block in f"\n{os.fsdecode(output)}".split("\n/ ")[1:]:
        lines = block.split("\n")
        name, _, real = lines[0].partition(" ")
        found[name] = found[real] = lines
        number = next((line for line in lines if line.startswith("+ dev ")), "")
        if number:
            found[f"/sys/dev/block/{number.removeprefix('+ dev ')}"] = lines
    return found


def _attribute(devices: Mapping[str, Sequence[str]], key: Key) -> ScriptAnswer | None:
    """Return the answer to a look at a block device; None for any other look."""
    script, (path, *_) = key
    if script == posix_scripts.REAL and path.startswith("/sys/dev/block/") and path in devices:
        return ScriptAnswer(0, os.fsencode(devices[path][0].partition(" ")[2] + "\n"), "", "")
    for name in _ATTRIBUTES if script == posix_scripts.READ else _LINKS:
        folder = path.removesuffix(f"/{name}")
        if folder == path or folder.startswith("/sys/dev/block/") or folder not in devices:
            continue
        for kind, _, rest in (line.partition(" ") for line in devices[folder]):
            if rest == name or rest.startswith(f"{name} "):
                return _attribute_answer(kind, script, rest.partition(" ")[2])
    return None


def _attribute_answer(kind: str, script: str, value: str) -> ScriptAnswer | None:
    if script == posix_scripts.LIST:
        return ScriptAnswer(0, os.fsencode(value), "", "") if kind == "=" else None
    if script != posix_scripts.READ or kind == "=":
        return None
    if kind == "+":
        return ScriptAnswer(0, os.fsencode(f"{value}\n"), "", "")
    return ScriptAnswer(posix_scripts.REFUSED, b"", "", "")
