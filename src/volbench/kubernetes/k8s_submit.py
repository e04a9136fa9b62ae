"""volbench k8s submit: a campaign whose controller runs in the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import click
from click.core import ParameterSource

from volbench.cli.options import examples, option_group
from volbench.errors import InputError
from volbench.kubernetes.cluster_connection import CONNECTION, ClusterConnection

# Parameters of volbench run that mean nothing to a controller in the cluster, or are its own
_NOT_THERE = {
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
_FILES = ("--volume-types", "--prices", "--kubeconfig")


@click.command(
    "submit",
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "volbench k8s submit --controller-image C quick --size 9Gi --image FIO",
        "volbench k8s submit --controller-image C --upload s3://bucket/n quick",
    ),
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the controller. Default: by the profile."
)
@click.option(
    "--controller-image", required=True, metavar="IMAGE", help="Image with Python and volbench."
)
@option_group(
    "settings",
    dict,
    click.option(
        "--service-account",
        default="volbench",
        show_default=True,
        metavar="NAME",
        help="Account with the rights of volbench k8s role.",
    ),
    click.option(
        "--claim-size",
        default="1Gi",
        show_default=True,
        metavar="SIZE",
        help="Size of the volume for the campaign folder.",
    ),
    click.option(
        "--claim-class",
        default="",
        metavar="NAME",
        help="StorageClass of that volume. Default: the cluster's.",
    ),
    click.option(
        "--upload",
        default="",
        metavar="s3://BUCKET/PREFIX",
        help="Upload the campaign folder there in the end.",
    ),
    click.option(
        "--secret",
        default="",
        metavar="NAME",
        help="Secret whose entries become environment variables, such as AWS_ACCESS_KEY_ID.",
    ),
    click.option(
        "--image-pull-policy",
        type=click.Choice(["Always", "IfNotPresent", "Never"]),
        help="When to pull the controller's image.",
    ),
    click.option(
        "--image-pull-secret",
        "image_pull_secrets",
        multiple=True,
        metavar="NAME",
        help="Secret with registry credentials; repeatable.",
    ),
    click.option(
        "--run-as-user",
        type=click.IntRange(0),
        default=65532,
        show_default=True,
        metavar="UID",
        help="User and group id of the controller.",
    ),
)
@click.option(
    "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
)
@CONNECTION
@click.argument("arguments", nargs=-1, required=True, metavar="PROFILE... [OPTIONS OF RUN]")
def command(
    name: str,
    controller_image: str,
    settings: dict[str, object],
    namespace: str,
    arguments: tuple[str, ...],
    *,
    connection: ClusterConnection,
) -> None:
    """Run volbench itself in the cluster: the campaign goes on when this machine is switched off.

    A Job runs volbench run --k8s with everything from the first PROFILE on, into a volume of its
    own. If its pod is evicted or its node is lost, another one resumes the campaign. Profiles are
    stored in a ConfigMap.
    """
    import secrets

    from volbench.kubernetes.controller_job import ControllerSpec
    from volbench.kubernetes.controllers import submit

    profiles, options, metrics = _checked(arguments)
    texts = _texts(profiles, options)
    settings |= {"image_pull_policy": settings["image_pull_policy"] or "", **metrics}
    with connection.opened(namespace) as cluster:
        spec = ControllerSpec(
            name=name or f"{next(iter(texts)).removesuffix('.yaml')[:30]}-{secrets.token_hex(3)}",
            namespace=cluster.namespace,
            image=controller_image,
            arguments=options,
            profiles=texts,
            **settings,  # type: ignore[arg-type]  # options of click, named as its attributes
        )
        submit(cluster, spec)
    click.echo(spec.name)
    click.echo(
        f"follow it: volbench k8s status {spec.name}; in the end: "
        f"volbench k8s fetch {spec.name} -o DIR",
        err=True,
    )


def _checked(
    arguments: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, object]]:
    """Return the profiles, the options of volbench run, which accepts them, and where it serves."""
    from volbench.cli.run import run
    from volbench.model.profile.secret_values import mask_text

    profiles = tuple(takewhile(lambda text: not text.startswith("-"), arguments))
    options = tuple(arguments[len(profiles) :])
    with run.make_context("volbench run", [*options]) as context:
        given = dict(context.params)
        metrics = _metrics(context)
    if not profiles or given["profiles"]:
        raise InputError(
            "name the profiles first, then the options of volbench run",
            hint="volbench k8s submit --controller-image IMAGE aks-disk --size 250Gi",
        )
    named = [option for key, option in _NOT_THERE.items() if given.get(key)]
    named += [own for own in _FILES for text in options if text.partition("=")[0] == own]
    if named:
        raise InputError(
            f"{named[0]} cannot be used by a controller in the cluster",
            hint="options of volbench k8s submit itself go before the first profile",
        )
    if any(mask_text(text) != text for text in options):
        raise InputError(
            "an option contains a password, which would be stored in the cluster",
            hint="put it into a Secret, and name that with --secret",
        )
    return profiles, options, metrics


def _metrics(context: click.Context) -> dict[str, object]:
    """Return where volbench run serves metrics, as attributes of `ControllerSpec`."""
    port = context.params["metrics_port"]
    if port == 0:
        raise InputError(
            "--metrics-port 0 cannot be used by a controller in the cluster",
            hint="Prometheus needs a port that it can know, such as 9400",
        )
    is_given = context.get_parameter_source("metrics_address") is ParameterSource.COMMANDLINE
    at = {"metrics_address": context.params["metrics_address"]} if is_given else {}
    return {"metrics_port": port, **at}


def _texts(profiles: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return the text of each profile, by the name of its file in the cluster."""
    import re

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
                hint="put *** in its place, and the password into a Secret: --secret",
            )
        plain = re.sub(r"[^a-z0-9]+", "-", profile.name.lower()).strip("-") or "profile"
        own = f"{plain}.yaml"
        texts[own if own not in texts else f"{plain}-{len(texts)}.yaml"] = text
    return texts
