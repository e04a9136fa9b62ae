"""Secrets of a plan: which runs need them, and a plan without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from volbench.model.campaign.host import LOCAL, Host
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.secret_values import (
    MASK,
    mask_text,
    merge_secrets,
    option_variable,
    split_secret,
    target_variable,
)


def variables_of(run: Run) -> dict[str, str]:
    """Return the environment variables of a run's secrets, each with its use."""
    names = {}
    if MASK in run.volume.target:
        is_local = run.host == LOCAL
        names[target_variable(run.host, run.volume.role, is_local=is_local)] = run.volume.target
    for section in run.sections:
        for name, value in run.effective(section).items():
            if MASK in value:
                names[option_variable(name)] = f"{name} of job {run.job}"
    return names


def missing_secrets(runs: Iterable[Run], known: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of missing secrets, each with its use."""
    needed = {name: use for run in runs for name, use in variables_of(run).items()}
    return {name: use for name, use in needed.items() if name not in known}


def conceal(campaign: Campaign) -> tuple[Campaign, dict[str, str]]:
    """Return a plan that holds no secrets, and the secrets of its options by variable."""
    pairs: list[tuple[str, str]] = []

    def masked(options: Mapping[str, str]) -> dict[str, str]:
        parts = {name: split_secret(name, value) for name, value in options.items()}
        pairs.extend((option_variable(name), secret) for name, (_, secret) in parts.items())
        return {name: value for name, (value, _) in parts.items()}

    runs = tuple(
        run.model_copy(
            update={
                "options": masked(run.options),
                "sections": tuple(
                    section.model_copy(update={"options": masked(section.options)})
                    for section in run.sections
                ),
                "note": mask_text(run.note),
                "volume": run.volume.model_copy(update={"target": mask_text(run.volume.target)}),
            }
        )
        for run in campaign.runs
    )
    hosts = tuple(map(masked_host, campaign.hosts))
    return campaign.model_copy(update={"runs": runs, "hosts": hosts}), merge_secrets(pairs)


def masked_host(host: Host) -> Host:
    """Return a host without passwords in its targets."""
    return host.model_copy(
        update={
            "volumes": {role: mask_text(target) for role, target in host.volumes.items()},
            "allow_destroy": tuple(map(mask_text, host.allow_destroy)),
        }
    )
