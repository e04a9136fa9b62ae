"""Building blocks of frames: the description of a column, and the columns that identify a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a frame."""

    name: str  # name, including the unit
    dtype: str  # ``string``, ``int`` (nullable), ``float`` or ``bool`` (nullable)
    unit: str  # such as ``s``, ``bytes/s``, ``1/s``; empty for text and flags
    meaning: str  # one sentence


def text(name: str, meaning: str) -> Column:
    """Return a column of texts."""
    return Column(name, "string", "", meaning)


def whole(name: str, unit: str, meaning: str) -> Column:
    """Return a column of whole numbers, of which some may be missing."""
    return Column(name, "int", unit, meaning)


def real(name: str, unit: str, meaning: str) -> Column:
    """Return a column of numbers; NaN is unknown."""
    return Column(name, "float", unit, meaning)


def same(columns: tuple[Column, ...], *names: str) -> tuple[Column, ...]:
    """Return the named columns of a frame, in the order of the names."""
    known = {column.name: column for column in columns}
    return tuple(known[name] for name in names)


# Columns that identify run and section; the first columns of every frame of runs
IDENTITY: tuple[Column, ...] = (
    text("campaign", "Name of the campaign."),
    text("run", "ID of the run, also the name of its folder."),
    text("host", "Host of the run; `local` is the controller itself."),
    text("profile", "Name of the profile."),
    text("job", "Name of the job in the profile."),
    text("group", "Name of fio's job section; equal to `job` for single-section jobs."),
    text("role", "Role of the volume, such as `data`."),
    text("volume", "Target of the volume: device, file, directory or NBD URI."),
    whole("repeat", "", "Repeat, counted from 1."),
    text("phase", "`precondition`, `warmup` or `measured`."),
)
