"""Damaged variants of a stored file, for tests of everything that reads campaign folders.

`damaged` yields each variant with a name that says what was done, so that a failure can be
repeated: the same content and seed give the same variants.
"""

import json
import re
from collections.abc import Iterator
from random import Random

DEEP = b"[" * 200_000
"""JSON that is nested more deeply than any parser follows."""
WRONG_JSON = (
    "1e308",
    "1e400",
    "-1e308",
    "-1",
    "-0.5",
    str(2**63),
    str(2**64 - 1),
    str(10**40),
    "9" * 5000,
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    '""',
    '"\\ud800"',
    '"\\u0000"',
    '"../../outside"',
    "[]",
    "{}",
    "[" * 2000 + "]" * 2000,
)
"""JSON of values of a wrong type, or out of bounds."""
WRONG_NUMBERS = ("nan", "inf", "-1", "1e308", "1e400", "9" * 18, "9" * 30, "9" * 5000, "x", "")
"""What may stand where a number is expected in text."""
_MARK = "\ue000"
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


def damaged(content: bytes, *, seed: int, variants: int) -> Iterator[tuple[str, bytes]]:
    """Yield damaged variants of a file: bytes of any file, and values of JSON.

    Args:
        content: of the undamaged file.
        seed: of the random choices.
        variants: number of random variants of each kind, beside the fixed ones.
    """
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    yield "empty", b""
    yield "NUL", b"\0" * max(1, len(content))
    yield "deep", DEEP
    yield "no UTF-8", b"\xff\xfe\xfd" + content
    yield "twice", content * 2
    for _ in range(variants if content else 0):
        place = random.randrange(len(content))
        yield f"cut at {place}", content[:place]
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.randrange(8)
        yield f"flipped at {place}", bytes(flipped)
    numbers = list(_NUMBER.finditer(content))
    for _ in range(variants if numbers else 0):
        match, wrong = random.choice(numbers), random.choice(WRONG_NUMBERS)
        text = content[: match.start()] + wrong.encode() + content[match.end() :]
        yield f"{wrong[:20]} at {match.start()}", text
    yield from damaged_json(content, random, variants=variants)


def damaged_json(content: bytes, random: Random, *, variants: int) -> Iterator[tuple[str, bytes]]:
    """Yield variants of JSON, or of lines of JSON, with one value replaced or removed."""
    try:
        lines = [json.loads(line) for line in _documents(content)]
    except ValueError:
        return
    places = [(n, place) for n, line in enumerate(lines) for place in _places(line)]
    for _ in range(variants if places else 0):
        number, place = random.choice(places)
        wrong = random.choice(WRONG_JSON)
        changed = [
            _replaced(line, place, wrong) if n == number else json.dumps(line)
            for n, line in enumerate(lines)
        ]
        where = ".".join(map(str, place))
        yield f"line {number + 1} {where} = {wrong[:20]}", "\n".join(changed).encode() + b"\n"


def _documents(content: bytes) -> list[bytes]:
    lines = content.splitlines()
    return lines if lines and all(line.startswith(b"{") for line in lines[:2]) else [content]


def _places(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    children = value.items() if isinstance(value, dict) else ()
    for key, child in enumerate(value) if isinstance(value, list) else children:
        yield (*above, key)
        yield from _places(child, (*above, key))


def _replaced(value: object, place: tuple[str | int, ...], wrong: str) -> str:
    fresh = json.loads(json.dumps(value))
    inner = fresh
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = _MARK
    return json.dumps(fresh, ensure_ascii=False).replace(f'"{_MARK}"', wrong)
