"""The error tree: every failure that volbench foresees, with its exit code and a hint.

::

    VolbenchError                  1
    ├── InputError                 2   what the user gave can't be used
    │   ├── ProfileError               a profile: file, line, column, key; may hold several problems
    │   └── InventoryError             a list of hosts: as a profile, or as a whole
    ├── RefusedError               3   it would destroy data, or might
    ├── TransportError             4   a host can't be reached, or the wire failed
    │   ├── ConnectError *             no connection, or it was lost
    │   ├── AuthError                  authentication failed
    │   ├── HostKeyError               the host is unknown, or not the one it was
    │   ├── DeadlineError *            no answer in time
    │   └── TransferError *            a file did not arrive as it was sent
    ├── FioError                   5   fio is missing, too old, or failed
    ├── OutputError                6   malformed JSON, log or dd text: path, line
    ├── ArchiveError               7   a campaign folder is damaged, locked or of another version
    ├── ComparisonError            8   results that may not be compared
    ├── CampaignError              9   runs failed or were not started; carries what did finish
    ├── FindingsError             10   data-quality warnings with ``--strict``
    │   └── RegressionError            a result is worse than its baseline by more than is tolerated
    └── StoppedError            130   the user stopped it

Only those with a star are tried again. No exception of a library leaves the file that catches it:
it becomes one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class VolbenchError(Exception):
    """A failure with what happened, where, and what to do next.

    Args:
        message: what happened, one sentence without a trailing full stop.
        hint: what the user can do next; may be empty.
        context: named facts for scripts and logs, such as ``{"path": "..."}``.
    """

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str = "", context: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context: dict[str, object] = dict(context or {})


class InputError(VolbenchError):
    """What the user gave can't be used: an argument, a file, an option."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file, with the place it stands.

    Attributes:
        message: what is wrong and what was expected.
        path: the file as the user named it.
        line: 1-based; 0 when the whole file is meant.
        column: 1-based; 0 when the whole line is meant.
        key: the dotted key, such as ``jobs.test1.iodepth``; empty for the whole file.
        hint: what to do next, such as ``did you mean `iodepth`?``.
    """

    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    key: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Return ``path:line:column: key: message (hint)``, leaving out what is unknown.

        The name of an option at the start of the message is left out where the key ends with it.
        """
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        message = self.message.removeprefix(f"{self.key.rpartition('.')[2]}: ")
        text = ": ".join(part for part in (place, self.key, message) if part)
        return f"{text} ({self.hint})" if self.hint else text


class ProfileError(InputError):
    """A profile has problems; all that were found stand in ``problems``, in file order."""

    def __init__(self, problems: Sequence[Problem], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems), hint=hint)


class InventoryError(InputError):
    """A list of hosts or volumes can't be used.

    Attributes:
        problems: each with its place, in file order; empty when the whole list is meant.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        context: Mapping[str, object] | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message, hint=hint, context=context)
        self.problems = tuple(problems)


class RefusedError(VolbenchError):
    """The run would destroy data, or might: nothing was done."""

    exit_code = 3


class TransportError(VolbenchError):
    """A host can't be reached, or the connection failed."""

    exit_code = 4


class ConnectError(TransportError):
    """No connection could be made, or it was lost."""

    transient = True


class AuthError(TransportError):
    """Authentication failed: no key fits, or sudo asks for a password."""


class HostKeyError(TransportError):
    """The host's key is unknown, revoked, or not the one it had before."""


class DeadlineError(TransportError):
    """A host or a program there did not answer in time."""

    transient = True


class TransferError(TransportError):
    """A file did not arrive as it was sent."""

    transient = True


class FioError(VolbenchError):
    """fio or dd is missing, too old, or failed; its own words are quoted."""

    exit_code = 5


class OutputError(VolbenchError):
    """Output of fio or dd can't be read: path, line and reason."""

    exit_code = 6


class ArchiveError(VolbenchError):
    """A campaign folder is missing, damaged, in use, or written by another version."""

    exit_code = 7


class ComparisonError(VolbenchError):
    """Results differ in something that forbids comparing them."""

    exit_code = 8


class CampaignError(VolbenchError):
    """A campaign ended with runs that failed or never ran.

    Attributes:
        finished: ids of the runs that did complete and are kept.
    """

    exit_code = 9

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        context: Mapping[str, object] | None = None,
        finished: Sequence[str] = (),
    ) -> None:
        super().__init__(message, hint=hint, context=context)
        self.finished = tuple(finished)


class FindingsError(VolbenchError):
    """Findings put numbers in doubt; raised only where strictness was asked for."""

    exit_code = 10


class RegressionError(FindingsError):
    """A result is shown to be worse than its baseline by more than is tolerated."""


class StoppedError(VolbenchError):
    """The user stopped the campaign; finished runs are kept and the rest can be resumed."""

    exit_code = 130


@dataclass
class Problems:
    """A list that collects problems of one file, so that all are reported at once."""

    path: str = ""
    found: list[Problem] = field(default_factory=list)

    def add(
        self, message: str, *, line: int = 0, column: int = 0, key: str = "", hint: str = ""
    ) -> None:
        """Note one problem at a place in the file."""
        self.found.append(Problem(message, self.path, line, column, key, hint))

    def raise_if_any(self) -> None:
        """Raise what was found.

        Raises:
            ProfileError: if at least one problem was noted; each once, by line and column.
        """
        if self.found:
            raise ProfileError(self.in_order())

    def in_order(self) -> list[Problem]:
        """Return what was found, each once, by line and column."""
        return sorted(dict.fromkeys(self.found), key=lambda p: (p.line, p.column))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is nearest to, or None when none is near."""
    import difflib  # noqa: PLC0415 - only needed once something is wrong

    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the hint for a misspelt name: the nearest known one, or another hint without one."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else otherwise
