"""From a request to a checked plan: volumes found, Runs expanded, guard passed, nothing touched."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from volbench import __version__
from volbench.engine.preflight import check_campaign
from volbench.engine.probe import find_volume, probe_host, probe_volume, require_fio
from volbench.engine.warming import sizes_of
from volbench.execute.protocol import Executor
from volbench.model.profile import Profile, Tool
from volbench.model.run import Campaign, OnError
from volbench.plan.dump import dump_profile
from volbench.plan.estimate import Estimate, estimate
from volbench.plan.expand import Terms, expand
from volbench.store.archive import Archive, Provenance
from volbench.store.journal import utc_now


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        profiles: in the order they run, overrides applied.
        targets: role to device, file, directory or NBD uri.
        into: the campaign folder to make.
        repeat: None to take each profile's own.
        seed: None to take the profile's, or to draw one.
        on_error: go on or stop after a failed Run.
        allow_destroy: devices and files that may be overwritten.
        command: the command line, for the record.
    """

    profiles: tuple[Profile, ...]
    targets: Mapping[str, str]
    into: Path
    repeat: int | None = None
    seed: int | None = None
    on_error: OnError = OnError.CONTINUE
    allow_destroy: tuple[str, ...] = ()
    command: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Prepared:
    """A checked plan.

    Attributes:
        archive: what campaign.json will hold.
        fio: path of the binary; empty when no Run needs it.
        estimate: time and bytes.
    """

    archive: Archive
    fio: str
    estimate: Estimate

    @property
    def campaign(self) -> Campaign:
        """The plan."""
        return self.archive.campaign


def prepare(executor: Executor, request: Request) -> Prepared:
    """Plan a campaign and check that it can run, without touching anything.

    Raises:
        InputError: a volume is missing, or a job can't run here.
        FioError: fio is missing, too old, or rejects a job.
        RefusedError: a Run would destroy data without leave.
    """
    needs_fio = any(
        profile.cold_probe or any(job.tool is Tool.FIO for job in profile.jobs)
        for profile in request.profiles
    )
    fio = require_fio(executor) if needs_fio else ""
    targets = _targets(request)
    volumes = {
        role: find_volume(executor, role=role, target=target) for role, target in targets.items()
    }
    terms = Terms(
        name=request.into.absolute().name,
        created_utc=utc_now(),
        seed=request.seed,
        repeat=request.repeat,
        on_error=request.on_error,
        allow_destroy=request.allow_destroy,
        command=request.command,
        sizes_bytes=sizes_of(executor, request.profiles, volumes),
    )
    campaign = expand(request.profiles, volumes, terms)
    host = probe_host(executor)
    check_campaign(
        executor, campaign, host=host, fio=fio, campaign_dir=str(request.into.absolute())
    )
    provenance = Provenance(
        volbench_version=__version__,
        python_version=platform.python_version(),
        hosts=(host,),
        volumes=tuple(probe_volume(executor, volume) for volume in volumes.values()),
    )
    profiles = {profile.name: dump_profile(profile) for profile in request.profiles}
    archive = Archive(campaign=campaign, provenance=provenance, profiles=profiles)
    return Prepared(archive, fio, estimate(campaign))


def _targets(request: Request) -> dict[str, str]:
    """Return the target of each role that a job uses, the command line's before the profile's."""
    used = {job.role for profile in request.profiles for job in profile.jobs}
    own = {role: target for profile in request.profiles for role, target in profile.volumes.items()}
    return {role: target for role, target in {**own, **request.targets}.items() if role in used}
