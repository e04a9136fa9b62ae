"""volbench k8s render: the manifests of a campaign."""

from __future__ import annotations

from hashlib import sha256

import click

from volbench.cli.options import ALLOW_EXEC, SETTINGS, VOLUME_TYPES, examples, output_option
from volbench.cli.output import binary_output
from volbench.cli.profiles import load_profiles
from volbench.kubernetes.cluster_options import CLUSTER, ClusterOptions


@click.command(
    "render",
    epilog=examples(
        "volbench k8s render aks-disk --size 250Gi --image IMAGE",
        "volbench k8s render quick --os-disk --image IMAGE | kubectl apply -f -",
    ),
)
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@CLUSTER
@SETTINGS
@VOLUME_TYPES
@ALLOW_EXEC
@output_option(metavar="FILE", default="-", help="File; - is standard output, the default.")
def command(
    profiles: tuple[str, ...],
    *,
    pods: ClusterOptions,
    settings: tuple[str, ...],
    allow_exec: bool,
    output: str,
) -> None:
    """Print the manifests that volbench run --k8s would apply for PROFILEs.

    Its name for the campaign is made of the options; that of a run is new each time. Owner
    references are missing, because they name an object that exists.
    """
    from volbench.execute.local import LocalExecutor
    from volbench.kubernetes.manifests import objects
    from volbench.model.document.yaml_text import yaml_documents

    loaded = load_profiles(LocalExecutor(), profiles, settings=settings, allow_exec=allow_exec)
    roles = {job.role for profile in loaded for job in profile.jobs}
    names = " ".join(profile.name for profile in loaded)
    key = sha256(f"{names} {pods}".encode()).hexdigest()[:10]
    spec = pods.spec(campaign=f"volbench-{key}", roles=roles)
    with binary_output(output, default_name="manifests.yaml") as sink:
        sink.write(yaml_documents(objects(spec)).encode())
