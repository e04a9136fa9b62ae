"""volbench k8s: controllers in a cluster, manifests, access rights, and removal."""

from __future__ import annotations

import secrets
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    A_PROFILE,
    ALLOW_EXEC,
    PATH,
    SETTINGS,
    examples,
    flag,
    option_group,
    output_option,
)
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.errors import InputError, VolbenchError
from volbench.extensions.kubernetes.cluster import ClusterAddress
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec, spec_options
from volbench.extensions.kubernetes.controllers import ControllerSpec
from volbench.extensions.kubernetes.pod_options import ADDRESS, CONTEXT, DESCRIPTION, description

if TYPE_CHECKING:
    from collections.abc import Sequence

    from volbench.extensions.kubernetes.cluster import Cluster
    from volbench.extensions.kubernetes.lifecycle import VolumeLife
    from volbench.present.formatting import Row
    from volbench.present.tables.table import Table

_LINES = 10  # Last lines of a controller's output: a screen with the table above them.


@click.group("k8s", cls=VerbGroup)
def command() -> None:
    """Kubernetes: controllers in the cluster, manifests, access rights, and removal."""


@command.command(
    "submit",
    short_help="Run volbench itself in the cluster, as a Job.",
    context_settings={"allow_interspersed_args": False},
    epilog=examples("volbench k8s submit --controller-image C quick --claim-size 9G --pod image=F"),
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the controller. Default: by the profile."
)
@click.option(
    "--controller-image", required=True, metavar="IMAGE", help="Image with Python and volbench."
)
@option_group("described", dict, *spec_options(ControllerSpec))
@ADDRESS
@click.argument("arguments", nargs=-1, required=True, metavar="PROFILE... [OPTIONS OF RUN]")
def submit(
    name: str,
    controller_image: str,
    described: dict[str, Any],
    address: ClusterAddress,
    arguments: tuple[str, ...],
) -> None:
    """Run volbench itself in the cluster: the campaign goes on when this machine is switched off.

    A Job runs volbench run --k8s with everything from the first PROFILE on, into a volume of its
    own. If its pod is evicted or its node is lost, another one resumes the campaign. Profiles are
    stored in a ConfigMap.
    """
    from volbench.extensions.kubernetes.controllers import submit_controller
    from volbench.extensions.kubernetes.submitted_run import check_run, parse_run

    run = parse_run(arguments)
    with address.opened() as cluster:
        check_run(
            cluster, arguments, account=described["service_account"], secret=described["secret"]
        )
        first = next(iter(run["profiles"])).removesuffix(".yaml")
        spec = ControllerSpec(
            name=name or f"{first[:30]}-{secrets.token_hex(3)}",
            namespace=cluster.namespace,
            image=controller_image,
            **described,
            **run,
        )
        submit_controller(cluster, spec)
    click.echo(spec.name)
    click.echo(
        f"follow it: {cluster.command('status', spec.name)}; when it has ended: "
        f"{cluster.command('fetch', spec.name)} -o DIR",
        err=True,
    )


def controllers_table(rows: Sequence[Row]) -> Table[Row]:
    """Return the controllers in a cluster, a row each, by the keys of `ControllerState`."""
    from volbench.present.tables.table import IDENTITY, Column, Table

    columns: tuple[Column[Row], ...] = (
        Column("name", header="controller", priority=IDENTITY),
        Column("state", priority=IDENTITY),
        Column("submitted_utc", header="submitted", priority=2),
        Column("ended_utc", header="ended", priority=3, is_optional=True),
        Column("reason", is_folded=True, is_optional=True),
    )
    return Table("controllers", columns, rows)


@command.command(
    "status",
    short_help="Show controllers and their output.",
    epilog=examples("volbench k8s status", "volbench k8s status NAME --namespace disktest"),
)
@click.argument("name", default="", metavar="[NAME]")
@ADDRESS
@table_options()
def status(name: str, *, address: ClusterAddress, table_output: TableOutput) -> None:
    """Show the controllers in a cluster, or one of them with its last lines."""
    from volbench.extensions.kubernetes.controllers import controllers_on, last_lines

    with address.opened() as cluster:
        cluster.require_namespace()
        controllers = controllers_on(cluster, name)
        lines = last_lines(cluster, controllers[0], count=_LINES) if name else []
    table_output.write(controllers_table([vars(controller) for controller in controllers]))
    for line in lines:
        table_output.note(line)


@command.command(
    "fetch",
    short_help="Copy the campaign folder of a controller.",
    epilog=examples("volbench k8s fetch NAME -o results/NAME --remove"),
)
@click.argument("name", metavar="NAME")
@output_option(type=PATH, metavar="DIR", help="New folder. Default: NAME.")
@flag("--remove", "Afterwards remove the controller and its volume from the cluster.")
@ADDRESS
def fetch(name: str, output: Path | None, *, remove: bool, address: ClusterAddress) -> None:
    """Copy the campaign folder of the controller NAME to this machine."""
    from volbench.extensions.kubernetes.controllers import fetch_campaign

    folder = output or Path(name)
    with address.opened() as cluster:
        fetch_campaign(cluster, name, folder)
        click.echo(f"campaign folder: {folder}", err=True)
        if remove:
            cluster.delete("ConfigMap", name)  # which owns the others
            click.echo(f"removed {name} from the namespace {cluster.namespace}", err=True)


@command.command(
    "reap",
    short_help="Remove what interrupted campaigns left on a cluster.",
    epilog=examples("volbench k8s reap --dry-run", "volbench k8s reap NAME --volumes"),
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@flag("--volumes", "Also remove volumes that --keep left.")
@flag("--dry-run", "List what would be removed.")
@ADDRESS
def reap(names: tuple[str, ...], *, volumes: bool, dry_run: bool, address: ClusterAddress) -> None:
    """Remove the pods, volumes and locks of interrupted campaigns: of NAMEs, or of all.

    Only objects that carry volbench's labels are removed. Campaigns with a live controller are
    refused if they are named, and else skipped. A controller that was killed counts as live for up
    to two minutes, unless it ran on this machine. Volumes that --keep left are skipped.
    """
    from volbench.extensions.kubernetes.removal import campaigns_on

    errors: list[VolbenchError] = []
    with address.opened() as cluster:
        cluster.require_namespace()
        for name in names or campaigns_on(cluster):
            try:
                _reap(cluster, name, volumes=volumes, dry_run=dry_run, is_named=bool(names))
            except VolbenchError as error:
                errors.append(error)
    for other in errors[1:]:
        click.echo(f"error: {other.message}; {other.hint}", err=True)
    if errors:
        raise errors[0]


def _reap(cluster: Cluster, name: str, *, volumes: bool, dry_run: bool, is_named: bool) -> None:
    """Remove a campaign; skip one that is held unless it is named."""
    from volbench.extensions.kubernetes.leases import current_holder
    from volbench.extensions.kubernetes.removal import (
        has_volumes_only,
        lease_of_remains,
        remove_campaign,
    )

    holder = current_holder(cluster, name)
    if holder is not None and holder.is_live and not is_named:
        click.echo(f"{name}: skipped: it is held by {holder}", err=True)
    elif has_volumes_only(cluster, name) and not volumes:
        click.echo(f"{name}: its volumes were kept; to remove them: --volumes", err=True)
    elif dry_run:
        click.echo(name)
    else:
        with lease_of_remains(cluster, name):
            remove_campaign(cluster, name, volumes=volumes)


@command.command(
    "render",
    short_help="Print the manifests that run --k8s would apply.",
    cls=VerbCommand,
    epilog=examples(
        "volbench k8s render aks-disk --claim-size 250Gi --pod image=IMAGE",
        "volbench k8s render --role bench | kubectl apply -f -",
        "volbench k8s render --pod image=IMAGE | kubectl apply -f -",
    ),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE...]", shell_complete=A_PROFILE)
@click.option(
    "--role",
    default="",
    metavar="NAME",
    help="Instead, print a service account NAME with the minimum access rights of campaigns.",
)
@DESCRIPTION
@SETTINGS
@ALLOW_EXEC
@output_option(metavar="FILE", default="-", help="File; - is standard output, the default.")
def render(
    profiles: tuple[str, ...],
    *,
    role: str,
    described: dict[str, Any],
    settings: tuple[str, ...],
    allow_exec: bool,
    output: str,
) -> None:
    """Print the manifests that volbench run --k8s would apply for PROFILEs, for review.

    Without PROFILE, print a pod that says in its log whether --pod image=IMAGE serves.

    Do not apply them: without a controller their pods only idle. The campaign name is derived from
    the options; that of a run is unique. Owner references are missing, because they name an object
    that exists.

    The rights of --role are limited to the namespace, except reading nodes, persistent volumes and
    storage classes: without these, volbench cannot list the volumes that remain.
    """
    from volbench.cli.profiles import load_profiles
    from volbench.execute.local import LocalExecutor
    from volbench.extensions.kubernetes.manifests import access_manifests, image_test, objects
    from volbench.model.document.yaml_text import yaml_documents

    if profiles and role:
        raise InputError("PROFILE and --role exclude each other", hint="leave out one of them")
    described["namespace"] = described["namespace"] or "default"
    if role:
        manifests = access_manifests(namespace=described["namespace"], name=role)
    elif not profiles:
        described["os_disk"] = True
        manifests = [image_test(ClusterSpec(campaign="volbench-image", **described))]
    else:
        loaded = load_profiles(LocalExecutor(), profiles, settings=settings, allow_exec=allow_exec)
        names = " ".join(profile.name for profile in loaded)
        key = sha256(f"{names} {described}".encode()).hexdigest()[:10]
        spec = ClusterSpec(campaign=f"volbench-{key}", **described)
        manifests = objects(spec.for_roles(set().union(*(own.roles for own in loaded))))
    with binary_output(output, default_name="manifests.yaml") as sink:
        sink.write(yaml_documents(manifests).encode())


@command.command(
    "lifecycle",
    short_help="Time the lifecycle of volumes.",
    cls=VerbCommand,
    epilog=examples("volbench k8s lifecycle --storage-class premium --claim-size 4Gi --count 20"),
)
@click.option(
    "--count",
    default=5,
    show_default=True,
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Volumes of each storage class.",
)
@click.option(
    "--at-once",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="Volumes of a class at a time.",
)
@description("--storage-class", "--from", "--claim-size", "--volume-mode", "--namespace")
@CONTEXT
@table_options()
def lifecycle(
    *, count: int, at_once: int, described: dict[str, Any], context: str, table_output: TableOutput
) -> None:
    """Time the lifecycle of new volumes.

    Steps: provision, attach, start, first I/O, detach and delete. Each volume gets a claim and a
    pod that writes 4 KiB; all are removed. With --from, volumes are restored or cloned.
    """
    from volbench.extensions.kubernetes.lifecycle import measure_lives, steps_table

    classes = tuple(dict.fromkeys(described.pop("storage_classes")))
    if not classes:
        raise InputError("the storage class is missing", hint="list them: kubectl get storageclass")
    name = f"volbench-{secrets.token_hex(5)}"
    with ClusterAddress(context, described.pop("namespace")).opened() as cluster:
        described |= {"storage_classes": classes, "namespace": cluster.namespace}
        spec = ClusterSpec(campaign=name, **described)
        lives: list[VolumeLife] = []
        try:
            lives += measure_lives(cluster, spec, count=count, at_once=at_once)
        finally:  # those of the rounds before an error count, too
            if lives:
                table_output.write(steps_table(lives))


@command.command(
    "storageclass",
    short_help="Show storage classes, and what campaigns lack.",
    epilog=examples(
        "volbench k8s storageclass", "volbench k8s storageclass ebs-gp3-retain | kubectl apply -f -"
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@description("--namespace")
@CONTEXT
@table_options()
def storageclass(
    names: tuple[str, ...], *, described: dict[str, Any], context: str, table_output: TableOutput
) -> None:
    """Show the storage classes of the cluster, and what campaigns lack there.

    With NAME, print the manifest of a bundled class of Azure, AWS or Google Cloud instead. All of
    these are Retain: a volume stays, and is billed, after its claim is deleted.
    """
    from volbench.extensions.kubernetes.storage_classes import FOLDER, classes_table
    from volbench.plan.bundled_files import read_named

    if not names:
        with ClusterAddress(context, described["namespace"]).opened() as cluster:
            pod = click.get_current_context().meta["pod"]
            table_output.write(classes_table(cluster, pod, image=described.get("image", "")))
        return
    text = "---\n".join(read_named(name, folder=FOLDER, what="storage class")[0] for name in names)
    with binary_output(table_output.output, default_name="storageclasses.yaml") as sink:
        sink.write(text.encode())
