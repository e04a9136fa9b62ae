"""Text of a result in UTF-8 or UTF-16."""

from __future__ import annotations

import codecs

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(content: bytes) -> str:
    """Decode text in UTF-8, or in UTF-16 with a byte order mark (PowerShell)."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, errors="replace")


def is_binary(content: bytes) -> bool:
    """Return whether the content is binary, such as an image."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in content[:65536]
