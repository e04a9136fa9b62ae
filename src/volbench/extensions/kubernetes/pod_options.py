"""Command-line options that name a Kubernetes cluster and describe the pods of a campaign."""

from __future__ import annotations

import secrets
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from volbench.cli.additions import Addition, Placement
from volbench.cli.configuration import configured_table
from volbench.cli.options import OptionGroup, flag, option_group
from volbench.errors import InputError
from volbench.extensions.kubernetes.cluster import ClusterAddress
from volbench.extensions.kubernetes.cluster_spec import NAMESPACE_HELP, ClusterSpec, spec_options
from volbench.extensions.kubernetes.pod_settings import (
    KIND,
    configured_texts,
    merged_settings,
    parse_settings,
    pod_keys,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.host import Host
    from volbench.store.layout import Layout

_CONTEXT = click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Context of the file in KUBECONFIG, or ~/.kube/config. Default: the current one.",
)
_NAMESPACE = click.option("--namespace", default="", metavar="NAME", help=NAMESPACE_HELP)
_OF_K8S = "Run in pods of a Kubernetes cluster, made for the campaign and removed after it."
_K8S = flag("--k8s", _OF_K8S)
# The cluster of a verb below `k8s`, as the keyword `address`
ADDRESS = option_group("address", ClusterAddress, _NAMESPACE, _CONTEXT, heading="Kubernetes")
# The cluster of a verb whose namespace is a field of its `ClusterSpec`, as the keyword `context`
CONTEXT = option_group("context", lambda context: context, _CONTEXT, heading="Kubernetes")


def all_settings(given: Iterable[str]) -> tuple[str, ...]:
    """Return settings of pods, with those of volbench.toml that are not given."""
    return merged_settings(given, configured_texts(configured_table("pod")))


def _parse_pod(
    context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    context.meta["pod"] = given  # as it was typed
    return parse_settings(ClusterSpec, all_settings(given))


def _parse_timeout(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> float:
    if other := next((text for text in given if not text.startswith("timeout=")), ""):
        raise InputError(
            f"--pod {other}: the pods of a campaign stay as they were made",
            hint="resume takes --pod timeout=TIME only",
        )
    settings = parse_settings(ClusterSpec, all_settings(given))
    return float(settings.get("timeout_s", ClusterSpec.timeout_s))


_POD = click.option(
    "--pod",
    "pod",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_parse_pod,
    help="Setting of the pods; repeatable. Keys: "
    + ", ".join(f"{key}*" if key.endswith(".") else key for key in pod_keys(ClusterSpec))
    + ". Default: the table [pod] of volbench.toml.",
)


def description(*only: str) -> OptionGroup:
    """Return the options for the fields of a `ClusterSpec`, as the keyword `described`.

    Args:
        only: some of the options; none for all. The settings of pods are always among them.
    """

    def make(pod: dict[str, Any], **fields: object) -> dict[str, Any]:
        return {**fields, **pod}

    return option_group(
        "described", make, *spec_options(ClusterSpec, only=only), _POD, heading="Kubernetes"
    )


DESCRIPTION = description()


@dataclass(frozen=True)
class NewPods(Addition):
    """Pods as the hosts of a new campaign."""

    placed: Placement | None  # None without --k8s

    @property
    def placement(self) -> Placement | None:
        """Pods to make."""
        return self.placed


def _new_pods(*, k8s: bool, described: dict[str, Any], context: str) -> NewPods:
    if not k8s:
        if option := _option_given({*described, "pod"}):
            raise InputError(f"{option} applies to pods only", hint="add --k8s")
        return NewPods(None)
    from volbench.extensions.kubernetes.pod_placement import PodPlacement

    spec = ClusterSpec(campaign=f"volbench-{secrets.token_hex(5)}", **described)
    return NewPods(PodPlacement(spec, ClusterAddress(context, spec.namespace)))


NEW_PODS = option_group("new_pods", _new_pods, *(_K8S, DESCRIPTION, _CONTEXT), heading="Kubernetes")


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
        if not any(host.kind == KIND for host in hosts):
            return nullcontext(hosts)
        from volbench.extensions.kubernetes.resumed_pods import revived_pods

        return revived_pods(hosts, root, timeout_s=self.pod_timeout_s)

    def removed(
        self, hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
    ) -> AbstractContextManager[Sequence[Host]]:
        """Yield machines and hosts whose pods are there; then remove the campaigns in pods."""
        if not any(host.kind == KIND for host in (*hosts, *planned)):
            return nullcontext(hosts)
        from volbench.extensions.kubernetes.removal import removed_pods

        return removed_pods(hosts, root, planned=planned)


@contextmanager
def noted_losses(layout: Layout, hosts: Sequence[ConnectedHost]) -> Iterator[None]:
    """Record the runs that are lost with their pods when an error ends the campaign."""
    try:
        yield
    except BaseException as error:
        if any(host.host.kind == KIND for host in hosts):
            from volbench.extensions.kubernetes.resumed_pods import record_losses

            record_losses([host.host for host in hosts], layout.root, error)
        raise


_TIMEOUT = click.option(
    "--pod",
    "pod_timeout_s",
    multiple=True,
    metavar="timeout=TIME",
    callback=_parse_timeout,
    help="How long to wait for pods that are recreated. Default: 10m.",
)
REVIVED_PODS = option_group("pods", PodHosts, _TIMEOUT, heading="Kubernetes")
REMOVED_PODS = option_group("pods", PodHosts)
