"""Parallel work on hosts: all at once, or a few at a time."""

import importlib.util
import threading

import pytest

from volbench.execute import program_bundle
from volbench.execute.scheduler import on_each, parallel_limit


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (8, 4)])
def test_the_number_of_parallel_workers_is_limited(limit: int, most: int) -> None:
    """The limit holds; below it everybody works at the same time."""
    lock, working, seen = threading.Lock(), 0, []
    together = threading.Barrier(most)

    def work(item: int) -> int:
        nonlocal working
        with lock:
            working += 1
            seen.append(working)
        together.wait(20)
        with lock:
            working -= 1
        return item

    with parallel_limit(limit):
        assert on_each(range(4), work) == [0, 1, 2, 3]
    assert max(seen) == most


def test_the_program_of_the_agent_is_built_once() -> None:
    """Hosts that are connected at the same time share one, in a process that has none yet."""
    spec = importlib.util.find_spec(program_bundle.__name__)
    assert spec is not None
    assert spec.loader is not None
    new = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(new)
    programs = on_each(range(8), lambda _: new.agent_program())
    assert all(program is programs[0] for program in programs)
