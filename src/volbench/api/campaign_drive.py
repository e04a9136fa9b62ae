"""Execution of campaigns: what the command line and the Python interface do from plan to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from volbench.engine.campaign.added_listeners import added_listeners
from volbench.engine.campaign.campaign_engine import run_campaign
from volbench.engine.campaign.campaign_state import UNFINISHED, Settings, is_left
from volbench.engine.campaign.resume_plan import Reached, allow_anew, hosts_to_reach, resume_on
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import InputError
from volbench.execute.connect import HostKeyPolicy
from volbench.fio.jobs.render_job import writes
from volbench.model.campaign.event import Event, Listener
from volbench.model.campaign.host import LOCAL, Host, Policy
from volbench.model.campaign.planned_run import Campaign, Consent, Run, RunState, Volume, VolumeKind
from volbench.store.archive import Archive
from volbench.store.consent import Seal, read_own_campaign
from volbench.store.journal import History, read_history
from volbench.store.layout import Layout
from volbench.units import parse_duration


@dataclass(frozen=True)
class StartPolicy:
    """Clients that must be ready for a campaign to go on, and how long others are waited for."""

    policy: Policy
    quorum: int  # clients that must be ready; 0 with another policy
    ready_timeout_s: float | None  # longest wait for silent clients; None for that of `Settings`

    def of(self, campaign: Campaign) -> Campaign:
        """Return a campaign with this policy."""
        return campaign.model_copy(update={"policy": self.policy, "quorum": self.quorum})

    def waiting(self, settings: Settings) -> Settings:
        """Return settings with the time limit of the policy."""
        if self.ready_timeout_s is None:
            return settings
        return replace(settings, ready_timeout_s=self.ready_timeout_s)


@dataclass(frozen=True)
class ResumeRequest:
    """Options of the continuation of a stored campaign."""

    execution: Settings = field(default_factory=Settings)
    host_keys: HostKeyPolicy = field(default_factory=HostKeyPolicy)
    # what extensions keep of their options, by keyword
    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    consent: Consent = field(default_factory=Consent)  # for devices that have changed
    allow_exec: bool = False  # accept options that run programs or leave the run's folder
    redo_steps: tuple[str, ...] = ()  # numbers of steps, and ``unfinished``
    limits: tuple[str, ...] = ()  # hosts to continue on; all if empty


@dataclass(frozen=True)
class Continuation:
    """A stored campaign of this user, and the runs that are left."""

    layout: Layout
    archive: Archive
    seal: Seal
    plan: Campaign  # with the policy of the request
    history: History
    settings: Settings

    @property
    def left(self) -> list[Run]:
        """Runs that are not settled, of failed ones those that are repeated."""
        states, retry_failed = self.history.states, self.settings.retry_failed
        return [
            run
            for run in self.plan.runs
            if is_left(states.get(run.id, RunState.PLANNED), retry_failed=retry_failed)
        ]

    @property
    def is_done(self) -> bool:
        """Whether no run is left and no step is repeated; hosts may still hold its files."""
        return not (self.left or self.settings.redo_steps)

    @property
    def needed(self) -> Sequence[Run]:
        """Runs whose hosts must be reachable."""
        return self.plan.runs if self.settings.redo_steps else self.left

    def hosts(self, limits: Sequence[str]) -> tuple[Host, ...]:
        """Return the hosts to connect to: if the campaign is done, those that hold its files."""
        hosts = hosts_to_reach(self.plan, self.history.states, limits)
        if self.is_done:
            return tuple(host for host in hosts if host.name in self.history.in_use)
        return hosts

    def reach(self, connected: Sequence[ConnectedHost], *, allow_exec: bool) -> Reached:
        """Return the hosts that are ready to continue, and the needed ones that are absent."""
        reached = resume_on(connected, self.archive, allow_exec=allow_exec)
        return reached.needing({run.host for run in self.needed} or self.history.in_use)

    def allowed(self, hosts: Sequence[ConnectedHost], consent: Consent) -> Campaign:
        """Return the plan with the identities of devices that the user accepts now."""
        return allow_anew(hosts, self.layout, self.plan, consent=consent, seal=self.seal)


def parse_policy(text: str) -> StartPolicy:
    """Return the policy of ``all``, ``best-effort`` or ``quorum:N``, with a time limit or not."""
    choice, _, limit = text.partition(",")
    timeout_s = parse_duration(limit) if limit else None
    name, _, number = choice.partition(":")
    if name == Policy.QUORUM.value and number.isdecimal() and int(number):
        return StartPolicy(Policy.QUORUM, int(number), timeout_s)
    if not number and name in {Policy.ALL.value, Policy.BEST_EFFORT.value}:
        return StartPolicy(Policy(name), 0, timeout_s)
    raise InputError(
        f"--policy {text} is unknown",
        hint="write all, best-effort, or quorum:N such as quorum:25; with a time: quorum:25,30s",
    )


def continuation(root: Path, request: ResumeRequest, start: StartPolicy | None) -> Continuation:
    """Return a stored campaign as it is continued."""
    layout, archive, seal = read_own_campaign(root)
    plan = archive.campaign if start is None else start.of(archive.campaign)
    settings = request.execution if start is None else start.waiting(request.execution)
    settings = replace(settings, redo_steps=_parse_steps(request.redo_steps, plan))
    return Continuation(layout, archive, seal, plan, read_history(layout.journal), settings)


def written_devices(
    campaign: Campaign, hosts: Sequence[ConnectedHost], only: Sequence[str] = ()
) -> Iterator[tuple[str, ConnectedHost, Volume]]:
    """Yield name, host and volume of each device of the hosts that runs may overwrite.

    Args:
        only: names of devices, such as ``vm01:/dev/sdb``; all devices if it is empty.
    """
    by_name = {host.name: host for host in hosts}
    devices = {
        (run.host, volume.target): volume
        for run in campaign.runs
        for volume in run.volume.each
        if volume.kind is VolumeKind.DEVICE and writes(run)
    }
    for (host, target), volume in devices.items():
        name = target if host == LOCAL else f"{host}:{target}"
        if host in by_name and (not only or name in only):
            yield name, by_name[host], volume


def execute(
    layout: Layout,
    campaign: Campaign,
    hosts: Sequence[ConnectedHost],
    *,
    settings: Settings,
    listener: Listener,
    stop: StopRequest,
) -> None:
    """Execute the runs of a campaign that are left; extensions listen too."""
    with added_listeners(layout, hosts) as added:

        def hand_on(event: Event, /) -> None:
            for each in (listener, *added):
                each(event)

        run_campaign(layout, campaign, hosts, settings=settings, listener=hand_on, stop=stop)


def _parse_steps(texts: Sequence[str], campaign: Campaign) -> frozenset[int]:
    """Return the numbers of steps, and `UNFINISHED` for the word."""
    last = max((run.step for run in campaign.runs), default=0)
    steps = set()
    for text in texts:
        number = int(text) if text.isdecimal() else 0
        if text != "unfinished" and not 1 <= number <= last:
            raise InputError(
                f"--redo-step {text}: there is no such step",
                hint=f"write a number from 1 to {last}, or the word unfinished",
            )
        steps.add(number or UNFINISHED)
    return frozenset(steps)
