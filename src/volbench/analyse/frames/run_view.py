"""View of one run: its plan, its rows of every frame, and the facts of its host and volume."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import plain_rows
from volbench.analyse.frames.workload_spec import WorkloadSpec, workloads_of
from volbench.analyse.time.cold_volume import ColdProbe
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.columns import DAMAGED
from volbench.model.results.provenance import HostFacts, VolumeFacts

_Args = ParamSpec("_Args")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class RunView:
    """One run that has ended, with its rows of the frames that were read from raw files."""

    campaign: Campaign  # the whole plan
    run: Run  # the run
    summary: pd.DataFrame  # its rows of the summary frame, as are the following; they may be empty
    series: pd.DataFrame  # interval by interval, as fio saw it
    device: pd.DataFrame  # interval by interval, as the host's kernel saw it
    percentiles: pd.DataFrame  # of latency
    # the volume as it was right before the run; None if it was not recorded
    volume: VolumeFacts | None = None
    host: HostFacts | None = None  # the machine; None if it was not recorded
    # result of the cold-volume probe before the first run; None without one
    cold: ColdProbe | None = None
    _answers: dict[Hashable, object] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def answer(self, key: Hashable, work_out: Callable[[], object]) -> object:
        """Return a cached value, computed on first use."""
        if key not in self._answers:
            self._answers[key] = work_out()
        return self._answers[key]

    @cached_property
    def results(self) -> Sequence[Mapping[str, object]]:
        """The rows of the summary as mappings; made once, because every rule reads them."""
        kept = self.answer("results", lambda: plain_rows(self.summary))
        return cast("Sequence[Mapping[str, object]]", kept)

    @cached_property
    def workloads(self) -> tuple[WorkloadSpec, ...]:
        """The planned load of each section, in the order of the job file."""
        return workloads_of(self.run)

    @cached_property
    def is_buffered(self) -> bool:
        """Whether any section goes through the page cache."""
        return any(workload.is_buffered for workload in self.workloads)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the block layer of the host counts the I/O of every section."""
        return all(workload.is_counted for workload in self.workloads)

    @cached_property
    def writes(self) -> bool:
        """Whether any section writes."""
        return any(workload.writes for workload in self.workloads)

    @property
    def size_bytes(self) -> float:
        """Size of the volume; NaN where it is unknown."""
        pin = self.run.volume.pin
        return math.nan if pin is None else float(pin.size_bytes)

    @property
    def disks(self) -> set[str]:
        """Kernel names of the volume's device and of its backing disks; none if not known."""
        if self.volume is None:
            return set()
        return {name for name in (self.volume.device, *self.volume.backing) if name}

    @cached_property
    def is_finished(self) -> bool:
        """Whether the run finished, so that its numbers count."""
        return any(row["status"] == "finished" for row in self.results)

    @property
    def is_damaged(self) -> bool:
        """Return whether the run finished and its result can no longer be read."""
        return any(row["status"] == DAMAGED for row in self.results)


def once(
    function: Callable[Concatenate[RunView, _Args], _Answer],
) -> Callable[Concatenate[RunView, _Args], _Answer]:
    """Cache the results of a function of a view, which many rules share."""

    @wraps(function)
    def kept(view: RunView, /, *args: _Args.args, **kwargs: _Args.kwargs) -> _Answer:
        key = (function, args, tuple(sorted(kwargs.items())))
        return cast("_Answer", view.answer(key, lambda: function(view, *args, **kwargs)))

    return kept


def run_views(
    campaign: Campaign,
    frames: Mapping[str, pd.DataFrame],
    *,
    volumes: Mapping[str, VolumeFacts],
    hosts: Mapping[str, HostFacts],
    colds: Mapping[str, ColdProbe] | None = None,
) -> Iterator[RunView]:
    """Yield a view of each run that has a row in the summary, in the order of the plan."""
    parts = {name: _by_run(frames[name]) for name in ("summary", "series", "device", "percentiles")}
    nothing = {name: frames[name].iloc[:0] for name in parts}
    results: dict[str, list[Mapping[str, object]]] = {}
    for row in plain_rows(frames["summary"]):
        results.setdefault(str(row["run"]), []).append(row)
    for run in campaign.runs:
        if run.id not in parts["summary"]:
            continue
        rows = {name: part.get(run.id, nothing[name]) for name, part in parts.items()}
        view = RunView(
            campaign=campaign,
            run=run,
            **rows,
            volume=volumes.get(run.id),
            host=hosts.get(run.host),
            cold=(colds or {}).get(run.volume.role),
        )
        view.answer("results", partial(results.get, run.id))
        yield view


def _shared_texts(column: pd.Series[str]) -> pd.Series[str]:
    """Return the texts of a column as Python objects, each once; NaN for missing ones."""
    codes, texts = pd.factorize(column)
    shared = np.array([*texts, math.nan], dtype=object)  # the code of a missing one is -1
    return pd.Series(shared[codes], index=column.index, dtype=object)  # not Arrow's texts again


def _by_run(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return run to its rows, with an index from 0.

    Texts become Python objects, which are compared many times faster than Arrow's in short frames;
    equal ones are one object, because a campaign has millions of cells and few texts. So do the
    names of columns. The copy joins columns of one type, so that a part is a few slices instead of
    one for each column.
    """
    texts = list(map(str, frame.select_dtypes("string")))
    plain = frame.assign(**{name: _shared_texts(frame[name]) for name in texts}).copy()
    plain.columns = plain.columns.astype(object)
    codes, runs = pd.factorize(plain["run"])
    order = np.argsort(codes, kind="stable")
    ordered = plain if (order[:-1] < order[1:]).all() else plain.iloc[order]
    edges = np.searchsorted(codes[order], np.arange(len(runs) + 1))
    parts = {
        str(run): ordered.iloc[first:last]
        for run, (first, last) in zip(runs, pairwise(edges), strict=True)
    }
    for part in parts.values():
        part.index = pd.RangeIndex(len(part))  # unlike reset_index() this copies nothing
    return parts
