"""Runs of a controller in the cluster: their arguments, checked as volbench run would there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import click

from volbench.errors import InputError
from volbench.extensions.kubernetes.pod_options import all_settings

if TYPE_CHECKING:
    from volbench.extensions.kubernetes.cluster import Cluster

# Parameters of volbench run that mean nothing to a controller in the cluster, or are its own
_NOT_IN_CLUSTER = {
    "output": "-o/--output",
    "like": "--like",
    "inventory": "--inventory",
    "targets": "--on",
    "detach": "--detach",
    "dry_run": "--dry-run",
    "k8s": "--k8s",
    "context": "--context",
    "namespace": "--namespace",
}
# Settings of the pods that hold for the pod of the controller, too
_OF_BOTH = ("image_pull_policy", "image_pull_secrets", "run_as_user")
_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - of the pod, for Prometheus


def parse_run(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of volbench run, profiles first, as fields of a `ControllerSpec`."""
    profiles, options, described = _checked_arguments(arguments)
    return {"arguments": options, "profiles": _profile_texts(profiles, options), **described}


def check_run(
    cluster: Cluster, arguments: Sequence[str], *, account: str = "", secret: str = ""
) -> None:
    """Plan a run as the controller will, and let the cluster check its objects.

    Args:
        account: service account of the controller that must exist; empty for none.
        secret: Secret of the controller that must exist, if it may be read; empty for none.
    """
    from volbench.cli.run import run

    options = ["--k8s", "--dry-run", "--namespace", cluster.namespace]
    if cluster.context:
        options += ["--context", cluster.context]
    with redirect_stdout(StringIO()), _run_context([*arguments, *options]) as context:
        run.invoke(context)
    if account and cluster.read_if_allowed("ServiceAccount", account) is None:
        raise InputError(
            f"there is no service account {account} in the namespace {cluster.namespace}",
            hint=f"make it: {cluster.render_role(account)}",
        )
    if secret and cluster.read_if_allowed("Secret", secret) is None:
        raise InputError(
            f"there is no Secret {secret} in the namespace {cluster.namespace}, so the controller "
            "could not start",
            hint=f"make it: {cluster.kubectl('create', 'secret', 'generic', secret)}"
            " --from-literal=NAME=VALUE",
        )


def _checked_arguments(
    arguments: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """Return the profiles, the options of volbench run, and fields of a `ControllerSpec`.

    The options are parsed as volbench run would: otherwise it would fail in the cluster.
    """
    from volbench.model.profile.secret_values import mask_text

    profiles = tuple(takewhile(lambda text: not text.startswith("-"), arguments))
    options = tuple(arguments[len(profiles) :])
    with _run_context([*options]) as context:
        given = dict(context.params)
        described = _metrics(context) | {
            name: given["pod"][name] for name in _OF_BOTH if name in given["pod"]
        }
    settings = [text.partition("=")[2] for text in options if text.startswith("--pod=")]
    settings += [value for name, value in pairwise(options) if name == "--pod"]
    # those of volbench.toml, which the cluster does not have
    options += tuple(f"--pod={text}" for text in all_settings(settings) if text not in settings)
    if not profiles or given["profiles"]:
        raise InputError(
            "profiles must come before the options of volbench run",
            hint="volbench k8s submit --controller-image IMAGE aks-disk --claim-size 250Gi",
        )
    refused = [option for key, option in _NOT_IN_CLUSTER.items() if given.get(key)]
    if refused:
        raise InputError(
            f"{refused[0]} cannot be used by a controller in the cluster",
            hint="options of volbench k8s submit itself go before the first profile",
        )
    if any(mask_text(text) != text for text in options):
        raise InputError(
            "an option contains a password, which would be stored in the cluster",
            hint="put it into a Secret, and name that with --secret",
        )
    return profiles, options, described


def _run_context(arguments: list[str]) -> click.Context:
    """Parse arguments of volbench run, with the configuration of this command."""
    from volbench.cli.run import run

    configuration = click.get_current_context().find_root().obj
    return run.make_context("volbench run", arguments, obj=configuration)


def _metrics(context: click.Context) -> dict[str, Any]:
    """Return address and port of metrics of volbench run, as an attribute of the controller."""
    metrics = context.params.get("metrics")
    if metrics is None:
        return {}
    if metrics.port == 0:
        raise InputError(
            "--metrics 0 cannot be used by a controller in the cluster",
            hint="Prometheus needs a fixed port, such as 9400",
        )
    return {"metrics": f"{metrics.address or _ALL_ADDRESSES}:{metrics.port}"}


def _profile_texts(profiles: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return the text of each profile, by the name of its file in the cluster."""
    from volbench.api.run_profiles import load_texts
    from volbench.cli.profiles import texts_of
    from volbench.execute.local import LocalExecutor
    from volbench.model.profile.secret_values import mask_text

    executor, allow_exec = LocalExecutor(), "--allow-exec" in options
    sources = texts_of(executor, profiles, allow_exec=allow_exec)
    loaded = load_texts(executor, sources, settings=(), allow_exec=allow_exec)
    texts: dict[str, str] = {}
    for profile, (text, _) in zip(loaded, sources, strict=True):
        if mask_text(text) != text:
            raise InputError(
                f"the profile {profile.name} contains a password, which would be stored in the "
                "cluster",
                hint="replace it by ***, and put the password into a Secret: --secret",
            )
        plain = re.sub(r"[^a-z0-9]+", "-", profile.name.lower()).strip("-") or "profile"
        number = f"-{len(texts)}" if f"{plain}.yaml" in texts else ""
        texts[f"{plain}{number}.yaml"] = text
    return texts
