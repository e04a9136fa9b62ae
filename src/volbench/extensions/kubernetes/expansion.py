"""Expansion of volumes under load: requested while a job runs, and marked on its axis of time.

It ends when the claim reports the new size, which is looked for every 0.1 s: conditions of a claim
have whole seconds only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

import click

from volbench.errors import CampaignError, InputError, RefusedError, VolbenchError, quoted
from volbench.extensions.kubernetes.cluster import Cluster
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec, is_growing, quantity_bytes
from volbench.extensions.kubernetes.pod_executor import PodExecutor
from volbench.model.campaign.event import Event, RunEnded, RunProgress
from volbench.model.profile.profile_model import Order, Phase
from volbench.plan.expansion.expand import repeats_of
from volbench.plan.expansion.target_arms import on_each_target
from volbench.store.atomic_files import write_atomic

if TYPE_CHECKING:
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.planned_run import Run
    from volbench.store.layout import Layout

_BEFORE, _DURING, _AFTER = "before", "during", "after"
_EXPANDED = "expanded"
# Some intervals of the series precede the request. Noticed by:
# tests/test_expansion.py::test_it_is_requested_once_some_seconds_after_the_first_io
REQUEST_AFTER_S = 3.0
# Some ten requests a second: an API server takes hundreds. Noticed by:
# tests/extensions/kubernetes/test_lifecycle.py::test_classes_take_turns
LOOK_S = 0.1


def check_expansion(cluster: Cluster, spec: ClusterSpec) -> None:
    """Refuse an expansion that is none, or that a storage class does not allow."""
    if spec.expand_to and quantity_bytes(spec.expand_to) <= quantity_bytes(spec.size):
        raise InputError(
            f"--expand {spec.expand_to} is not larger than --size {spec.size}",
            hint="a volume cannot shrink: name a larger size",
        )
    for name in spec.storage_classes if spec.expand_to else ():
        found = cluster.read_if_allowed("StorageClass", name)
        if found and not found.get("allowVolumeExpansion"):
            raise RefusedError(
                f"the storage class {name} does not expand volumes",
                hint="make a copy of the class with allowVolumeExpansion: true, and measure that",
            )


def in_three_parts(request: CampaignRequest) -> CampaignRequest:
    """Return a request whose job runs before, during and after the expansion of its volume."""
    measured = [job for p in request.profiles for job in p.jobs if job.phase is Phase.MEASURED]
    repeats = sum(repeats_of(profile, request.terms) for profile in request.profiles)
    is_single = len(measured) == 1 and not measured[0].sections and repeats == 1
    if not is_single or request.terms.client_counts:
        raise InputError(
            "--expand measures one job of one section, once before, during and after the expansion",
            hint="leave out other jobs with --set 'JOB=', and repeats with --repeat 1",
        )
    (profile,), (job,) = request.profiles, measured
    parts = {job.role: dict.fromkeys((_BEFORE, _DURING, _AFTER), job.role)}
    split = on_each_target(profile.model_copy(update={"jobs": (job,)}), parts)
    prepared = tuple(other for other in profile.jobs if other is not job)
    jobs = {"jobs": (*prepared, *split.jobs), "order": Order.LISTED}
    return replace(request, profiles=(split.model_copy(update=jobs),))


def expand_claim(cluster: Cluster, name: str, size: str) -> None:
    """Ask for a larger volume of a claim."""
    wanted = {"resources": {"requests": {"storage": size}}}
    cluster.patch("PersistentVolumeClaim", name, {"spec": wanted})


class Expansions:
    """Listener of a campaign that expands the volume of each pod in the middle of its job."""

    def __init__(self, hosts: Sequence[ConnectedHost], layout: Layout) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._layout = layout
        self._begun_s: dict[str, float] = {}  # run to the start of its I/O; inf once requested
        self._threads: list[Thread] = []
        self._went_on = set[str]()  # hosts that no longer wait for the end of their expansions

    def __call__(self, event: Event, /) -> None:
        """Request an expansion when its time has come."""
        if isinstance(event, RunEnded) and self._lacks_expansion(event.run):
            words = "ended before its volume was expanded: use a longer runtime"
            click.echo(f"{event.run.id}: {words}", err=True)
        if not isinstance(event, RunProgress):
            return
        now_s = time.monotonic()
        if event.run.arm == _AFTER:
            self._went_on.add(event.run.host)
        elif event.run.arm == _DURING and event.progress.state == "run":
            seen = event.progress
            if seen.read_iops is None and seen.write_iops is None:  # fio has not reported yet
                return
            begun_s = self._begun_s.setdefault(event.run.id, now_s)
            if now_s - begun_s >= REQUEST_AFTER_S:
                self._begun_s[event.run.id] = math.inf
                thread = Thread(target=self._expand, args=[event.run], daemon=True)
                thread.start()
                self._threads.append(thread)

    def check(self, runs: Sequence[Run]) -> None:
        """Check that each volume was expanded during its run; to be called when all runs ended."""
        self._went_on.update(self._hosts)
        for thread in self._threads:
            thread.join()
        marks = {
            run.host: self._layout.run(run.id).marks
            for run in runs
            if run.arm == _DURING and run.phase is Phase.MEASURED
        }
        missing = [
            host
            for host, file in marks.items()
            if not (file.exists() and file.read_text(encoding="utf-8").endswith(f" {_EXPANDED}\n"))
        ]
        if missing:
            raise CampaignError(
                f"not expanded while it was measured: the volume of {', '.join(missing)}",
                hint=f"the results are kept: volbench show {quoted(self._layout.root)}; for those "
                "of an expansion, remove what prevented it, and run the campaign again",
            )

    def _lacks_expansion(self, run: Run) -> bool:
        return run.arm == _DURING and self._begun_s.get(run.id) != math.inf

    def _expand(self, run: Run) -> None:
        """Expand the volume of a run; note when it was requested, and when it had ended."""
        host, lines = self._hosts[run.host], list[str]()
        executor, pod = host.executor, host.host.pod
        if pod is None or not isinstance(executor, PodExecutor):
            return

        def mark(event: str, at_s: float) -> None:
            lines.append(f"mark {at_s + host.clock.offset_s:.3f} {event}\n")
            write_atomic(self._layout.run(run.id).marks, "".join(lines))

        try:
            known = executor.claim() or {"spec": {}}
            before = known["spec"].get("resources", {}).get("requests", {}).get("storage", "")
            if quantity_bytes(before) >= quantity_bytes(pod.expand_to):
                raise InputError(f"it was expanded to {before} earlier")
            requested_s = time.time()
            expand_claim(executor.cluster, pod.claim, pod.expand_to)
            mark(f"expand {pod.expand_to}", requested_s)
            while executor.held_back() and run.host not in self._went_on:
                time.sleep(LOOK_S)
            if (claim := executor.claim()) and not is_growing(claim):
                mark(_EXPANDED, time.time())
        except VolbenchError as error:
            words = f"{run.id}: the volume of {host.name} was not expanded: {error.message}"
            click.echo(words, err=True)
