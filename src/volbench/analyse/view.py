"""All that is known of one Run in one place: frames of a campaign in, a RunView a Run out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from volbench.analyse.coldprobe import ColdProbe
from volbench.model.columns import DAMAGED
from volbench.model.provenance import HostFacts, VolumeFacts
from volbench.model.run import Campaign, Run


@dataclass(frozen=True)
class RunView:
    """One Run that has ended, with its rows of the frames that were read from raw files.

    Attributes:
        campaign: the whole plan.
        run: the Run.
        summary: its rows of the summary frame, as are the following; they may be empty.
        series: interval by interval, as fio saw it.
        device: interval by interval, as the host's kernel saw it.
        percentiles: of latency.
        histogram: of latency.
        volume: the volume as it was right before the Run; None when nobody looked.
        host: the machine; None when nobody looked.
        cold: what a probe of the volume told before the first Run; None without one.
    """

    campaign: Campaign
    run: Run
    summary: pd.DataFrame
    series: pd.DataFrame
    device: pd.DataFrame
    percentiles: pd.DataFrame
    histogram: pd.DataFrame
    volume: VolumeFacts | None = None
    host: HostFacts | None = None
    cold: ColdProbe | None = None

    @cached_property
    def told(self) -> Sequence[Mapping[str, object]]:
        """The rows of the summary as mappings; made once, because every rule asks for them."""
        return [{str(name): value for name, value in row.items()} for row in _rows(self.summary)]

    @cached_property
    def is_finished(self) -> bool:
        """Whether the Run finished, so that its numbers count."""
        return any(row["status"] == "finished" for row in self.told)

    @property
    def is_damaged(self) -> bool:
        """Tell whether the Run finished and its result can no longer be read."""
        return any(row["status"] == DAMAGED for row in self.told)


def _rows(frame: pd.DataFrame) -> list[dict[Hashable, object]]:
    """Return rows with None for what is missing."""
    plain = frame.astype(object)
    return plain.where(frame.notna(), None).to_dict("records")


def run_views(
    campaign: Campaign,
    frames: Mapping[str, pd.DataFrame],
    *,
    volumes: Mapping[str, VolumeFacts],
    hosts: Mapping[str, HostFacts],
    colds: Mapping[str, ColdProbe] | None = None,
) -> Iterator[RunView]:
    """Yield a view of each Run that has a row in the summary, in the order of the plan.

    Args:
        campaign: the plan.
        frames: summary, series, device, percentiles and histogram of the campaign.
        volumes: id of a Run to what its volume was.
        hosts: name of a host to what it is.
        colds: role to what a cold-volume probe told.
    """
    parts = {
        name: dict(iter(frames[name].groupby("run", sort=False)))
        for name in ("summary", "series", "device", "percentiles", "histogram")
    }
    for run in campaign.runs:
        if run.id not in parts["summary"]:
            continue
        rows = {
            name: part.get(run.id, frames[name].iloc[:0]).reset_index(drop=True)
            for name, part in parts.items()
        }
        yield RunView(
            campaign=campaign,
            run=run,
            **rows,
            volume=volumes.get(run.id),
            host=hosts.get(run.host),
            cold=(colds or {}).get(run.volume.role),
        )
