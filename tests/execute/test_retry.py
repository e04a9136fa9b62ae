"""Trying again: only what passes, only so often, and never all at the same time."""

import pytest

from volbench.errors import AuthError, ConnectError, TransportError
from volbench.execute.channels import Patience, retry

QUICK = Patience(tries=4, first_s=0.001, longest_s=0.002)


class _Attempts:
    """Fails with each error in turn, then returns."""

    def __init__(self, *errors: TransportError) -> None:
        self._errors = list(errors)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def _transient(error: TransportError) -> bool:
    return error.transient


def test_temporary_errors_are_retried() -> None:
    """Two failures and a success are a success."""
    attempts = _Attempts(ConnectError("a"), ConnectError("b"))
    assert retry(attempts, may_repeat=_transient, patience=QUICK) == "done"
    assert attempts.count == 3


def test_permanent_errors_are_not_retried() -> None:
    """A refused key is refused once."""
    attempts = _Attempts(ConnectError("a"), AuthError("b"))
    with pytest.raises(AuthError, match="b"):
        retry(attempts, may_repeat=_transient, patience=QUICK)
    assert attempts.count == 2


def test_retries_end_after_the_deadline() -> None:
    """After so many tries, or so late, the last error stands."""
    attempts = _Attempts(*(ConnectError(str(number)) for number in range(9)))
    with pytest.raises(ConnectError, match="3"):
        retry(attempts, may_repeat=_transient, patience=QUICK)
    late = _Attempts(ConnectError("a"), ConnectError("b"))
    with pytest.raises(ConnectError, match="a"):
        retry(late, may_repeat=_transient, patience=Patience(begin_within_s=0.0))
    assert (attempts.count, late.count) == (4, 1)


def test_waits_grow_with_jitter() -> None:
    """Each wait is between half and all of what it may be, which doubles up to a limit."""
    patience = Patience(first_s=1.0, longest_s=4.0)
    for number, most in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 4.0)):
        waits = {patience.wait_s(number) for _ in range(50)}
        assert len(waits) > 40
        assert all(most / 2 <= wait <= most for wait in waits)
