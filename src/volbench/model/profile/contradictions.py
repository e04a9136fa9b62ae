"""Options of one section in, what can't work together in them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_SECTOR_BYTES = 512


def contradictions(options: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield option, message and hint for options that can't work together.

    fio's ``--parse-only`` accepts all of these and fails when it runs (3.33).

    Args:
        options: canonical.
    """
    blocks = [int(part) for part in options.get("bs", "4096").split(",") if part.isdecimal()]
    size = options.get("size", "")
    if blocks and size.isdecimal() and 0 < int(size) < max(blocks):
        name = "bs" if "bs" in options else "size"
        yield name, f"bs {max(blocks)} is larger than size {size}", "make size larger"
    if options.get("direct") == "1" and any(block % _SECTOR_BYTES for block in blocks):
        yield "bs", "direct=1 needs a bs that is a multiple of 512", "use 4k, or direct: 0"
    if "rate" in options and "rate_iops" in options:
        yield "rate_iops", "rate and rate_iops exclude each other", "keep one"
    if int(options.get("iodepth_low", "0")) > int(options.get("iodepth", "1")):
        yield "iodepth_low", "iodepth_low is above iodepth", "make it smaller"
