"""Descriptions of volumes are validated where they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from tests.engine.machines import Server
from volbench.engine.hosts.described_volumes import (
    VolumeQuestion,
    describe_files,
    identities_of,
    look_at,
)
from volbench.engine.hosts.host_facts import survey_machine
from volbench.errors import TransportError
from volbench.execute.protocol import Executor

QUESTION = VolumeQuestion("/dev/sda1", details=("content", "edges", "use"))


def _without_volume(answer: dict[str, Any]) -> None:
    answer["volumes"] = []


def _with_text_for_number(answer: dict[str, Any]) -> None:
    answer["volumes"][0]["device"]["size_bytes"] = "large"


def _with_negative_size(answer: dict[str, Any]) -> None:
    answer["volumes"][0]["device"]["pin"]["size_bytes"] = -1


def _without_use(answer: dict[str, Any]) -> None:
    del answer["volumes"][0]["device"]["use"]["is_swap"]


def _with_more(answer: dict[str, Any]) -> None:
    answer["volumes"][0]["surprise"] = True


DAMAGES = (
    _without_volume,
    _with_text_for_number,
    _with_negative_size,
    _without_use,
    _with_more,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_malformed_description_is_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    """The guard never judges what it did not ask for; the message names the host."""
    machine = Server().machine
    assert look_at(machine, [QUESTION]).volumes["/dev/sda1"].is_device
    answer = machine.ask(
        "describe_volumes",
        volumes=[
            {
                "target": "/dev/sda1",
                "files": [],
                "allow": [],
                "folder": "",
                "private_folder": "",
                "details": ["content", "edges", "use"],
            }
        ],
    )
    assert isinstance(answer, dict)
    damage(answer)
    with (
        mock.patch.object(machine, "ask", return_value=answer),
        pytest.raises(TransportError, match="fake sent a malformed answer: "),
    ):
        look_at(machine, [QUESTION])


@pytest.mark.parametrize("answer", [None, [], {"kernel": 6}, "text"])
@pytest.mark.parametrize(
    "ask",
    [
        survey_machine,
        lambda machine: identities_of(machine, ["/a", "/b"]),
        lambda machine: describe_files(machine, ["/a", "/b"]),
    ],
)
def test_other_malformed_answers_are_refused(
    answer: object, ask: Callable[[Executor], object]
) -> None:
    """A host that answers with something else is an error of the connection."""
    machine = Server().machine
    with (
        mock.patch.object(machine, "ask", return_value=answer),
        pytest.raises(TransportError, match="fake sent a malformed answer: "),
    ):
        ask(machine)


def test_questions_about_one_volume_are_joined() -> None:
    """Each volume is described once, with all that was asked."""
    machine = Server().machine
    questions = [VolumeQuestion("/data", files=["/data/x"]), VolumeQuestion("/data", files=["/y"])]
    state = look_at(machine, questions, space=["/data"])
    assert list(state.volumes) == ["/data"]
    assert set(state.files) == {"/data/x", "/y"}
    assert state.free_bytes == {"/data": machine.free}
