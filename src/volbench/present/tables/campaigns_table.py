"""One line a campaign: opened campaigns enter, records for scripts and a table leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rich.table import Table

from volbench.model.campaign.planned_run import Campaign
from volbench.present.formatting import MISSING
from volbench.present.tables.result_tables import text_table
from volbench.present.terminal.outcome import StateNote

_VOLUME_TYPE = "volume_type"
_MOST = 3
"""Names that a cell lists before it counts the others."""


class Opened(Protocol):
    """A campaign folder that was opened."""

    @property
    def path(self) -> Path:
        """The folder."""

    @property
    def campaign(self) -> Campaign:
        """The plan."""

    @property
    def runs(self) -> Mapping[str, StateNote]:
        """Every Run with its state."""


def campaign_records(campaigns: Mapping[str, Opened]) -> list[dict[str, object]]:
    """Return what each campaign is and how far it came, without reading a result.

    Args:
        campaigns: name to campaign.

    Returns:
        Records with ``campaign, profiles, created_utc, hosts, runs`` (state to number),
        ``volume_types, volumes`` and ``path``, the oldest first.
    """
    found = [_record(name, opened) for name, opened in campaigns.items()]
    return sorted(found, key=lambda record: str(record["created_utc"]))


def _record(name: str, opened: Opened) -> dict[str, object]:
    plan = opened.campaign
    labels = [host.labels.get(_VOLUME_TYPE) for host in plan.hosts]
    return {
        "campaign": name,
        "profiles": _each(run.profile for run in plan.runs),
        "created_utc": plan.created_utc,
        "hosts": _each(run.host for run in plan.runs),
        "runs": dict(Counter(note.state.value for note in opened.runs.values())),
        "volume_types": _each(label for label in labels if label),
        "volumes": _each(run.volume.target for run in plan.runs),
        "path": str(opened.path),
    }


def campaigns_table(found: Sequence[Mapping[str, object]]) -> Table:
    """Return records of `campaign_records` as a table."""
    headings = ("campaign", "profile", "when (UTC)", "hosts", "Runs", "volumes", "folder")
    rows = [
        (
            str(record["campaign"]),
            _named(record["profiles"]),
            str(record["created_utc"])[:16].replace("T", " "),
            _named(record["hosts"]),
            _states(record["runs"]),
            _named(record["volume_types"] or record["volumes"]),
            str(record["path"]),
        )
        for record in found
    ]
    return text_table(headings, rows, words=headings)


def _each(names: Iterable[str]) -> list[str]:
    """Return every name once, in the order they come."""
    return list(dict.fromkeys(names))


def _named(names: object) -> str:
    """Return the first names, and how many more there are."""
    told = [str(name) for name in names] if isinstance(names, list) else []
    more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return ", ".join(told[:_MOST]) + more if told else MISSING


def _states(states: object) -> str:
    told = states if isinstance(states, dict) else {}
    return ", ".join(f"{count} {state}" for state, count in told.items()) or "none"
