"""volbench k8s: verbs on Kubernetes clusters."""

from __future__ import annotations

import click

from volbench.cli.lazy_group import LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "submit": ("cluster.k8s_submit", "Run volbench itself in the cluster, as a Job."),
    "status": ("cluster.k8s_status", "Show submitted controllers and what they print."),
    "fetch": ("cluster.k8s_fetch", "Copy the campaign folder of a submitted controller."),
    "reap": ("cluster.k8s_reap", "Remove what interrupted campaigns left on a cluster."),
    "render": ("cluster.k8s_render", "Print the manifests that run --k8s would apply."),
    "role": ("cluster.k8s_role", "Print the least access rights that campaigns need."),
    "storageclass": ("cluster.k8s_storageclass", "Print storage classes of Azure, AWS and GCP."),
}


@click.group("k8s", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Kubernetes: controllers in the cluster, manifests, access rights, and removal."""
