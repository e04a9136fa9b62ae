"""Kubernetes: campaigns on pods, and the verbs that manage them."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="kubernetes",
    verbs={
        "k8s": Verb(
            "volbench.extensions.kubernetes.k8s_verbs:command",
            "Manifests, access rights and storage classes for Kubernetes.",
            group="Set-up",
            after="hosts",
        )
    },
    options={
        "run": "volbench.extensions.kubernetes.pod_options:NEW_PODS",
        "audit": "volbench.extensions.kubernetes.pod_options:NEW_PODS",
        "resume": "volbench.extensions.kubernetes.pod_options:REVIVED_PODS",
        "status": "volbench.extensions.kubernetes.pod_options:REMOVED_PODS",
    },
    listeners=("volbench.extensions.kubernetes.pod_options:noted_losses",),
    channels={"pod": "volbench.extensions.kubernetes.pod_executor:open_pods"},
)
