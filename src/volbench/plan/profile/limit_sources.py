"""Limits of volumes and machines by names, as the limit sources of extensions know them."""

from __future__ import annotations

from collections.abc import Mapping

from volbench.errors import InputError
from volbench.extension import LimitSource, extensions, load
from volbench.model.profile.profile_settings import Limits, VolumeOfType


def type_names() -> list[str]:
    """Return the names of all known volume types, such as ``aws/gp3``."""
    return [name for source in _sources("type_names") for name in load(source.type_names)()]


def list_types(declared: str, table_output: object) -> None:
    """Print the limits of a volume or machine type, of all types where none is named."""
    load(_first("list_types").list_types)(declared, table_output)


def types_schema() -> object:
    """Return the JSON Schema of files of volume types."""
    return load(_first("types_schema").types_schema)()


def declared_limits(volume: VolumeOfType) -> Limits:
    """Return the limits of a volume, as far as they are known before its run."""
    limits: Limits = load(_source_of(volume.type).declared_limits)(volume)
    return limits


def known_limits(volume: VolumeOfType, *, writes: bool | None) -> Limits | None:
    """Return the limits of a volume for a load; None where they need a size that is unknown."""
    limits: Limits | None = load(_source_of(volume.type).known_limits)(volume, writes=writes)
    return limits


def check_machine(name: str) -> None:
    """Refuse the name of a machine type that is unknown."""
    load(_first("check_machine").check_machine)(name)


def within_machine(limits: Limits) -> Limits:
    """Return limits of a volume with the limits of its machine, where they are lower."""
    bound: Limits = load(_first("within_machine").within_machine)(limits)
    return bound


def label_limits(labels: Mapping[str, str], *, size_bytes: int | None) -> Limits | None:
    """Return the limits that labels of a host name; None for no limits."""
    return _answer("label_limits", labels, size_bytes=size_bytes)


def disk_limits(provider: str, machine: str, **disk: object) -> Limits | None:
    """Return the limits of a disk that a metadata service describes; None where none is known.

    Args:
        disk: its ``type``, ``size_gib``, ``iops`` and ``bytes_per_s``; none if not described.
    """
    return _answer("disk_limits", provider, machine, **disk)


def class_limits(
    driver: str, parameters: Mapping[str, str], *, size_bytes: int | None, machine: str
) -> Limits | None:
    """Return the limits of a volume of a CSI driver; None where they are not known.

    Args:
        driver: name of the driver, such as ``disk.csi.azure.com``.
        parameters: of the StorageClass and of the volume.
        size_bytes: capacity of the volume.
        machine: type of the node's machine, as its provider names it; may be empty.
    """
    return _answer("class_limits", driver, parameters, size_bytes=size_bytes, machine=machine)


def _answer(question: str, *given: object, **named: object) -> Limits | None:
    answers = (load(getattr(each, question))(*given, **named) for each in _sources(question))
    return next((limits for limits in answers if limits is not None), None)


def _sources(question: str) -> list[LimitSource]:
    every = (source for extension in extensions() for source in extension.limit_sources)
    return [source for source in every if getattr(source, question)]


def _first(question: str) -> LimitSource:
    if sources := _sources(question):
        return sources[0]
    raise InputError(
        "no installed extension knows volume or machine types",
        hint="declare limits as numbers: --set 'limits={iops: 3000, bandwidth: 125MiB/s}'",
    )


def _source_of(type_name: str) -> LimitSource:
    """Return the source of a volume type; the first one for an unknown type."""
    first = _first("declared_limits")
    others = (source for source in _sources("declared_limits") if source is not first)
    return next((each for each in others if type_name in load(each.type_names)()), first)
