"""Options that name a Kubernetes cluster, and those of campaigns in pods."""

from __future__ import annotations

import os
import secrets
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from volbench.cli.additions import Addition, Placement
from volbench.cli.options import PATH, Quantity, flag, option_group
from volbench.errors import InputError
from volbench.extensions.kubernetes.cluster import ClusterAddress
from volbench.extensions.kubernetes.cluster_spec import NAMESPACE_HELP, ClusterSpec, spec_options
from volbench.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from volbench.model.campaign.host import Host

_VARIABLE = "KUBECONFIG"


def _use_file(context: click.Context, _option: click.Parameter, file: Path | None) -> None:
    """Let this process, and those that it starts, read another kubeconfig file."""
    if file is None:
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(file)

    def restore() -> None:
        os.environ.pop(_VARIABLE)
        if before is not None:
            os.environ[_VARIABLE] = before

    context.call_on_close(restore)


_KUBECONFIG = click.option(
    "--kubeconfig",
    type=PATH,
    metavar="FILE",
    expose_value=False,
    callback=_use_file,
    help="File with the access to Kubernetes clusters. Default: KUBECONFIG, or ~/.kube/config.",
)
_CONTEXT = click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Context of the kubeconfig file. Default: the current one.",
)
_NAMESPACE = click.option("--namespace", default="", metavar="NAME", help=NAMESPACE_HELP)
_POD_TIMEOUT = click.option(
    "--pod-timeout",
    "pod_timeout_s",
    type=Quantity("TIME", parse_duration),
    default="10m",
    show_default=True,
    help="How long to wait for pods that cannot start, such as for a new node.",
)
_RESULTS_BUCKET = click.option(
    "--results-bucket",
    default="",
    metavar="s3://BUCKET/PREFIX",
    help="Collect the results of the pods through this bucket, to which they must have a way. "
    "Default: through the API server.",
)
_K8S = flag(
    "--k8s", "Run in pods of a Kubernetes cluster, made for the campaign and removed after it."
)

# The cluster of a verb below `k8s`, as the keyword `address`
ADDRESS = option_group(
    "address", ClusterAddress, _NAMESPACE, _CONTEXT, _KUBECONFIG, heading="Kubernetes"
)

# The context and the longest wait for a step of a verb with a namespace of its own, as
# `timed_address`
TIMED_ADDRESS = option_group(
    "timed_address",
    lambda context, pod_timeout_s: (context, pod_timeout_s),
    _CONTEXT,
    _KUBECONFIG,
    _POD_TIMEOUT,
    heading="Kubernetes",
)

# Fields of a `ClusterSpec`, as the keyword `described`
DESCRIPTION = option_group("described", dict, *spec_options(ClusterSpec), heading="Kubernetes")


@dataclass(frozen=True)
class NewPods(Addition):
    """Pods as the hosts of a new campaign."""

    placed: Placement | None  # None without --k8s

    @property
    def placement(self) -> Placement | None:
        """Pods to make."""
        return self.placed


def _new_pods(
    *, k8s: bool, described: dict[str, Any], context: str, pod_timeout_s: float, results_bucket: str
) -> NewPods:
    if not k8s:
        if option := _option_given({*described, "results_bucket"}):
            raise InputError(f"{option} applies to pods only", hint="add --k8s")
        return NewPods(None)
    from volbench.extensions.kubernetes.pod_placement import PodPlacement

    spec = ClusterSpec(campaign=f"volbench-{secrets.token_hex(5)}", **described)
    address = ClusterAddress(context, spec.namespace)
    return NewPods(PodPlacement(spec, address, pod_timeout_s, results_bucket))


NEW_PODS = option_group(
    "new_pods",
    _new_pods,
    *(_K8S, DESCRIPTION, _RESULTS_BUCKET, _CONTEXT, _KUBECONFIG, _POD_TIMEOUT),
    heading="Kubernetes",
)


def _option_given(names: Collection[str]) -> str:
    """Return the first option of pods on the command line; empty if there is none."""
    context = click.get_current_context()
    return next(
        (
            parameter.opts[0]
            for parameter in context.command.params
            if parameter.name in names
            and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ),
        "",
    )


@dataclass(frozen=True)
class PodHosts(Addition):
    """Pods of a campaign that is resumed or removed; see `cli.additions`."""

    pod_timeout_s: float = 0.0  # longest wait for a pod that is made again

    def revived(self, hosts: Sequence[Host], root: Path) -> AbstractContextManager[Sequence[Host]]:
        """Find the pods of hosts again, or make them again; machines are left as they are."""
        if not any(host.pod for host in hosts):
            return nullcontext(hosts)
        from volbench.extensions.kubernetes.resumed_pods import revived_pods

        return revived_pods(hosts, root, timeout_s=self.pod_timeout_s)

    def removed(
        self, hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
    ) -> AbstractContextManager[Sequence[Host]]:
        """Yield machines and hosts whose pods are there; then remove the campaigns in pods."""
        if not any(host.pod for host in (*hosts, *planned)):
            return nullcontext(hosts)
        from volbench.extensions.kubernetes.removal import removed_pods

        return removed_pods(hosts, root, planned=planned)


REVIVED_PODS = option_group(
    "pods",
    PodHosts,
    _KUBECONFIG,
    _POD_TIMEOUT,
    heading="Kubernetes",
)
REMOVED_PODS = option_group("pods", PodHosts, _KUBECONFIG)
