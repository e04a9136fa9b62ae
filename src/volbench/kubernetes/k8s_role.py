"""volbench k8s role: the access rights that campaigns need."""

from __future__ import annotations

import click

from volbench.cli.options import examples, output_option
from volbench.cli.output import binary_output


@click.command(
    "role", epilog=examples("volbench k8s role --namespace disktest | kubectl apply -f -")
)
@click.option("--namespace", default="default", show_default=True, help="Namespace of campaigns.")
@click.option(
    "--name", default="volbench", show_default=True, help="Name of account, roles and bindings."
)
@output_option(metavar="FILE", default="-", help="File; - is standard output, the default.")
def command(namespace: str, name: str, output: str) -> None:
    """Print a service account with the least access rights that campaigns need.

    All rights are within the namespace, but for two: reading persistent volumes and storage
    classes, for the volumes that stay behind. Without them volbench cannot list those.
    """
    from volbench.kubernetes.access import access_manifests
    from volbench.model.document.yaml_text import yaml_documents

    manifests = access_manifests(namespace=namespace, name=name)
    with binary_output(output, default_name="role.yaml") as sink:
        sink.write(yaml_documents(manifests).encode())
