"""Python interface to measuring: workloads on volumes, without a profile."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from volbench.api.run_profiles import carry_out_profile, load_texts
from volbench.errors import InputError, ProfileError
from volbench.units import parse_duration, parse_size

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.event import Listener
    from volbench.model.profile.profile_model import Profile

# Writes every block of the scratch file once, so that no read finds one never written
_FILL = {"rw": "write", "iodepth": 8, "runtime": None, "time_based": None}
_SCRATCH = "volbench-scratch"  # File in a directory
_FILL_BLOCK = "1m"  # or the whole of a smaller file
# Where the loader found a problem, in the profile that stands for the options, and its key
_PLACE = re.compile(r"^<options>:\d+:\d+: (?:jobs\.[^.\n]+\.|defaults\.|)(\w+)", re.MULTILINE)
MEASURE = "measure"  # Profile that stands for the options
_DEEP = "128"  # Queue depth of a search, so that the asked rate limits, not the queue
_ROLE, _LETTERS = "data", "abcdefghijkl"


@dataclass(frozen=True)
class Workloads:
    """Workloads to measure: every combination of pattern, block size and queue depth."""

    patterns: tuple[str, ...]  # values of fio's `rw`
    block_sizes: tuple[str, ...]  # values of `bs`
    iodepths: tuple[str, ...]  # values of `iodepth`
    numjobs: int  # jobs in parallel
    size: str  # of the scratch file; empty for 1 GiB, or the whole of a device
    runtime_s: float  # of each run
    ioengine: str  # I/O engine of fio
    repeat: int  # runs of each combination
    within: tuple[str, ...] = ()  # bounds on latencies whose highest rate is searched


def measure(  # noqa: PLR0913 - the keywords are the options of `volbench measure`, one by one
    on: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    rw: str | Sequence[str] = "randread",
    bs: str | Sequence[str] = "4k",
    iodepth: int | Sequence[int] = 32,
    numjobs: int = 1,
    size: str = "",
    runtime: str = "5s",
    ioengine: str = "libaio",
    repeat: int = 3,
    within: str | Sequence[str] = (),
    output: str | os.PathLike[str] = "",
    allow_destroy: str | Sequence[str] = (),
    wipe_signatures: bool = False,
    allow_shared_folder: bool = False,
    listener: Listener | None = None,
) -> Dataset:
    """Measure workloads on volumes of this machine, as ``volbench measure`` does.

    Several volumes alternate in random order, and `Dataset.answer` compares them. In a directory a
    scratch file is written once before it is read.

    Args:
        on: directory, device, file or NBD URI, or several.
        rw: access pattern of fio, or several; every combination is measured.
        bs: block size, or several.
        iodepth: I/Os in flight for each job, or several.
        numjobs: jobs in parallel.
        size: of the scratch file, or of the part of a device; 1 GiB, or the whole device.
        runtime: of each run.
        ioengine: I/O engine of fio.
        repeat: runs of each combination.
        within: bounds on latencies, such as ``p99 < 5ms``: find the highest rate that keeps them.
        output: as for `volbench.run`, like all that follow.

    Raises:
        InputError: an option is wrong, or a target does not exist.
        RefusedError: a run would destroy data.
        CampaignError: runs failed; the results of the others are in the folder.
        StoppedError: it was stopped.
    """
    from volbench.engine.hosts.connected_host import this_machine  # noqa: PLC0415 - slow to import

    targets = [on] if isinstance(on, str | os.PathLike) else on
    roles, directories = volumes_on([this_machine()], [os.fspath(target) for target in targets])
    workloads = Workloads(
        _texts(rw),
        _texts(bs),
        _texts(iodepth),
        numjobs,
        size,
        parse_duration(runtime),
        ioengine,
        repeat,
        _texts(within),
    )
    return carry_out_profile(
        measured_profile(roles, workloads, directories),
        roles,
        output=output,
        allow_destroy=allow_destroy,
        wipe_signatures=wipe_signatures,
        allow_shared_folder=allow_shared_folder,
        listener=listener,
        called="volbench.measure",
    )


def _texts(values: object) -> tuple[str, ...]:
    if isinstance(values, Sequence) and not isinstance(values, str):
        return tuple(map(str, values))
    return (str(values),)


def measured_profile(
    roles: Mapping[str, str],
    workloads: Workloads,
    directories: Collection[str],
    *,
    settings: Sequence[str] = (),
) -> Profile:
    """Return the profile of workloads on some targets; see `profile_on`."""
    return profile_on(
        roles,
        _jobs(workloads),
        document={
            "name": MEASURE,
            "repeat": workloads.repeat,
            "defaults": {"ioengine": workloads.ioengine, "runtime": f"{workloads.runtime_s:.15g}s"},
        },
        size=workloads.size,
        settings=settings,
        directories=directories,
    )


def volumes_on(
    hosts: Sequence[ConnectedHost], targets: Sequence[str]
) -> tuple[dict[str, str], set[str]]:
    """Return role to target, and the roles whose target is a directory on each host.

    Without targets, the volume ``data`` of each host is meant.
    """
    from volbench.engine.guard.volume_targets import find_volume  # noqa: PLC0415 - slow to import
    from volbench.model.campaign.planned_run import VolumeKind  # noqa: PLC0415 - same

    roles = roles_of(targets)
    kinds: dict[str, set[bool]] = {}
    for host in hosts:
        own = roles or {_ROLE: host.host.volumes.get(_ROLE, "")}
        if not own.get(_ROLE, "/") or (len(hosts) > 1 and len(roles) > 1):
            raise InputError(
                f"{host.name} needs one volume {_ROLE}",
                hint=f"write --on {host.name}:/dev/sdb, or in the inventory volumes: "
                f"{{{_ROLE}: /dev/sdb}}",
            )
        for role, target in own.items():
            volume = find_volume(host.executor, role=role, target=target)
            kinds.setdefault(role, set()).add(volume.kind is VolumeKind.DIRECTORY)
    if any(len(found) > 1 for found in kinds.values()):
        raise InputError(
            "some hosts have a directory and others a device or a file",
            hint="measure them one after the other",
        )
    return roles or {_ROLE: _ROLE}, {role for role, found in kinds.items() if True in found}


def roles_of(targets: Sequence[str]) -> dict[str, str]:
    """Return role to target: ``data``, or ``a``, ``b``, ... for several.

    Raises:
        InputError: a target names a role, or there are too many.
    """
    for target in targets:
        role, sign, path = target.partition("=")
        if sign and role.isidentifier() and not Path(target).exists():
            raise InputError(
                f"--on {target} names the role {role!r}, but without a profile there are no roles",
                hint=f"write --on {path}",
            )
    if len(targets) > len(_LETTERS):
        raise InputError(
            f"{len(targets)} targets are too many",
            hint=f"measure up to {len(_LETTERS)}; for more write a profile and an inventory",
        )
    return dict(zip(_LETTERS if len(targets) > 1 else (_ROLE,), targets, strict=False))


def profile_on(  # noqa: PLR0913 - all that a profile without a file consists of
    roles: Mapping[str, str],
    workloads: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    document: Mapping[str, Any],
    size: str,
    settings: Sequence[str],
    directories: Collection[str],
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Profile:
    """Return the profile that options stand for: workloads on each target, in random order.

    Args:
        roles: role to target.
        directories: roles whose target is a directory.
        workloads: name and options of each.
        document: more content of the profile, with its name.
        size: of the scratch file in a directory, or of the part of a device; may be empty.
        typed: key to the option that stands for it, where that has another name.
    """
    from volbench.execute.local import LocalExecutor  # noqa: PLC0415 - slow to import
    from volbench.model.document.yaml_text import yaml_text  # noqa: PLC0415 - same
    from volbench.plan.expansion.target_arms import target_names  # noqa: PLC0415 - same

    names = dict.fromkeys(roles, "")
    if len(roles) > 1:
        names = {role: f"-{name}" for role, name in target_names(roles).items()}
    scratch = {
        role: {"size": size or "1g", "filename": _SCRATCH} for role in roles if role in directories
    }
    content: dict[str, object] = {
        "order": "shuffled",
        **document,
        "defaults": {
            "ioengine": "libaio",
            "direct": 1,
            "refill_buffers": 1,
            "time_based": 1,
            **document.get("defaults", {}),
            **({"size": size} if size else {}),
        },
        "jobs": {
            f"{job}{names[role]}": {
                "role": role,
                **({"arm": names[role].removeprefix("-")} if len(roles) > 1 else {}),
                **options,
                **scratch.get(role, {}),
            }
            for job, options in workloads
            for role in roles
        },
    }
    is_small = "%" not in size and 0 < parse_size(size or "1g") < parse_size(_FILL_BLOCK)
    fill = _FILL | {"bs": size if is_small else _FILL_BLOCK}
    first_roles = {target: role for role, target in reversed([*roles.items()])}
    fills = {
        f"fill{names[role]}": {"role": role, **fill, **scratch.get(role, {})}
        for role in first_roles.values()
        if role in scratch
    }
    if fills:
        content["phases"] = {"precondition": fills}
    try:
        sources = [(yaml_text(content), "<options>")]
        (profile,) = load_texts(LocalExecutor(), sources, settings=settings, allow_exec=False)
    except ProfileError as error:
        message = _PLACE.sub(lambda at: typed.get(at[1], f"--{at[1]}"), error.message)
        raise InputError(message, hint=error.hint) from error
    return profile


def _jobs(workloads: Workloads) -> Iterator[tuple[str, dict[str, Any]]]:
    patterns = workloads.patterns or ("randread",)
    usual_depth = _DEEP if workloads.within else "32"
    sizes, depths = workloads.block_sizes or ("4k",), workloads.iodepths or (usual_depth,)
    for pattern, size, depth in product(patterns, sizes, depths):
        options: dict[str, Any] = {"rw": pattern, "bs": size, "iodepth": depth}
        if workloads.within:
            options["within"] = [*workloads.within]
        if workloads.numjobs > 1:
            options |= {"numjobs": str(workloads.numjobs), "group_reporting": "1"}
        yield f"{pattern}-{size}-qd{depth}", options
