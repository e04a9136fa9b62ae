"""Specification of a campaign on a cluster, which is checked before the cluster is asked."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click
import pytest

from tests.extensions.kubernetes.local_cluster import ROOT
from volbench.errors import InputError
from volbench.extensions.kubernetes.api_values import Toleration, parse_toleration
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec, parse_source, spec_options
from volbench.extensions.kubernetes.pod_settings import (
    configured_texts,
    merged_settings,
    parse_settings,
    pod_keys,
)

REFUSED = {
    "campaign": ("", "Volbench", "-a", "a\n", "a" * 41),
    "namespace": ("kube system", "../default"),
    "image": ("",),
    "size": ("", "0", "0.0Gi", "250g", "1e9"),
}


def spec(**more: Any) -> ClusterSpec:  # noqa: ANN401 - any field of the specification
    """Return a valid specification, with some fields changed."""
    given = {"campaign": "volbench-1", "image": "registry.example.com/fio:1", "size": "1Gi"}
    return ClusterSpec(**{**given, **more})


@pytest.mark.parametrize(
    "more",
    [
        *({field: value} for field, values in REFUSED.items() for value in values),
        {"os_disk": True, "volume_mode": "Block"},
        {"os_disk": True, "storage_classes": ("fast",)},
        {"os_disk": True, "keep": True},
        {"os_disk": True, "origin": ("claim", "gold")},
        {"claims": ("mine",), "origin": ("snapshot", "nightly")},
        {"os_disk": True, "access_mode": "ReadWriteOncePod"},
        {"volume_mode": "Block", "access_mode": "ReadWriteMany", "replicas": 2},
        {"claims": ("mine",), "size": "", "replicas": 2},
        {"claims": ("mine",), "size": "", "keep": True},
        {"claims": ("mine",), "size": "", "storage_classes": ("fast",)},
        {"claims": ("mine",)},
    ],
)
def test_values_that_the_cluster_rejects_are_refused(more: dict[str, object]) -> None:
    """Names, labels and quantities are checked before anything is created.

    The node's disk has neither a storage class nor a block volume, and cannot be kept.
    """
    with pytest.raises(InputError):
        spec(**more)


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("gpu", Toleration(key="gpu")),
        ("gpu:NoSchedule", Toleration(key="gpu", effect="NoSchedule")),
        ("gpu=", Toleration(key="gpu", value="")),
        ("x.io/gpu=a:NoExecute", Toleration(key="x.io/gpu", value="a", effect="NoExecute")),
    ],
)
def test_tolerations_are_written_like_taints(text: str, taint: Toleration) -> None:
    """The form is that of kubectl taint."""
    assert parse_toleration(text) == taint


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_source, text) for text in ("nightly", "snapshot:", "pod:a")),
        *((parse_toleration, text) for text in ("", "=x", ":NoSchedule", "a:", "a:Never")),
    ],
)
def test_invalid_sources_and_tolerations_are_refused(
    parse: Callable[[str], object], text: str
) -> None:
    """A volume is made from a snapshot or a claim; a toleration has a key, and a known effect."""
    with pytest.raises(InputError):
        parse(text)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["imge=x"], "pods have no setting 'imge'"),
        (["request=1"], "pods have no setting 'request'"),
        (["request.=1"], "pods have no setting 'request.'"),
        (["image"], "the setting image has no value"),
        (["node-selector=tag"], "is not a label with its value"),
        (["image-pull-policy=sometimes"], "must be|unknown image pull policy"),
        (["request.cpu=two"], "is not a positive quantity"),
        (["run-as-user=-1"], "must be a number"),
        (["os-disk=perhaps"], "is neither true nor false"),
        (["deadline=soon"], "soon"),
    ],
)
def test_invalid_settings_are_refused(texts: list[str], words: str) -> None:
    """The error names the key or its value, before anything is created."""
    with pytest.raises(InputError, match=words):
        parse_settings(ClusterSpec, texts)


def test_settings_become_fields() -> None:
    """Some can be given several times, or for several resources; a switch needs no value."""
    texts = ["image-pull-secret=a", "image-pull-secret=b", "limit.cpu=2", "limit.memory=1Gi"]
    texts += ["limit.cpu=4", "run-as-user=0", "run-as-user=7"]  # the last one counts
    texts += ["os-disk", "node-selector=disk=nvme", "spread=zone", "image-pull-policy=never"]
    assert parse_settings(ClusterSpec, texts) == {
        "image_pull_secrets": ("a", "b"),
        "limits": {"cpu": "4", "memory": "1Gi"},
        "run_as_user": 7,
        "os_disk": True,
        "node_selector": {"disk": "nvme"},
        "topology_key": "topology.kubernetes.io/zone",
        "image_pull_policy": "Never",
    }


def test_configured_settings_hold_unless_their_key_is_given() -> None:
    """Tables and lists of volbench.toml are keys that are given several times."""
    table = {"image": "a", "request": {"cpu": 2}, "toleration": ["x", "y"], "os-disk": True}
    configured = configured_texts({**table, "node-selector": {"disk": "nvme"}})
    assert merged_settings(["image=b", "toleration=z"], configured) == (
        "request.cpu=2",
        "os-disk=true",
        "node-selector=disk=nvme",
        "image=b",
        "toleration=z",
    )


def test_every_field_is_an_option_or_a_setting() -> None:
    """The command line is made from the fields: none is forgotten, none lacks a help text."""
    verb = click.Command("verb")
    for option in spec_options(ClusterSpec):
        option(verb)
    names = {parameter.name for parameter in verb.params}
    keys = pod_keys(ClusterSpec)
    assert len(names) + len(keys) == len(fields(ClusterSpec)) - len({"campaign", "needs_os"})
    assert all(parameter.help for parameter in verb.params if isinstance(parameter, click.Option))
    page = (ROOT / "docs/reference/kubernetes.md").read_text(encoding="utf-8")
    assert all(f"| `{key.name}" in page for key in keys.values())
