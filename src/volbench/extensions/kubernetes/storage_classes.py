"""Bundled storage classes of Azure, AWS and Google Cloud, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from volbench.errors import InputError, Problems, did_you_mean
from volbench.model.document.located_errors import plain
from volbench.model.document.yaml_text import parse_document
from volbench.plan.bundled_files import bundled_folder, bundled_names
from volbench.present.tables.table import IDENTITY, Column, Table

FOLDER = "storage-classes"


@dataclass(frozen=True)
class StorageClass:
    """A bundled storage class."""

    name: str  # of the object, and of its file
    title: str  # first comment of the file
    provisioner: str  # CSI driver
    parameters: dict[str, str]  # of the driver


CLASS_COLUMNS: tuple[Column[StorageClass], ...] = (
    Column("name", lambda each: each.name, priority=IDENTITY),
    Column("title", lambda each: each.title, priority=2, is_folded=True),
    Column("provisioner", lambda each: each.provisioner, priority=4),
    Column(
        "parameters",
        lambda each: ", ".join(f"{key}: {value}" for key, value in each.parameters.items()),
        priority=3,
        is_folded=True,
    ),
)


def storage_classes() -> list[StorageClass]:
    """Return the bundled storage classes, sorted by provisioner and name."""
    classes = [_parsed(name, read_class(name)) for name in bundled_names(FOLDER)]
    return sorted(classes, key=lambda each: (each.provisioner, each.name))


def read_class(name: str) -> str:
    """Return the manifest of a bundled storage class."""
    names = bundled_names(FOLDER)
    if name not in names:
        raise InputError(
            f"there is no bundled storage class {name!r}",
            hint=did_you_mean(name, names, "see volbench k8s storageclass --list"),
        )
    return (bundled_folder(FOLDER) / f"{name}.yaml").read_text("utf-8")


def _parsed(name: str, text: str) -> StorageClass:
    problems = Problems(name)
    node = parse_document(text, problems, what="a storage class", needs="a provisioner")
    problems.raise_if_any()
    content: Any = plain(node) if node else {}
    parameters = {key: str(value) for key, value in content.get("parameters", {}).items()}
    title = text.partition("\n")[0].removeprefix("#").strip()
    return StorageClass(name, title, content["provisioner"], parameters)


def classes_table(classes: Sequence[StorageClass]) -> Table[StorageClass]:
    """Return a row for each storage class."""
    return Table("storage-classes", CLASS_COLUMNS, classes, record=asdict)
