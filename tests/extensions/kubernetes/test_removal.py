"""Removal of a campaign's objects, on a cluster that is a dictionary."""

from typing import Any, cast

import pytest

from volbench.errors import DeadlineError
from volbench.extensions.kubernetes import removal
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.manifests import KEEP

CAMPAIGN = "volbench-1"
SLOWEST_S = 81
"""Longest removal that was measured on a healthy cluster, after an outage of its API server."""


def item(name: str, **fields: object) -> Manifest:
    """Return an object of the campaign."""
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **fields}


CLAIM = item(
    "volbench-1-0",
    spec={
        "volumeName": "pv-1",
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    },
)


class Objects:
    """Objects of a namespace; those of a stuck kind stay when they are deleted."""

    namespace = "n"
    options = "--namespace n"

    def __init__(self, *, keep: bool = False, policy: str = "Delete", stuck: str = "") -> None:
        volume = {"capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": policy}
        self._stuck = stuck
        self.kinds: dict[str, list[Manifest]] = {
            "ConfigMap": [item(CAMPAIGN, data={KEEP: "true" if keep else "false"})],
            "Pod": [item("volbench-1-0", spec={"nodeName": "n1"})],
            "PersistentVolumeClaim": [CLAIM],
            "PersistentVolume": [item("pv-1", spec=volume)],
            "Node": [item("n1", status={"conditions": [{"type": "Ready", "status": "Unknown"}]})],
        }

    def list(self, kind: str, selector: str) -> list[Manifest]:
        """Return the objects of a kind."""
        assert CAMPAIGN in selector
        return [*self.kinds.get(kind, [])]

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return an object."""
        return next((own for own in self.kinds[kind] if own["metadata"]["name"] == name), None)

    read_if_allowed = read

    def delete(self, kind: str, name: str, *, uid: str) -> bool:
        """Remove an object, unless it is stuck."""
        assert uid == f"uid-{name}"
        if kind != self._stuck:
            self.kinds[kind].clear()
        return True


def remove(objects: Objects, **options: Any) -> None:  # noqa: ANN401 - options of the removal
    """Remove the campaign."""
    removal.remove_campaign(cast("Cluster", objects), CAMPAIGN, **options)


def test_everything_of_a_campaign_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """Pods, claims and their owner; a volume that is deleted with its claim is not listed."""
    objects = Objects()
    remove(objects)
    assert not any(objects.kinds[kind] for kind in ("Pod", "PersistentVolumeClaim", "ConfigMap"))
    assert capsys.readouterr().err == "removed volbench-1 from the namespace n\n"


@pytest.mark.parametrize(
    ("more", "command"),
    [
        ({"keep": True}, "kubectl -n n delete pvc volbench-1-0"),
        ({"policy": "Retain"}, "kubectl patch pv pv-1 -p '"),
    ],
)
def test_volumes_that_remain_are_listed(
    more: dict[str, Any], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With their size, and the command that removes each."""
    remove(Objects(**more))
    printed = capsys.readouterr().err
    assert "# 2Gi of fast" in printed
    assert command in printed


def test_kept_volumes_can_be_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """If that is asked for."""
    objects = Objects(keep=True)
    remove(objects, volumes=True)
    assert not objects.kinds["PersistentVolumeClaim"]
    assert "volumes remain" not in capsys.readouterr().err


def test_objects_that_stay_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After minutes, which are explained; with the trouble of their node, and what to do."""
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    monkeypatch.setattr("time.monotonic", lambda: 7.0 + sum(waits))
    with pytest.raises(DeadlineError, match="has not removed the Pod volbench-1-0") as caught:
        remove(Objects(stuck="Pod"))
    assert "on its node n1: NotReady" in caught.value.message
    assert "then volbench k8s reap volbench-1 --namespace n" in caught.value.hint
    assert sum(waits) > 2 * SLOWEST_S
    explained = "waiting until the cluster has removed the Pod of volbench-1\n"
    assert capsys.readouterr().err == explained
