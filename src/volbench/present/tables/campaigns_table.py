"""Table of campaigns with their profiles, hosts and progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from volbench.model.campaign.planned_run import Campaign
from volbench.present.formatting import MISSING, Row
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.present.terminal.campaign_text import RunNote

_VOLUME_TYPE = "volume_type"
_NAMES_SHOWN = 3  # Names that a cell lists before it counts the others


def campaign_record(
    name: str, address: str, plan: Campaign, notes: Mapping[str, RunNote]
) -> dict[str, object]:
    """Return the facts and the progress of a campaign, without reading results.

    Returns:
        ``campaign, profiles, created_utc, hosts, runs`` (state to number), ``volume_types,
        volumes`` and ``path``.
    """
    labels = [plan.labels_of(run).get(_VOLUME_TYPE) for run in plan.runs]
    return {
        "campaign": name,
        "profiles": _each(run.profile for run in plan.runs),
        "created_utc": plan.created_utc,
        "hosts": _each(run.host for run in plan.runs),
        "runs": dict(Counter(note.state.value for note in notes.values())),
        "volume_types": _each(label for label in labels if label),
        "volumes": _each(run.volume.target for run in plan.runs),
        "path": address,
    }


_COLUMNS: tuple[Column[Row], ...] = (
    Column("campaign", priority=IDENTITY),
    Column("profiles", lambda record: _named(record["profiles"]), header="profile", priority=3),
    Column(
        "created_utc",
        lambda record: str(record["created_utc"])[:16].replace("T", " "),
        header="created (UTC)",
        priority=4,
    ),
    Column("hosts", lambda record: _named(record["hosts"]), priority=5),
    Column("runs", lambda record: _states(record["runs"]), priority=1),
    Column(
        "volumes",
        lambda record: _named(record["volume_types"] or record["volumes"]),
        priority=6,
        is_folded=True,
    ),
    Column("path", header="folder", priority=2, is_folded=True),
)


def campaigns_table(found: Sequence[Row]) -> Table[Row]:
    """Return records of `campaign_record` as a table, the oldest first."""
    return Table("campaigns", _COLUMNS, sorted(found, key=lambda row: str(row["created_utc"])))


def _each(names: Iterable[str]) -> list[str]:
    """Return the distinct names in their order."""
    return list(dict.fromkeys(names))


def _named(names: object) -> str:
    """Return the first names and the number of the others."""
    listed = [str(name) for name in names] if isinstance(names, list) else []
    more = f" and {len(listed) - _NAMES_SHOWN} more" if len(listed) > _NAMES_SHOWN else ""
    return ", ".join(listed[:_NAMES_SHOWN]) + more if listed else MISSING


def _states(states: object) -> str:
    counts = states if isinstance(states, dict) else {}
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"
