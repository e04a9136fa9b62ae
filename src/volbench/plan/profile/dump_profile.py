"""A Profile in, YAML out that reads back as the same Profile."""

from __future__ import annotations

import re
from decimal import Decimal
from io import StringIO

from ruamel.yaml import YAML

from volbench.model.profile.profile_model import Job, Limits, Options, Phase, Profile, Start, Tool
from volbench.plan.profile.declared_limits import LIMIT_KEYS
from volbench.plan.profile.rounds_setting import CRITERION
from volbench.plan.profile.volume_type_limits import wanted_keys


def dump_profile(profile: Profile) -> str:
    """Return a profile as YAML; values are canonical: bytes, whole seconds, 0 and 1."""
    content: dict[str, object] = {"name": profile.name}
    if profile.description:
        content["description"] = profile.description
    if profile.source:
        content["source"] = profile.source.model_dump(exclude_defaults=True)
    if profile.defaults:
        content["defaults"] = _options(profile.defaults)
    if profile.volumes:
        content["volumes"] = dict(profile.volumes)
    if profile.rounds:
        content["rounds"] = {
            "most": profile.rounds.most,
            "until": CRITERION,
            "track": [track.name for track in profile.rounds.track],
        }
    else:
        content["repeat"] = profile.repeat
    content["order"] = profile.order.value
    if profile.seed is not None:
        content["seed"] = profile.seed
    content["sample"] = _shortest(profile.sample_s)
    content["device_sample"] = _shortest(profile.device_sample_s)
    if profile.latency_log:
        content["latency_log"] = True
    if profile.cold_probe:
        content["cold_probe"] = True
    content |= _start(profile)
    if profile.limits:
        content["limits"] = {role: _limits(limits) for role, limits in profile.limits.items()}
    content |= _jobs(profile)
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # ruamel's own name for sort_keys
    yaml.width = 1_000_000
    stream = StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _start(profile: Profile) -> dict[str, object]:
    """Return how clients start, where there is more to it than one process at one instant."""
    content: dict[str, object] = {}
    if profile.start is not Start.TOGETHER:
        content["start"] = profile.start.value
    if profile.stagger_s:
        content["stagger"] = _shortest(profile.stagger_s)
    if profile.clients > 1:
        content["clients"] = profile.clients
    return content


def _jobs(profile: Profile) -> dict[str, object]:
    phases = {
        phase.value: {job.name: _job(job) for job in profile.jobs if job.phase is phase}
        for phase in Phase
    }
    measured = phases.pop(Phase.MEASURED.value)
    before = {name: jobs for name, jobs in phases.items() if jobs}
    return ({"phases": before} if before else {}) | {"jobs": measured}


def _job(job: Job) -> dict[str, object]:
    content: dict[str, object] = {"role": job.role}
    if job.tool is not Tool.FIO:
        content["tool"] = job.tool.value
    if job.note:
        content["note"] = job.note
    if job.limits:
        content["limits"] = _limits(job.limits)
    if job.until:
        content["until"] = {
            "state": "steady",
            "window": _shortest(job.until.window_s),
            "block": _shortest(job.until.block_s),
        }
    if job.pause_before_s:
        content["pause_before"] = _shortest(job.pause_before_s)
    if job.outlast:
        margin, most = _shortest(job.outlast.margin), _shortest(job.outlast.most_s)
        content["outlast"] = {"what": "credits", "margin": margin, "most": most}
    if job.warming:
        content["warming"] = {
            "mode": job.warming.value,
            "extents": job.extents,
            "auto": job.auto_jobs,
        }
    content |= _options(job.options)
    if job.sections:
        content["sections"] = {name: _options(own) for name, own in job.sections.items()}
    return content


def _options(options: Options) -> dict[str, object]:
    """Return options with whole numbers as numbers, which reads better and means the same."""
    return {
        name: int(value) if value is not None and _WHOLE.fullmatch(value) else value
        for name, value in options.items()
    }


_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}")


def _shortest(number: float) -> int | str:
    """Return a number whole where it is, and never in the exponent form no unit goes with."""
    return int(number) if number == int(number) else f"{Decimal(repr(number)):f}"


def _limits(limits: Limits) -> dict[str, object]:
    if limits.wanted is not None:
        said = {name: _shortest(value) for name, value in wanted_keys(limits.wanted).items()}
        return {"type": limits.name, **said}
    told = ((name, getattr(limits, key.attribute)) for name, key in LIMIT_KEYS.items())
    numbers = {name: _shortest(value) for name, value in told if value is not None}
    return {"name": limits.name, **numbers} if limits.name else dict(numbers)
