"""Lines of a kept shell: whatever a host sends is bounded and validated."""

from __future__ import annotations

import pytest

from volbench.errors import TransportError
from volbench.execute.session.frames import Frame, FrameReader
from volbench.execute.session.program_state import LOST_STATUS, ProgramState


def opened() -> FrameReader:
    """Return a reader past the greeting of the login shell."""
    reader = FrameReader("h", "mark")
    assert list(reader.feed(b"Welcome!\nmark\n")) == []
    return reader


def test_greeting_is_no_message() -> None:
    """What the login shell prints before the mark is kept for messages, up to a limit."""
    reader = FrameReader("h", "mark")
    assert list(reader.feed(b"x" * 200_000 + b"\n1 h\nma")) == []
    assert not reader.is_open
    assert list(reader.feed(b"rk\n7 x 3\n")) == [Frame(7, "x", b"3")]
    assert len(reader.preamble) <= 65_536


def test_messages_may_come_in_pieces() -> None:
    """Bytes of any number of messages may arrive at once, or one by one."""
    stream = b"1 o YWI=\n12 l a  b \n1 x 0\n"
    pieces = [stream[at : at + 1] for at in range(len(stream))]
    expected = [Frame(1, "o", b"ab"), Frame(12, "l", b"a  b "), Frame(1, "x", b"0")]
    for parts in (pieces, [stream]):
        reader = opened()
        assert [frame for part in parts for frame in reader.feed(part)] == expected


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"x x 0\n",
        b"1 z 0\n",
        b"1 xx 0\n",
        b"-1 x 0\n",
        b"1234567890 x 0\n",
        b"1 o not base64!\n",
        b"1 l " + b"x" * 9000 + b"\n",
        b"1 l " + b"x" * 9000,
        b"\n",
    ],
)
def test_nonsense_is_refused(line: bytes) -> None:
    """A host that sends anything else is not listened to any more."""
    with pytest.raises(TransportError, match="h sent an invalid line"):
        list(opened().feed(line))


def test_state_takes_only_what_it_knows() -> None:
    """Numbers of a host are bounded; an unknown reason is quoted, and shortened."""
    state = ProgramState()
    state.take(Frame(1, "f", b"999999999 x"))
    state.take(Frame(1, "f", b"2 12.5"))
    assert state.lines == {2: "12.5"}
    state.take(Frame(1, "x", b"done 99999999999"))
    assert state.status == 1
    state.take(Frame(1, "x", b"lost " + b"y" * 5000))
    assert state.status == LOST_STATUS
    assert len(state.lost) < 200


def test_output_is_counted_in_bytes() -> None:
    """The position to continue from after a broken session counts bytes, not characters."""
    state = ProgramState()
    for frame in (Frame(1, "p", "ä".encode()[:1]), Frame(1, "p", "ä".encode()[1:])):
        state.take(frame)
    state.take(Frame(1, "l", b""))
    assert state.take_output() == "ä\n"
    assert state.offset == 3
