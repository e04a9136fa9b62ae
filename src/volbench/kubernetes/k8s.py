"""volbench k8s: verbs on Kubernetes clusters."""

from __future__ import annotations

import click

from volbench.cli.verb_groups import LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "submit": ("kubernetes.k8s_submit", "Run volbench itself in the cluster, as a Job."),
    "status": ("kubernetes.k8s_status", "Show submitted controllers and what they print."),
    "fetch": ("kubernetes.k8s_fetch", "Copy the campaign folder of a submitted controller."),
    "reap": ("kubernetes.k8s_reap", "Remove what interrupted campaigns left on a cluster."),
    "render": ("kubernetes.k8s_render", "Print the manifests that run --k8s would apply."),
    "role": ("kubernetes.k8s_role", "Print the least access rights that campaigns need."),
    "storageclass": ("kubernetes.k8s_storageclass", "Print storage classes of Azure, AWS and GCP."),
}


@click.group("k8s", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Kubernetes: controllers in the cluster, manifests, access rights, and removal."""
