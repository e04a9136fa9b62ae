"""Programs that the kernel killed at the memory limit of their container."""

from collections.abc import Sequence
from typing import cast

import pytest

from volbench.engine.run.run_once import memory_limit_words
from volbench.execute.agent.files import read_files
from volbench.execute.protocol import Executor

V2, V1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
EVENTS = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"
OF_64_MIB = "OOMKilled: it exceeded the memory limit of 64 MiB of its container. "


class Files:
    """A machine with some files."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def ask(self, operation: object, paths: Sequence[str]) -> list[str | None]:
        """Return the texts of files."""
        assert operation is read_files
        return [self._files.get(path) for path in paths]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({f"{V2}/memory.events": EVENTS, f"{V2}/memory.max": "67108864\n"}, OF_64_MIB),
        (
            {
                f"{V1}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
                f"{V1}/memory.limit_in_bytes": "67108864\n",
            },
            OF_64_MIB,
        ),
        (
            {f"{V2}/memory.events": EVENTS, f"{V2}/memory.max": "max\n"},
            "OOMKilled: it exceeded the memory limit of its container. ",
        ),
        ({f"{V2}/memory.events": EVENTS.replace("oom_kill 1", "oom_kill 0")}, ""),
        ({f"{V2}/memory.events": "\noom_kill\n"}, ""),
        ({}, ""),
    ],
)
def test_a_process_killed_at_a_memory_limit_is_named(files: dict[str, str], words: str) -> None:
    """By the kernel's own counters, in both versions of control groups."""
    assert memory_limit_words(cast("Executor", Files(files))) == words
