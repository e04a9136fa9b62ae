"""Staggered starts of machines by commands of the user, while their disks are watched.

Commands are split into words as a shell would, and never passed to one.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from volbench.errors import InputError

# Between two looks whether a machine is up. Noticed by: tests/extensions/watching/test_starts.py
_LOOK_S = 1.0
# Longest time of such a look. Noticed by: tests/extensions/watching/test_starts.py
_MAX_LOOK_S = 30.0
# Share of the busiest interval below which disks are quiet, as in boot storms of fio's clients, and
# the time for which they must be. Noticed by: tests/extensions/watching/test_starts.py
QUIET_SHARE, QUIET_S = 0.1, 30.0

Mark = Callable[[str, str], None]


@dataclass(frozen=True)
class Starts:
    """Commands of the user, with ``{n}`` for the number of the machine, and their number."""

    start: tuple[str, ...]
    count: int
    until: tuple[str, ...] = ()  # succeeds once a machine is up; empty if that is not known
    stop: tuple[str, ...] = ()  # ends a machine before the next stagger; empty for none


def parse_command(text: str, *, option: str) -> tuple[str, ...]:
    """Return the words of a command."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(
            f"{option}: {text!r} cannot be split into words: {error}",
            hint="quote it as for a shell; for pipes write: sh -c '...'",
        ) from error


@dataclass
class _Machine:
    number: int
    process: subprocess.Popen[bytes]
    is_reported: bool = False
    is_up: bool = False
    look: subprocess.Popen[bytes] | None = None
    look_s: float = 0.0  # when the last look began or ended


@dataclass
class StaggeredStarts:
    """Starts of one stagger, carried on by `step` without waiting.

    Args:
        mark: called with the kind of an event (``start``, ``up``, ``failed`` or ``quiet``) and the
            number of the machine.
    """

    commands: Starts
    stagger_s: float
    mark: Mark
    clock: Callable[[], float] = time.monotonic
    _machines: list[_Machine] = field(default_factory=list)
    _begun_s: float | None = None
    _peak: float = 0.0
    _busy_s: float = 0.0

    @property
    def are_all_up(self) -> bool:
        """Whether every machine was started, and is up as far as that is known."""
        is_whole = len(self._machines) == self.commands.count
        return is_whole and all(each.is_up or each.is_reported for each in self._machines)

    def step(self, iops: float | None) -> bool:
        """Start the machines that are due; return whether all are up and the disks quiet again.

        Args:
            iops: of all watched disks in the last interval; None without a new interval.
        """
        now_s = self.clock()
        if self._begun_s is None:
            self._begun_s = self._busy_s = now_s
        due = int((now_s - self._begun_s) / self.stagger_s) + 1 if self.stagger_s else 1 << 30
        while len(self._machines) < min(due, self.commands.count):
            number = len(self._machines) + 1
            self._machines.append(_Machine(number, _process_of(self.commands.start, number)))
            self.mark("start", str(number))
        for machine in self._machines:
            self._look(machine, now_s)
        if iops is not None:
            self._peak = max(self._peak, iops)
        if not self.are_all_up or (iops is not None and iops > QUIET_SHARE * self._peak):
            self._busy_s = now_s
        return self.are_all_up and now_s - self._busy_s >= QUIET_S

    def _look(self, machine: _Machine, now_s: float) -> None:
        status = machine.process.poll()
        if status and not machine.is_reported:
            machine.is_reported = True
            self.mark("failed", f"{machine.number} (exit status {status})")
        if machine.is_up or machine.is_reported:
            return
        if not self.commands.until:
            machine.is_up = status == 0
            return
        if machine.look is None:
            if now_s - machine.look_s >= _LOOK_S:
                machine.look, machine.look_s = (
                    _process_of(self.commands.until, machine.number),
                    now_s,
                )
            return
        result = machine.look.poll()
        if result is None and now_s - machine.look_s > _MAX_LOOK_S:
            machine.look.kill()
            result = machine.look.wait()
        if result is None:
            return
        machine.look, machine.look_s = None, now_s
        if result == 0:
            machine.is_up = True
            self.mark("up", str(machine.number))

    def end(self) -> None:
        """Stop pending checks, and the machines if there is a command for that."""
        for machine in self._machines:
            machine.process.poll()  # one that has ended is not left as a zombie
            if machine.look is not None:
                machine.look.kill()
                machine.look.wait()
        if self.commands.stop:
            stops = [_process_of(self.commands.stop, each.number) for each in self._machines]
            for process in stops:
                process.wait()


def _process_of(command: Sequence[str], number: int) -> subprocess.Popen[bytes]:
    argv = [word.replace("{n}", str(number)) for word in command]
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own words, and no shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(
            f"{argv[0]} cannot be started: {error.strerror}",
            hint=f"check the command: {shlex.join(argv)}",
        ) from error
