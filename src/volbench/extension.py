"""The seam: what an extension adds to volbench, and the extensions that are installed.

A reference is text, ``package.module:name``; its module is imported when the reference is used. So
an extension can be listed, and the help of all its verbs printed, without importing more of it than
the module that holds its `Extension`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

GROUP = "volbench.extensions"  # of the entry points of other packages

_NONE: Mapping[str, Any] = MappingProxyType({})


class Verb(NamedTuple):
    """A verb of the command line."""

    command: str  # reference to its click command
    help: str  # in the list of verbs
    group: str = "Other"  # heading of the list
    after: str = ""  # verb that it follows below the heading; empty for the end


class ExportFormat(NamedTuple):
    """Format of a file that ``volbench export`` makes of several frames."""

    file_name: str  # in a folder
    # reference to the function that returns the text for a `Dataset` and the name of a frame, None
    # for its own choice of frames
    render: str
    content: str  # for the help page


class InventoryReader(NamedTuple):
    """Format of inventories: references to what recognises it, and to what reads it."""

    # whether a parsed document, None for a text that is not YAML, has the format
    is_of_format: str
    read: str  # fills an `InventoryDraft`, given the path and the document


class LimitSource(NamedTuple):
    """References to functions that know limits of volumes and machines by names.

    Their signatures are those of the functions in `plan.profile.limit_sources`.
    """

    type_names: str = ""
    list_types: str = ""
    types_schema: str = ""
    declared_limits: str = ""
    known_limits: str = ""
    check_machine: str = ""
    within_machine: str = ""
    label_limits: str = ""
    disk_limits: str = ""
    class_limits: str = ""


class Extension(NamedTuple):
    """What one extension adds; every value is a reference, or holds references."""

    name: str
    verbs: Mapping[str, Verb] = _NONE
    # verb of the core to options whose value is an `Addition`; see `cli.additions`
    options: Mapping[str, str] = _NONE
    # kind of a host to a context manager that yields how to connect to such hosts, given the hosts
    # of the campaign and the policy for their keys; see `execute.connect`
    channels: Mapping[str, str] = _NONE
    inventory_readers: Sequence[InventoryReader] = ()
    limit_sources: Sequence[LimitSource] = ()
    chart_kinds: Mapping[str, str] = _NONE  # name to a `present.plots.kinds.Kind`
    export_formats: Mapping[str, ExportFormat] = _NONE
    findings: Sequence[str] = ()  # rules; see `analyse.findings.rule`
    # name to a function: further methods of `api.many_campaigns.Dataset`, given the dataset first
    methods: Mapping[str, str] = _NONE
    # functions that yield further sentences of the answer of a `Dataset`
    sentences: Sequence[str] = ()
    # function that returns trends, or a comparison, with what explains them, given also what was
    # asked: a `Dataset` or folders, and the question
    explain: str = ""
    # function that returns a campaign folder with results of other tools at a path, for reading
    campaign_of: str = ""
    # context managers around the execution of a campaign, given its folder and its hosts; each
    # yields a listener to its events, or None
    listeners: Sequence[str] = ()


def load(reference: str) -> Any:  # noqa: ANN401 - whatever is named
    """Return what ``package.module:name`` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the installed extensions in the order of their names, the bundled ones first."""
    found = []
    for name, reference in _references().items():
        try:
            found.append(load(reference))
        except (ImportError, AttributeError) as error:
            import logging  # noqa: PLC0415 - takes longer than the rest of this module

            logging.getLogger(__name__).warning("extension %s is left out: %s", name, error)
    return tuple(found)


def _references() -> dict[str, str]:
    """Return name to the reference of each extension, whichever of a name comes first."""
    folder = Path(__file__).with_name("extensions")
    bundled = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    references = {name: f"volbench.extensions.{name}:extension" for name in bundled}
    for name, reference in sorted(_entry_points()):
        references.setdefault(name, reference)
    return references


def _entry_points() -> Iterator[tuple[str, str]]:
    """Yield name and reference of the extensions that installed packages name.

    `importlib.metadata.entry_points` parses the metadata of all packages, which takes longer than
    the whole help of volbench: only packages that name the group are parsed.
    """
    for folder in sys.path:
        for path in _metadata_of(folder):
            from importlib.metadata import PathDistribution  # noqa: PLC0415 - imports slowly

            for entry in PathDistribution(path).entry_points.select(group=GROUP):
                yield entry.name, entry.value


def _metadata_of(folder: str) -> Iterator[Path]:
    """Yield the metadata folders of the packages in a folder of `sys.path` that name the group."""
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208 - `Path` takes twice as long
    except OSError:  # sys.path may name what is not there, and archives
        return
    for name in names:
        if name.endswith(".dist-info"):
            try:
                with open(f"{folder or '.'}/{name}/entry_points.txt", "rb") as stream:  # noqa: PTH123 - the same
                    is_named = f"[{GROUP}]".encode() in stream.read()
            except OSError:  # most packages have no entry points
                continue
            if is_named:
                yield Path(folder, name)
