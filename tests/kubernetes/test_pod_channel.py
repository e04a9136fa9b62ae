"""Ends of commands in a pod."""

from __future__ import annotations

from threading import Event
from unittest.mock import Mock

import pytest

from volbench.errors import ConnectError, VolbenchError
from volbench.execute.shell.channel import CommandEnd
from volbench.kubernetes.pod_channel import PodStream


@pytest.mark.parametrize(
    ("status", "expected"), [(0, ConnectError), (127, CommandEnd), (137, CommandEnd)]
)
def test_a_kept_shell_that_succeeds_was_cut(status: int, expected: type) -> None:
    """A shell whose input is open does not end by itself: its kubelet was lost."""
    ends: list[CommandEnd | VolbenchError] = []
    ended = Event()

    def on_end(end: CommandEnd | VolbenchError) -> None:
        ends.append(end)
        ended.set()

    streams = Mock(has_ended=True, end=Mock(return_value=CommandEnd(status, b"")))
    PodStream("h", streams, on_end)
    assert ended.wait(10)
    assert [type(end) for end in ends] == [expected]
    streams.close.assert_called()
