"""Rates of active runs, as their controller last received them: `volbench status` prints them."""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic

from volbench.model.campaign.event import CampaignEnded, Event, RunEnded, RunProgress
from volbench.store.atomic_files import read_text
from volbench.store.layout import Layout


class LiveRates:
    """Listener that keeps the IOPS of active runs in a file of the campaign folder."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.live_rates
        self._iops: dict[str, float] = {}
        self._wrote_s = 0.0

    def __call__(self, event: Event, /) -> None:
        """Note the rate of a run; a full disk keeps old rates."""
        if isinstance(event, RunProgress):
            self._iops[event.run.id] = event.progress.iops or 0.0
        elif isinstance(event, RunEnded):
            self._iops.pop(event.run.id, None)
        with suppress(OSError):
            if isinstance(event, CampaignEnded):
                self._path.unlink()
            elif monotonic() - self._wrote_s >= 1.0:  # fio reports once a second
                self._wrote_s = monotonic()
                self._path.write_text(json.dumps(self._iops), encoding="utf-8")


def read_rates(layout: Layout) -> dict[str, float]:
    """Return run id to IOPS, 0 before the first report; empty while they are written."""
    with suppress(ValueError, TypeError, AttributeError):
        return {run: float(iops) for run, iops in json.loads(read_text(layout.live_rates)).items()}
    return {}
