"""Specification of a campaign on a cluster, which is checked before the cluster is asked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
import pytest

from volbench.errors import InputError
from volbench.extensions.kubernetes.cluster_spec import (
    ClusterSpec,
    Toleration,
    parse_layers,
    parse_pairs,
    parse_toleration,
    quantity_bytes,
    spec_options,
)


def spec(**more: Any) -> ClusterSpec:  # noqa: ANN401 - any field of the specification
    """Return a valid specification, with some fields changed."""
    given = {"campaign": "volbench-1", "image": "registry.example.com/fio:1", "size": "1Gi"}
    return ClusterSpec(**{**given, **more})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("campaign", ""),
        ("campaign", "Volbench"),
        ("campaign", "-a"),
        ("campaign", "a\n"),
        ("campaign", "a" * 41),
        ("namespace", "kube system"),
        ("namespace", "../default"),
        ("image", ""),
        ("image", "--privileged"),
        ("image", "fio:1 --rm"),
        ("storage_classes", ("fast", "Fast")),
        ("storage_classes", ("a/b",)),
        ("storage_classes", ("a" * 254,)),
        ("size", ""),
        ("size", "0"),
        ("size", "0.0Gi"),
        ("size", "250g"),
        ("size", "-1Gi"),
        ("size", "1e9"),
        ("replicas", 0),
        ("replicas", 1001),
        ("spread", "a b"),
        ("node_selector", {"$(x)": "y"}),
        ("node_selector", {"x": "a b"}),
        ("node_selector", {"x": "y" * 64}),
        ("node_selector", {"Example.com/x": "y"}),
        ("node_selector", {"": "y"}),
        ("image_pull_policy", "never"),
        ("image_pull_secrets", ("a_b",)),
        ("service_account", "me!"),
        ("pod_requests", {"cpu": "two"}),
        ("pod_limits", {"c p u": "2"}),
        ("run_as_user", -1),
        ("deadline_s", 0),
    ],
)
def test_values_that_the_cluster_rejects_are_refused(field: str, value: object) -> None:
    """Names, labels and quantities are checked before anything is created."""
    with pytest.raises(InputError):
        spec(**{field: value})


@pytest.mark.parametrize(
    "more",
    [
        {"os_disk": True, "volume_mode": "Block"},
        {"os_disk": True, "storage_classes": ("fast",)},
        {"os_disk": True, "keep": True},
        {"os_disk": True, "ephemeral": True},
        {"os_disk": True, "from_claim": "gold"},
        {"claims": ("mine",), "from_snapshot": "nightly"},
        {"claims": ("mine",), "size": "", "attributes_class": "fast"},
        {"os_disk": True, "attributes_class": "fast"},
        {"attributes_class": "not a name"},
        {"from_claim": "gold", "from_snapshot": "nightly"},
        {"os_disk": True, "access_mode": "ReadWriteOncePod"},
        {"volume_mode": "Block", "access_mode": "ReadWriteMany", "replicas": 2},
        {"claims": ("mine",), "size": "", "replicas": 2},
        {"claims": ("mine",), "size": "", "keep": True},
        {"claims": ("mine",), "size": "", "storage_classes": ("fast",)},
        {"claims": ("mine",)},
        {"claims": ("not a name",), "size": ""},
        {"ephemeral": True, "keep": True},
        {"is_parallel": True, "replicas": 2},
        {"layers": ("claim", "file"), "volume_mode": "Block"},
        {"layers": ("claim", "file"), "storage_classes": ("fast", "slow")},
        {"layers": ("claim", "file"), "from_claim": "gold"},
        {"layers": ("claim", "file"), "device_claim": "disk"},
        {"layers": ("device", "file")},
        {"device_claim": "disk"},
    ],
)
def test_contradictions_are_refused(more: dict[str, object]) -> None:
    """The node's disk has neither a storage class nor a block volume, and cannot be kept."""
    with pytest.raises(InputError):
        spec(**more)


def test_a_block_volume_needs_a_pod_that_runs_as_root() -> None:
    """Device nodes in a container belong to root; folders are opened without privileges."""
    assert spec().user > 0
    assert spec(volume_mode="Block").user == 0
    assert spec(volume_mode="Block", run_as_user=1000).user == 1000


@pytest.mark.parametrize("text", ["file", "file,file", "claim,disk", "claim,,file", "all"])
def test_unknown_layers_are_refused(text: str) -> None:
    """One layer has nothing to be compared with."""
    with pytest.raises(InputError, match="two or three different layers"):
        parse_layers(text)


def test_layers_are_compared_from_the_lowest_up() -> None:
    """The lowest is the base of a comparison, in whatever order they are written."""
    assert parse_layers("file,device") == ("device", "file")
    assert parse_layers("") == ()


def test_the_node_disk_needs_no_size() -> None:
    """A limit of an emptyDir is optional."""
    assert spec(os_disk=True, size="").size == ""


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


@pytest.mark.parametrize("text", ["", "=x", ":NoSchedule", "a:", "a:Never", "a=b c", "a=b=c"])
def test_invalid_tolerations_are_refused(text: str) -> None:
    """A toleration has a key, and an effect that exists."""
    with pytest.raises(InputError):
        parse_toleration(text)


@pytest.mark.parametrize("texts", [["a"], ["=b"], ["a=1", "a=2"]])
def test_invalid_pairs_are_refused(texts: list[str]) -> None:
    """The error names the option; a key that occurs twice is an error, too."""
    with pytest.raises(InputError, match="--node-selector"):
        parse_pairs(texts, option="--node-selector")


def test_every_option_is_a_field_with_help() -> None:
    """The command line is made from the fields: none is forgotten, none lacks a help text."""
    verb = click.Command("verb")
    for option in spec_options(ClusterSpec):
        option(verb)
    names = {parameter.name for parameter in verb.params}
    assert names == {field.name for field in fields(ClusterSpec)} - {"campaign", "needs_os"}
    assert all(parameter.help for parameter in verb.params if isinstance(parameter, click.Option))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250Gi", 250 * 1024**3),
        ("1.5G", 1_500_000_000),
        ("64Ki", 65536),
        ("2k", 2000),
        ("7", 7),
        ("500m", 0),
    ],
)
def test_quantities_become_bytes(text: str, expected: int) -> None:
    """With i the base is 1024, without it 1000; less than a byte is nothing."""
    assert quantity_bytes(text) == expected
