"""Bundled storage classes of Azure, AWS and Google Cloud, and their table."""

from __future__ import annotations

from typing import Any

from volbench.errors import InputError, did_you_mean
from volbench.plan.bundled_files import bundled_folder, bundled_names
from volbench.present.tables.table import Table, text_table

FOLDER = "storage-classes"


def read_class(name: str) -> str:
    """Return the manifest of a bundled storage class."""
    names = bundled_names(FOLDER)
    if name not in names:
        raise InputError(
            f"there is no bundled storage class {name!r}",
            hint=did_you_mean(name, names, "see volbench k8s storageclass --list"),
        )
    return (bundled_folder(FOLDER) / f"{name}.yaml").read_text("utf-8")


def classes_table() -> Table[Any]:
    """Return a row for each storage class, with the first comment of its file."""
    titles = {name: read_class(name).partition("\n")[0] for name in sorted(bundled_names(FOLDER))}
    rows = [{"name": name, "title": title.strip("# ")} for name, title in titles.items()]
    return text_table("storage-classes", rows, identity="name", folded=["title"])
