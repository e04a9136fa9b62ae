"""Manifests of a campaign: valid under strict schemas, safe by default, and found by label."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.kubernetes.schemas import NEWEST, problems
from volbench.extensions.kubernetes.api_values import parse_toleration
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec
from volbench.extensions.kubernetes.manifests import (
    CAMPAIGN_LABEL,
    MANAGED_BY,
    access_manifests,
    objects,
    planned_pods,
    role_paths,
)
from volbench.model.document.yaml_text import yaml_documents

SNAPSHOT = Path(__file__).with_name("manifests.yaml")


def spec(**more: Any) -> ClusterSpec:  # noqa: ANN401 - any field of the specification
    """Return a specification with most fields set, some of them changed."""
    usual: dict[str, Any] = {
        "campaign": "volbench-0123456789",
        "image": "registry.example.com/volbench-fio:1",
        "namespace": "disktest",
        "storage_classes": ("managed-premium-retain-nocache",),
        "size": "250Gi",
        "node_selector": {"tag": "disktest", "numbered": "007"},
        "tolerations": (parse_toleration("dedicated=yes:NoSchedule"), parse_toleration("gpu")),
        "image_pull_secrets": ("registry",),
        "requests": {"cpu": "2", "memory": "1Gi"},
    }
    return ClusterSpec(**{**usual, **more})


def every_kind() -> Iterator[ClusterSpec]:
    """Yield a specification for every combination of volume, replicas and owner."""
    classes = ("fast", "slow.example.com")
    modes = ("Filesystem", "Block")
    for replicas, volume_mode, needs_os in product((1, 3), modes, (False, True)):
        more: dict[str, Any] = {"replicas": replicas, "needs_os": needs_os}
        yield spec(storage_classes=classes, volume_mode=volume_mode, **more)
        yield spec(storage_classes=(), volume_mode=volume_mode, keep=True, **more)
        yield spec(volume_mode=volume_mode, origin=("claim", "gold"), **more)
        yield spec(volume_mode=volume_mode, origin=("snapshot", "nightly"), **more)
        if volume_mode == "Filesystem":
            yield spec(os_disk=True, storage_classes=(), **more)
            yield spec(access_mode="ReadWriteMany", **more)
        if replicas == 1:
            claims = {"claims": ("mine", "theirs"), "storage_classes": (), "size": ""}
            yield spec(volume_mode=volume_mode, **claims, **more)


def within(value: object) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a manifest."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from within(child)


def pods(spec: ClusterSpec) -> list[dict[str, Any]]:
    """Return the specification of every pod."""
    return [item["spec"] for item in objects(spec) if item["kind"] == "Pod"]


@pytest.mark.parametrize("version", NEWEST)
def test_manifests_pass_strict_schemas(version: str) -> None:
    """Every combination, with and without an owner, is valid: no field is misspelt."""
    manifests = [item for each in every_kind() for item in objects(each, owner_uid="u-1")]
    manifests += [item for each in every_kind() for item in objects(each)]
    manifests += access_manifests(namespace="disktest")
    assert {text for item in manifests for text in problems(item, version)} == set()


def test_the_manifests_of_the_article_are_as_reviewed() -> None:
    """One class on a labelled node, and two pods of another on raw block volumes."""
    article = objects(spec(needs_os=True))
    several = objects(spec(replicas=2, volume_mode="Block", tolerations=()))
    text = yaml_documents([*article, *several])
    assert text == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("each", list(every_kind()))
def test_everything_is_found_by_label_and_has_an_owner(each: ClusterSpec) -> None:
    """All objects, pods and claims have both labels; all but kept claims have the owner."""
    owner, *others = objects(each, owner_uid="u-1")
    described = [
        part["metadata"] for item in [owner, *others] for part in within(item) if "metadata" in part
    ]
    wanted = {MANAGED_BY: "volbench", CAMPAIGN_LABEL: each.campaign}
    assert all(wanted.items() <= metadata["labels"].items() for metadata in described)
    kept = [item["kind"] for item in others if "ownerReferences" not in item["metadata"]]
    assert kept == (["PersistentVolumeClaim"] * each.replicas if each.keep else [])
    names = [(item["kind"], item["metadata"]["name"]) for item in [owner, *others]]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("each", list(every_kind()))
def test_pods_have_no_privileges(each: ClusterSpec) -> None:
    """File tests pass the restricted Pod Security Standard, block tests the baseline."""
    for pod in pods(each):
        (container,) = pod["containers"]
        security, own = pod["securityContext"], container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        has_devices = "volumeDevices" in container
        assert has_devices is each.is_block
        assert security["runAsNonRoot"] is not has_devices
        assert (security["runAsUser"] == 0) is has_devices
        assert pod["automountServiceAccountToken"] is False
        assert "limits" not in container["resources"]


@pytest.mark.parametrize(("user", "begin"), [(0, "chmod 755 /volbench; "), (1000, "rm -f ")])
def test_the_work_folder_of_root_is_its_own(user: int, begin: str) -> None:
    """Root's agent refuses a folder that others can write to, as an emptyDir is; others cannot."""
    *_, pod = objects(spec(run_as_user=user))
    (container,) = pod["spec"]["containers"]
    assert container["command"][-1].startswith(begin)


def test_a_pod_runs_once_and_ends() -> None:
    """A repeated run would overwrite its own measurement."""
    _, _, pod = objects(spec(deadline_s=60))
    content: Any = pod["spec"]
    assert content["restartPolicy"] == "Never"
    assert content["activeDeadlineSeconds"] == 60


@pytest.mark.parametrize("each", list(every_kind()))
def test_each_role_has_a_mount(each: ClusterSpec) -> None:
    """The path of each role is a volume of the pod, never its root filesystem."""
    for pod in pods(each):
        (container,) = pod["containers"]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        devices = {device["devicePath"] for device in container.get("volumeDevices", [])}
        assert {*role_paths(each).values()} <= mounts | devices
        named = {volume["name"] for volume in pod["volumes"]}
        used = [*container["volumeMounts"], *container.get("volumeDevices", [])]
        assert {mount["name"] for mount in used} == named


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({}, [("c-0", "a", "c-0", 1), ("c-1", "b", "c-1", 2)]),
        ({"storage_classes": (), "os_disk": True}, [("c-0", "", "", 0)]),
        (
            {"replicas": 2},
            [
                ("c-0-0", "a", "c-0-0", 1),
                ("c-0-1", "a", "c-0-1", 1),
                ("c-1-0", "b", "c-1-0", 2),
                ("c-1-1", "b", "c-1-1", 2),
            ],
        ),
    ],
)
def test_names_of_pods_and_claims_are_predictable(
    more: dict[str, Any], names: list[tuple[str, str, str, int]]
) -> None:
    """Classes take turns, replicas of a class are measured together."""
    usual = {"campaign": "c", "storage_classes": ("a", "b")}
    assert planned_pods(spec(**{**usual, **more})) == names


def test_a_claim_that_exists_is_neither_made_nor_changed() -> None:
    """No object of its name, and no group for the files on it."""
    existing = spec(claims=("mine",), storage_classes=(), size="")
    owner, pod = objects(existing)
    assert (owner["kind"], pod["kind"]) == ("ConfigMap", "Pod")
    assert "fsGroup" not in pod["spec"]["securityContext"]
    assert [planned.claim for planned in planned_pods(existing)] == ["mine"]


@pytest.mark.parametrize("text", ["yes", "On", "1e3", "0x1F", "12:30", "~", "", "=", "null", "y"])
def test_ambiguous_texts_are_quoted(text: str) -> None:
    """Each of these is something else than text in YAML 1.1, or to kubectl."""
    assert f'key: "{text}"\n' == yaml_documents([{"key": text}])
