"""Work on parts in processes: order, progress, errors."""

import os
import signal
from collections.abc import Sequence

import pytest

from volbench.errors import ArchiveError, InputError
from volbench.store.worker_processes import in_processes


def squares(items: Sequence[int]) -> tuple[int, list[int]]:
    """Return the process and the squares of its items."""
    return os.getpid(), [item * item for item in items]


def test_results_are_in_order() -> None:
    """Every item is done once, in another process, and progress ends with all of them."""
    counts: list[int] = []
    found = list(in_processes(squares, range(100), processes=2, done=counts.append))
    assert [square for _, part in found for square in part] == [n * n for n in range(100)]
    assert os.getpid() not in {process for process, _ in found}
    assert counts == sorted(counts)
    assert counts[-1] == 100


@pytest.mark.parametrize(("count", "processes"), [(3, 2), (100, 1), (0, 4)])
def test_small_work_stays_in_the_process(count: int, processes: int) -> None:
    """A process is not worth it for a few items."""
    found = list(in_processes(squares, range(count), processes=processes, done=lambda _: None))
    assert found == [(os.getpid(), [n * n for n in range(count)])]


def test_errors_of_workers_are_raised() -> None:
    """An error of the work has its hint; a process that is killed is an error too."""

    def refuse(items: Sequence[int]) -> None:
        raise InputError(f"bad {items[0]}", hint="mend it")

    def die(_: Sequence[int]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(InputError, match="bad 0") as caught:
        list(in_processes(refuse, range(64), processes=2, done=lambda _: None))
    assert caught.value.hint == "mend it"
    with pytest.raises(ArchiveError, match="was killed"):
        list(in_processes(die, range(64), processes=2, done=lambda _: None))


def test_batches_stay_small_for_any_number_of_items() -> None:
    """Results of a part are held whole, so that a part has a bounded size."""
    sizes = list(in_processes(len, range(4000), processes=2, done=lambda _: None))
    assert sum(sizes) == 4000
    assert max(sizes) <= 64
