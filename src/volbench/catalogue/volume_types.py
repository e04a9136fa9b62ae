"""Catalogue of volume types: bundled and user-defined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import MappingProxyType

from volbench.catalogue.volume_type import VolumeType, evaluate
from volbench.errors import InputError, nearest
from volbench.model.document.yaml_text import read_document
from volbench.model.profile.profile_settings import Limits, VolumeOfType
from volbench.plan.bundled_files import bundled_folder, read_text

FOLDER = "volume-types"  # Name of the folders with volume-type files

_SUFFIXES = (".yaml", ".yml")
_NONE: Mapping[str, VolumeType] = MappingProxyType({})
_ALSO: ContextVar[Mapping[str, VolumeType]] = ContextVar("_ALSO", default=_NONE)


def catalogue(files: Sequence[Path] = ()) -> dict[str, VolumeType]:
    """Return all volume types by name.

    Bundled types come first, then those of `own_folders`, of `also_types` and of `files`; later
    types replace earlier ones of the same name.
    """
    types = dict(bundled_types())
    for folder in own_folders():
        for path in _yaml_files(folder):
            types |= read_types(path)
    types |= _ALSO.get()
    for path in files:
        types |= read_types(path)
    return types


@contextmanager
def also_types(files: Sequence[Path]) -> Iterator[None]:
    """Add the types of files to every `catalogue` inside the block.

    Limits in profiles, inventories and overrides may refer to these types.
    """
    added = dict(_ALSO.get())
    for path in files:
        added |= read_types(path)
    token = _ALSO.set(added)
    try:
        yield
    finally:
        _ALSO.reset(token)


def own_folders() -> tuple[Path, ...]:
    """Return the user's folders of volume types: in the configuration, then the current folder."""
    configured = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return (Path(configured).expanduser() / "volbench" / FOLDER, Path(FOLDER))


def read_types(path: Path) -> dict[str, VolumeType]:
    """Return the types in a file."""
    return parse_types(read_text(path, what="file of volume types"), path=str(path))


def parse_types(text: str, *, path: str) -> dict[str, VolumeType]:
    """Return the types defined in a text, by name such as ``aws/gp2``, in file order."""
    from volbench.catalogue.volume_type_file import TypesFile

    what, needs = "a file of volume types", "a provider and types"
    return read_document(text, TypesFile, path=path, what=what, needs=needs).volume_types()


def find_type(name: str, types: Mapping[str, VolumeType]) -> VolumeType:
    """Return a type by name."""
    if name in types:
        return types[name]
    by_case = {known.lower(): known for known in types}
    near = by_case.get(name.lower()) or nearest(name, list(types))
    raise InputError(
        f"there is no volume type {name!r}",
        hint=f"did you mean `{near}`?" if near else "see: volbench volume-types list",
    )


def limits_of(
    name: str,
    *,
    size_bytes: int | None = None,
    iops: float | None = None,
    bandwidth_bytes_per_s: float | None = None,
    writes: bool | None = None,
    types: Mapping[str, VolumeType] | None = None,
) -> Limits:
    """Return the limits of a volume of a type.

    Args:
        name: name of the type, such as ``azure/P15``.
        size_bytes: size of the volume; optional where no limit depends on it.
        iops: provisioned IOPS; None for the included amount.
        bandwidth_bytes_per_s: provisioned bandwidth; None for the included amount.
        writes: only writes (True), only reads (False), or both (None: the lower of the two).
        types: types to search; None for `catalogue`.
    """
    volume = VolumeOfType(
        type=name, size_bytes=size_bytes, iops=iops, bandwidth_bytes_per_s=bandwidth_bytes_per_s
    )
    kind = find_type(name, catalogue() if types is None else types)
    return evaluate(kind, volume, writes=writes)


def declared_limits(volume: VolumeOfType) -> Limits:
    """Return the limits of a declared volume.

    The numbers are missing as long as they depend on an unknown size, or on whether a run reads or
    writes; then the limits hold the volume.
    """
    kind = find_type(volume.type, catalogue())
    if not kind.needs_size or volume.size_bytes is not None:
        limits = evaluate(kind, volume)
        if kind.is_one_for_all:
            return limits
    return Limits(name=kind.name, wanted=volume)


def known_limits(volume: VolumeOfType, *, writes: bool | None) -> Limits | None:
    """Return the limits of a volume as one run uses it; None if its size is needed and unknown."""
    kind = find_type(volume.type, catalogue())
    if kind.needs_size and volume.size_bytes is None:
        return None
    return evaluate(kind, volume, writes=writes)


@cache
def bundled_types() -> Mapping[str, VolumeType]:
    """Return the bundled types by name."""
    types: dict[str, VolumeType] = {}
    for path in _yaml_files(bundled_folder(FOLDER)):
        types |= parse_types(path.read_text(encoding="utf-8"), path=path.name)
    return types


def _yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of a folder, sorted by name; none if it does not exist."""
    entries: Iterable[Path] = folder.iterdir() if folder.is_dir() else ()
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.endswith(_SUFFIXES) and entry.is_file():
            yield entry
