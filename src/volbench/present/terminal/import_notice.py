"""Notice that results were imported: when, and from which files."""

from __future__ import annotations

from collections.abc import Iterable

from volbench.model.campaign.planned_run import Campaign, SourceFile
from volbench.present.formatting import instant

NAMED_FILES = 4
"""Files that a sentence names before it counts the rest."""


def came_from(campaign: Campaign) -> str:
    """Return one sentence on an imported campaign, without names of files; "" for any other."""
    if not campaign.is_imported:
        return ""
    results, logs = _files(campaign)
    counts = [
        f"{len(files)} {noun if len(files) == 1 else f'{noun}s'}"
        for files, noun in ((results, "result file"), (logs, "log"))
        if files
    ]
    return (
        f"Imported results: measured outside volbench, imported at"
        f" {instant(campaign.created_utc)} from {' and '.join(counts)}."
    )


def sources(campaign: Campaign) -> str:
    """Return a sentence that names the files; "" for a campaign that volbench ran itself."""
    results, logs = _files(campaign)
    names = results or logs
    if not names:
        return ""
    more = len(names) - NAMED_FILES
    rest = f" and {more} more" if more > 0 else ""
    return f"Files: {', '.join(names[:NAMED_FILES])}{rest}."


def _files(campaign: Campaign) -> tuple[list[str], list[str]]:
    """Return the places of all results and of all logs, each once."""
    results: list[SourceFile] = []
    logs: list[SourceFile] = []
    for run in campaign.runs:
        if run.imported is not None:
            first = 0 if run.imported.read_as else 1
            results += run.imported.files[:first]
            logs += run.imported.files[first:]
    return _places(results), _places(logs)


def _places(files: Iterable[SourceFile]) -> list[str]:
    return list(dict.fromkeys(file.source for file in files))
