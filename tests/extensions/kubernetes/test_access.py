"""Access rights on a real cluster: the shipped role is enough, and pods have no privileges."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk, credentials
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.errors import AuthError, CampaignError
from volbench.extensions.kubernetes.cluster import open_cluster
from volbench.extensions.kubernetes.manifests import access_manifests

RESTRICTED = "restricted-pods"
UNPRIVILEGED = IMAGE[:-2]  # without run-as-user


def grant(desk: Desk, name: str, *, without: str = "") -> Path:
    """Return credentials of a new account with the shipped role, less the rule of a resource."""
    for manifest in access_manifests(namespace=desk.api.namespace, name=name):
        rules: Any = manifest.get("rules", [])
        kept = [rule for rule in rules if without not in rule["resources"]]
        desk.api.create({**manifest, "rules": kept} if rules else manifest)
    until(lambda: desk.api.read("ServiceAccount", name))
    return credentials(desk, name)


def test_the_shipped_role_is_enough(desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service account with nothing else runs a campaign, and removes what it made."""
    own = grant(desk, "own")
    monkeypatch.setenv("KUBECONFIG", str(own))
    done = desk.run("c", str(job), "--storage-class", "fast")
    assert done.returncode == 0, done.stderr
    assert len(campaign_data(desk.folder / "c").summary()) == 1
    several = desk.run("d", str(job), "--storage-class", "fast", "--replicas", "2")
    assert several.returncode == 0, several.stderr
    reaped = call("k8s", "reap", "--namespace", desk.api.namespace)
    assert reaped.returncode == 0, reaped.stderr
    api = open_cluster(namespace=desk.api.namespace)
    listed = call("k8s", "storageclass", "--namespace", desk.api.namespace, *IMAGE)
    assert "all that campaigns need" in listed.stdout, listed.stderr
    assert f"--claim-size 4Gi {' '.join(IMAGE)} --namespace" in listed.stdout
    for kind in ("Secret", "ServiceAccount", "Role", "PersistentVolume"):
        with pytest.raises(AuthError, match="cannot list"):
            api.list(kind)
    api.close()
    elsewhere = open_cluster(namespace="kube-system")
    with pytest.raises(AuthError, match="cannot list"):
        elsewhere.list("Pod")
    elsewhere.close()


@pytest.mark.parametrize("resource", ["configmaps", "pods/exec"])
def test_a_missing_right_is_named(
    desk: Desk, job: Path, resource: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of the rules the campaign is refused in the cluster's words, and cleaned up."""
    own = grant(desk, f"no-{resource.replace('/', '-')}", without=resource)
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", str(own))
        done = desk.run("c", str(job), "--storage-class", "fast")
        listed = call("k8s", "storageclass", "--namespace", desk.api.namespace).stdout
    assert f" {resource}" in next(line for line in listed.splitlines() if "Rights" in line)
    assert done.returncode == AuthError.exit_code, done.stderr
    assert resource in done.stderr
    assert "cannot" in done.stderr


def test_a_disk_that_a_tenant_cannot_look_for_is_named(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Role alone shows no PersistentVolume: nobody knows whether it stays."""
    own = grant(desk, "tenant", without="persistentvolumes")
    monkeypatch.setenv("KUBECONFIG", str(own))
    done = desk.run("c", str(job), "--storage-class", "fast")
    assert done.returncode == CampaignError.exit_code, done.stderr
    assert re.search(r"could not check .* PV pvc-\S+: 64Mi of fast", done.stderr)
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi", "--count", "2")
    timed = call("k8s", "lifecycle", *place, "--storage-class", "fast")
    assert timed.returncode == CampaignError.exit_code, timed.stderr
    assert timed.stderr.count("PV pvc-") == 2


@pytest.fixture
def restricted(desk: Desk) -> Iterator[str]:
    """Make a namespace that enforces the restricted Pod Security Standard."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": RESTRICTED, "labels": label}
    desk.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    api = open_cluster(namespace=RESTRICTED)
    until(lambda: api.read("ServiceAccount", "default"))
    yield RESTRICTED
    assert [item["metadata"]["name"] for item in api.list("Pod")] == []
    api.close()
    desk.api.delete("Namespace", RESTRICTED)


def test_file_tests_pass_the_restricted_standard(desk: Desk, job: Path, restricted: str) -> None:
    """Pods run without root where the volume allows; a cluster that insists refuses root."""
    place = ("--k8s", "--namespace", restricted, "--pod", "os-disk", *UNPRIVILEGED)
    done = call("run", job, *place, "-o", "c", cwd=desk.folder)
    assert done.returncode == 0, done.stderr
    assert campaign_data(desk.folder / "c").summary()["iops"].min() > 0
    refused = call("run", job, *place, "--pod", "run-as-user=0", "-o", "d", cwd=desk.folder)
    assert refused.returncode not in {0, 1}, refused.stderr
    assert "violates PodSecurity" in refused.stderr
