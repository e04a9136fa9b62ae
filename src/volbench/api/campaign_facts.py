"""Facts of hosts, volumes and fio of campaigns, by which trends explain a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from volbench.analyse.frames.run_facts import OF_VOLUME
from volbench.analyse.frames.workload_words import value_text
from volbench.model.frames.metadata import FACTS, Source
from volbench.store.archive import Provenance

if TYPE_CHECKING:
    import pandas as pd


def facts_of(
    provenances: Mapping[str, Provenance], summary: pd.DataFrame
) -> dict[str, dict[str, str]]:
    """Return campaign to what is known of its hosts, volumes and fio, by name of the fact."""
    facts = {name: _facts(provenance) for name, provenance in provenances.items()}
    for name, versions in summary.groupby("campaign")["fio_version"]:
        facts[str(name)]["fio_version"] = " and ".join(sorted(versions.dropna().unique()))
    return facts


def _facts(provenance: Provenance) -> dict[str, str]:
    names = [fact.name for fact in FACTS.values() if fact.source is Source.HOST]
    known: dict[str, set[object]] = {
        name: {getattr(host, name) for host in provenance.hosts} - {None} for name in names
    }
    known["host"] = {f"{host.host} {host.machine[:8]}".strip() for host in provenance.hosts}
    known["volume"] = {f"{each.target} {each.serial}".strip() for each in provenance.volumes}
    for name, attribute in OF_VOLUME.items():
        known[name] = {getattr(each, attribute) for each in provenance.volumes} - {None, ""}
    return {
        name: " and ".join(sorted(value_text(name, value) for value in values))
        for name, values in known.items()
        if values
    }
