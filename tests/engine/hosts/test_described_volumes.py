"""Descriptions of volumes are validated where they arrive."""

import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from tests.engine.machines import Server
from volbench.engine.hosts.described_volumes import describe_files, identities_of, look_at
from volbench.errors import TransportError
from volbench.execute.agent.volumes import (
    DescribedDevice,
    DescribedHost,
    DescribedVolume,
    VolumeQuestion,
    describe_volumes,
)
from volbench.execute.protocol import Executor
from volbench.execute.typed_operations import checked_answer

QUESTION = VolumeQuestion("/dev/sda1", details=("content", "edges", "use"))


Answer = list[Any]  # as it arrives


def _at(fields: tuple[str, ...], name: str) -> int:
    return fields.index(name)


def _device(answer: Answer) -> Answer:
    volume: Answer = answer[_at(DescribedHost._fields, "volumes")][0]
    device: Answer = volume[_at(DescribedVolume._fields, "device")]
    return device


def _with_text_for_number(answer: Answer) -> None:
    _device(answer)[_at(DescribedDevice._fields, "size_bytes")] = "large"


def _with_negative_size(answer: Answer) -> None:
    _device(answer)[_at(DescribedDevice._fields, "pin")][3] = -1


def _without_use(answer: Answer) -> None:
    _device(answer)[_at(DescribedDevice._fields, "use")].pop()


def _with_more(answer: Answer) -> None:
    answer[_at(DescribedHost._fields, "volumes")][0].append(True)


@pytest.mark.parametrize(
    "damage", [_with_text_for_number, _with_negative_size, _without_use, _with_more]
)
def test_a_malformed_description_is_refused(damage: Callable[[Answer], None]) -> None:
    """The guard never judges what it did not ask for; the message names the host."""
    answer = json.loads(json.dumps(Server().machine.ask(describe_volumes, [QUESTION])))
    described = checked_answer(describe_volumes, answer, host="fake")
    assert described.volumes[0].is_device
    damage(answer)
    with pytest.raises(TransportError, match="fake answers describe_volumes with"):
        checked_answer(describe_volumes, answer, host="fake")


@pytest.mark.parametrize(
    ("answer", "ask"),
    [
        (DescribedHost(0), lambda machine: look_at(machine, [QUESTION])),
        ((), lambda machine: identities_of(machine, ["/a", "/b"])),
        ((), lambda machine: describe_files(machine, ["/a", "/b"])),
    ],
)
def test_answers_to_some_questions_only_are_refused(
    answer: object, ask: Callable[[Executor], object]
) -> None:
    """Each volume and file has its description."""
    machine = Server().machine
    with (
        mock.patch.object(machine, "ask", return_value=answer),
        pytest.raises(TransportError, match="fake does not answer all questions"),
    ):
        ask(machine)


def test_questions_about_one_volume_are_joined() -> None:
    """Each volume is described once, with all that was asked."""
    machine = Server().machine
    questions = [VolumeQuestion("/data", files=(name,)) for name in ("/data/x", "/y")]
    state = look_at(machine, questions, space=["/data"])
    assert list(state.volumes) == ["/data"]
    assert set(state.files) == {"/data/x", "/y"}
    assert state.free_bytes == {"/data": machine.free}
