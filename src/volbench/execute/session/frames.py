"""Lines of a kept shell, parsed and validated; `serve.sh` and `watch.sh` describe them."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass

from volbench.errors import TransportError

_MAX_LINE_BYTES = 8192  # Twice the longest line of the scripts
_MAX_PREAMBLE_BYTES = 65_536
_ENCODED = frozenset(b"oe")
_KINDS = frozenset(b"oexcrlpfh")


@dataclass(frozen=True)
class Frame:
    """One line of a kept shell."""

    number: int  # of the request or subscription
    kind: str  # one letter
    payload: bytes  # decoded content


class FrameReader:
    """Incremental parser of the output of a kept shell.

    Args:
        mark: line that precedes the first frame; the login shell may print text before it.
    """

    def __init__(self, host: str, mark: str) -> None:
        self.preamble = b""  # output before the mark
        self.is_open = False  # whether the mark has been received
        self._host = host
        self._mark = mark.encode() + b"\n"
        self._rest = b""

    def feed(self, part: bytes) -> Iterator[Frame]:
        """Yield the frames that a chunk completes."""
        if not self.is_open:
            before, found, part = (self.preamble + part).partition(self._mark)
            self.preamble = before[-_MAX_PREAMBLE_BYTES:]
            if not found:
                return
            self.is_open = True
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            raise self._malformed(self._rest)
        for line in lines:
            yield self._parse(line)

    def _parse(self, line: bytes) -> Frame:
        number, _, rest = line.partition(b" ")
        kind, _, payload = rest.partition(b" ")
        is_known = len(kind) == 1 and kind[0] in _KINDS
        if not (is_known and number.isdigit() and len(number) < 10) or len(line) > _MAX_LINE_BYTES:
            raise self._malformed(line)
        if kind[0] in _ENCODED:
            try:
                payload = binascii.a2b_base64(payload, strict_mode=True)
            except binascii.Error as error:
                raise self._malformed(line) from error
        return Frame(int(number), kind.decode(), payload)

    def _malformed(self, line: bytes) -> TransportError:
        return TransportError(
            f"the shell on {self._host} sent an invalid line: {line[:80]!r}",
            hint="do not trust this host, or see what its login shell prints",
        )
