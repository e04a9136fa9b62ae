"""Conflicting options of a section, which fio detects only at runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from volbench.model.profile.option_policy import MOST_FILES

_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Conflict:
    """Conflicting settings of a job."""

    message: str  # description of the conflict
    hint: str  # suggested correction
    key: str = ""  # key of the job's setting to change; empty for an option
    option: str = ""  # canonical name of the option to change
    section: str = ""  # section of that option; empty for the usual single one


def fio_conflicts(options: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield conflicts with which fio fails at runtime; ``--parse-only`` accepts them (3.33)."""
    blocks = [int(part) for part in options.get("bs", "4096").split(",") if part.isdecimal()]
    size = options.get("size", "")
    if blocks and size.isdecimal() and 0 < int(size) < max(blocks):
        name = "bs" if "bs" in options else "size"
        message = f"bs {max(blocks)} is larger than size {size}"
        yield Conflict(message, "increase size", option=name)
    if options.get("direct") == "1" and any(block % _SECTOR_BYTES for block in blocks):
        message = "direct=1 needs a bs that is a multiple of 512"
        yield Conflict(message, "use 4k, or direct: 0", option="bs")
    if "rate" in options and "rate_iops" in options:
        yield Conflict("rate and rate_iops exclude each other", "keep one", option="rate_iops")
    jobs, files = int(options.get("numjobs", "1")), int(options.get("nrfiles", "1"))
    if jobs * files > MOST_FILES:
        message = f"{jobs} jobs of {files} files are more than {MOST_FILES} files"
        yield Conflict(message, "decrease nrfiles or numjobs", option="nrfiles")
    if int(options.get("iodepth_low", "0")) > int(options.get("iodepth", "1")):
        yield Conflict("iodepth_low is above iodepth", "decrease it", option="iodepth_low")


def unintended(options: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield combinations that fio accepts but that are almost certainly unintended."""
    if options.get("time_based", "0") == "1" and options.get("runtime", "0s") == "0s":
        message = "time_based without runtime runs size once"
        yield Conflict(message, "add runtime: 60s", option="time_based")
    if options.get("direct") == "1" and options.get("buffered") == "1":
        yield Conflict("direct and buffered exclude each other", "keep one", option="buffered")
    mix = [int(options[name]) for name in ("rwmixread", "rwmixwrite") if name in options]
    if len(mix) == 2 and sum(mix) != 100:
        message = f"rwmixread and rwmixwrite add up to {sum(mix)}"
        yield Conflict(message, "keep one", option="rwmixwrite")


def dd_conflicts(options: Mapping[str, str | None]) -> Iterator[Conflict]:
    """Yield conflicting options of a dd job."""
    size, block = options.get("size"), options.get("bs") or "512"
    if size is None:
        yield Conflict("a dd job needs a size", "write it like size: 64m", option="size")
    elif int(size) % int(block):
        message = f"size {size} is not a multiple of bs {block}"
        yield Conflict(message, "use whole blocks", option="size")
    flags = f"{options.get('oflag') or ''},{options.get('iflag') or ''}".split(",")
    if "direct" in flags and int(block) % _SECTOR_BYTES:
        message = "direct needs a bs that is a multiple of 512"
        yield Conflict(message, "use 4k, or remove direct", option="bs")
    if options.get("rw") == "read" and "if" in options:
        yield Conflict("a reading dd takes the volume as its input", "remove if", option="if")
