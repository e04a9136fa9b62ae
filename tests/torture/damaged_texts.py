"""Strategies of hypothesis: valid texts of a corpus with a few changes, small enough to shrink."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

SPLICES: tuple[bytes, ...] = (
    *(b"\0", b"\n", b"\r\n", b"\xff", b"\xed\xa0\x80", "\u2028\u202e\ufeff".encode(), b"\\ud800"),
    *(b"nan", b"inf", b"-1", b"1e308", b"1e400", b"18446744073709551615", b"9" * 400, b"0x10"),
    *(b"1_0", b"0777", b"1:30", b"-0.0", b"1e-320", b"''", b'""', b"null", b"~", b"true"),
    *(b"{", b"}", b"[", b"]", b"[" * 600, b"{a: " * 300, b"*a", b"&a ", b"!!python/none ", b"<<: "),
    *(
        b"- ",
        b": ",
        b":\n  ",
        b"# ",
        b"; ",
        b"%",
        b"|\n",
        b"'",
        b'"',
        b"\\",
        b"\t",
        b"$",
        b"${HOME}",
    ),
    *(b"../../x", b"/etc/passwd", b"~/x", b"a" * 5000, b"=", b",", b"-", b"1-", b"[1:99999999]"),
)
"""What is put into texts: values out of bounds, and what means something to one of the parsers."""


@dataclass(frozen=True)
class Change:
    """One change of a text, at a share of its length."""

    at: float  # from 0 to 1
    cut: int  # number of bytes that are removed
    put: bytes  # bytes that are put there
    copied: int  # number of following bytes that are repeated

    def of(self, content: bytes) -> bytes:
        """Return the changed content."""
        place = int(self.at * len(content))
        copy = content[place : place + self.copied]
        return content[:place] + self.put + copy + content[place + self.cut :]


_CHANGES = st.builds(
    Change,
    at=st.floats(0, 1),
    cut=st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 400)),
    put=st.one_of(st.just(b""), st.sampled_from(SPLICES), st.binary(max_size=8)),
    copied=st.one_of(st.just(0), st.integers(0, 60), st.integers(0, 4000)),
)


def damaged_texts(corpus: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return texts of a corpus with up to four changes, cut short or replaced now and then."""

    def changed(content: bytes, changes: list[Change]) -> bytes:
        for change in changes:
            content = change.of(content)
        return content

    return st.one_of(
        st.builds(changed, st.sampled_from(corpus), st.lists(_CHANGES, max_size=4)),
        st.builds(changed, st.sampled_from(corpus), st.lists(_CHANGES, min_size=1, max_size=1)),
        st.text(max_size=60).map(lambda text: text.encode(errors="surrogatepass")),
    )
