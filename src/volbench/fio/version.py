"""Parser of fio's version."""

from __future__ import annotations

import re

from volbench.errors import OutputError

_VERSION = re.compile(r"\s*fio-(\d{1,9})\.(\d{1,9})", re.ASCII)


def parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor version of ``fio-3.33`` or ``fio-3.36-42-gabc-dirty``."""
    match = _VERSION.match(text)
    if match is None:
        raise OutputError(
            f"{text[:80]!r} is not a version of fio",
            hint="`fio --version` prints a line such as fio-3.33",
        )
    return int(match[1]), int(match[2])
