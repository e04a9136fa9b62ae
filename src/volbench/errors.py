"""Exception hierarchy: all expected failures, with exit codes and hints.

::

    VolbenchError                  1
    ├── InputError                 2   invalid argument, file or option
    │   ├── ProfileError               a profile: file, line, column, key; may hold several problems
    │   └── InventoryError             a list of hosts: located problems, or the whole list
    ├── RefusedError               3   the run would or might destroy data
    │   └── NoSpaceError               a volume, or the folder of results, has too little room
    ├── TransportError             4   a host is unreachable, or the connection failed
    │   ├── ConnectError *             no connection, or it was lost
    │   ├── AuthError                  authentication failed
    │   ├── HostKeyError               the host key is unknown or has changed
    │   ├── DeadlineError *            no answer in time
    │   └── TransferError *            a file was corrupted or truncated in transfer
    ├── FioError                   5   fio is missing, too old, or failed
    ├── OutputError                6   malformed JSON or log: path, line
    ├── ArchiveError               7   a campaign folder is damaged, locked or of another version
    ├── ComparisonError            8   results that must not be compared
    │   └── IncomparableError          relevant facts differ: which ones, on which side
    ├── CampaignError              9   runs failed or were not started; lists the finished ones
    ├── FindingsError             10   data-quality warnings with ``--strict``
    │   └── RegressionError            a result is worse than its baseline beyond the tolerance
    ├── UndecidedError            11   a gate could not have seen what it is asked about
    └── StoppedError            130   the user stopped it

Only those marked with * are retried. Exceptions of libraries are converted to one of these where
they are caught.
"""

from __future__ import annotations

import errno
import os
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))


class VolbenchError(Exception):
    """An expected failure: message and hint.

    Args:
        message: description of the failure, one sentence without a trailing full stop.
        hint: suggested next step; may be empty.
    """

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(VolbenchError):
    """Invalid input of the user: an argument, a file, an option."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """A problem in a file, with its location."""

    message: str  # description of the problem and of the expected value
    path: str = ""  # path of the file as given by the user
    line: int = 0  # 1-based; 0 for the whole file
    column: int = 0  # 1-based; 0 for the whole line
    key: str = ""  # the dotted key, such as ``jobs.test1.iodepth``; empty for the whole file
    hint: str = ""  # suggested correction, such as ``did you mean `iodepth`?``

    def __str__(self) -> str:
        """Return ``path:line:column: key: message (hint)`` without unknown parts.

        The name of an option at the start of the message is omitted where the key ends with it.
        """
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        message = self.message.removeprefix(f"{self.key.rpartition('.')[2]}: ")
        text = ": ".join(part for part in (place, self.key, message) if part)
        return f"{text} ({self.hint})" if self.hint else text


class ProfileError(InputError):
    """A profile has problems; ``problems`` lists all of them, in file order."""

    def __init__(self, problems: Sequence[Problem], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems), hint=hint)


class InventoryError(InputError):
    """A list of hosts or volumes is invalid."""

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        # located problems, in file order; empty when the whole list is affected
        self.problems = tuple(problems)


class RefusedError(VolbenchError):
    """The run would or might destroy data; nothing was done."""

    exit_code = 3


class NoSpaceError(RefusedError):
    """A volume or a folder for results has too little room; nothing was done."""


class TransportError(VolbenchError):
    """A host is unreachable, or the connection failed."""

    exit_code = 4
    ends_host: ClassVar[bool] = False  # whether the host has ended for good, as a deleted pod


class ConnectError(TransportError):
    """The connection could not be established, or was lost.

    Args:
        sent: whether the request may have reached the host; if not, it is safe to repeat.
    """

    transient = True

    def __init__(self, message: str, *, hint: str = "", sent: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


class AuthError(TransportError):
    """Authentication failed: no key is accepted, or sudo requires a password."""


class HostKeyError(TransportError):
    """The host key is unknown, revoked or changed."""


class DeadlineError(TransportError):
    """A host or a remote program did not answer in time."""

    transient = True


class TransferError(TransportError):
    """A file was corrupted or truncated in transfer."""

    transient = True


class FioError(VolbenchError):
    """fio is missing, too old, or failed; the message quotes its output."""

    exit_code = 5


class OutputError(VolbenchError):
    """Output of fio cannot be parsed: path, line and reason."""

    exit_code = 6

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        path: str = "",
        line: int = 0,
        column: int = 0,
        key: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line  # 1-based; 0 for the whole file
        self.column = column  # 1-based; 0 for the whole line
        self.key = key  # dotted key of JSON; empty for the whole file


class ArchiveError(VolbenchError):
    """A campaign folder is missing, damaged, in use, or written by another version."""

    exit_code = 7

    def __init__(self, message: str, *, hint: str = "", path: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path  # of the damaged file; empty for the folder


class ComparisonError(VolbenchError):
    """Results differ in a way that rules out a comparison."""

    exit_code = 8


class CampaignError(VolbenchError):
    """A campaign ended with runs that failed or never ran."""

    exit_code = 9

    def __init__(self, message: str, *, hint: str = "", finished: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.finished = tuple(finished)  # IDs of the finished runs, which are kept


class FindingsError(VolbenchError):
    """Findings cast doubt on numbers; raised in strict mode only."""

    exit_code = 10


class RegressionError(FindingsError):
    """A result is significantly worse than its baseline, beyond the tolerance."""


class UndecidedError(VolbenchError):
    """Neither a regression nor its absence was shown: the noise hides a change of the tolerance."""

    exit_code = 11


class StoppedError(VolbenchError):
    """The user stopped the campaign; finished runs are kept and the rest can be resumed."""

    exit_code = 130


@dataclass
class Problems:
    """Collector for the problems of a file, so that all are reported at once."""

    path: str = ""
    found: list[Problem] = field(default_factory=list)

    def add(
        self, message: str, *, line: int = 0, column: int = 0, key: str = "", hint: str = ""
    ) -> None:
        """Add a problem at a location in the file."""
        self.found.append(Problem(message, self.path, line, column, key, hint))

    def raise_if_any(self) -> None:
        """Raise a ProfileError of all collected problems, if any."""
        if self.found:
            raise ProfileError(self.in_order())

    def in_order(self) -> list[Problem]:
        """Return the problems without duplicates, by line and column."""
        return sorted(dict.fromkeys(self.found), key=lambda p: (p.line, p.column))


def nearest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """Return the known name most similar to a misspelt one, or None.

    Of names that differ in their number alone, such as P80 and P99, it is that of the nearest one.

    Args:
        alike: similarity from which a name counts as misspelt, 0 to 1.
    """
    import difflib  # noqa: PLC0415 - only needed in error messages

    names = {entry.lower(): entry for entry in known}
    stem = name.lower().rstrip("0123456789")
    number = name[len(stem) :]
    numbers = {
        entry: int(entry[len(stem) :])
        for entry in names
        if entry.startswith(stem) and entry[len(stem) :].isdecimal()
    }
    if number and numbers:
        return names[min(numbers, key=lambda entry: abs(numbers[entry] - int(number)))]
    matches = difflib.get_close_matches(name.lower(), names, n=1, cutoff=alike)
    return names[matches[0]] if matches else None


def unwritten(
    path: object, error: Exception | str, *, hint: str, verb: str = "written"
) -> tuple[str, str]:
    """Return message and hint of a file that cannot be written.

    Args:
        error: of the operating system or a library, or its text from another machine.
        hint: what to do, unless its disk is full.
    """
    reason = str(getattr(error, "strerror", None) or error)
    if any(text in reason for text in _FULL):
        hint = "free some space there (df -h, df -i)"
        reason = f"the disk is full ({reason})"
    return f"{path} cannot be {verb}: {reason}", hint


def unread(error: Exception) -> str:
    """Return why a text file could not be read, without its path."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text ({error.reason} at byte {error.start})"
    return str(getattr(error, "strerror", None) or error)


def quoted(value: object) -> str:
    """Return a path or name as a word of a suggested command, quoted for a shell."""
    return shlex.quote(str(value))


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "", *, alike: float = 0.6
) -> str:
    """Return the hint for a misspelt name: the nearest known one, or else `otherwise`."""
    near = nearest(name, known, alike=alike)
    return f"did you mean `{near}`?" if near else otherwise
