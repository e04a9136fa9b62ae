"""Runs of an opened campaign, each with its rows and facts, for the rules that judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pandas as pd

from volbench.analyse.frames.run_view import RunView, run_views
from volbench.analyse.time.cold_volume import ColdProbe
from volbench.engine.conditioning.cold_probe import read_probe
from volbench.errors import OutputError
from volbench.ingest.run_files import read_facts
from volbench.model.campaign.planned_run import Campaign
from volbench.model.results.provenance import VolumeFacts
from volbench.store.archive import Archive
from volbench.store.layout import Layout


def opened_runs(
    layout: Layout, archive: Archive, frame: Callable[[str], pd.DataFrame]
) -> Iterator[RunView]:
    """Return the runs of a campaign side by side.

    Args:
        layout: the campaign folder.
        archive: its plan, hosts and volumes.
        frame: returns a frame by name.
    """
    facts = {run.id: _facts(layout, run.id) for run in archive.campaign.runs}
    return run_views(
        archive.campaign,
        {name: frame(name) for name in ("summary", "series", "device", "percentiles")},
        volumes={run: found for run, found in facts.items() if found is not None},
        hosts={host.host: host for host in archive.provenance.hosts},
        colds=_colds(layout, archive.campaign),
    )


def _facts(layout: Layout, run_id: str) -> VolumeFacts | None:
    # Where they are damaged, the summary says so.
    with suppress(OutputError):
        return read_facts(layout.run(run_id))
    return None


def _colds(layout: Layout, campaign: Campaign) -> Mapping[str, ColdProbe]:
    """Return role to the result of its volume's cold probe, where there was one."""
    found: dict[str, ColdProbe] = {}
    for role in campaign.cold_probe_roles:
        # `volbench verify` names a damaged one; the runs do not depend on it.
        with suppress(OutputError):
            if (probed := read_probe(layout.probe(role))) and probed.cold:
                found[role] = probed.cold
    return found
