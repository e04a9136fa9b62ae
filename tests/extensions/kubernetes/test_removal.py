"""Removal of a campaign's objects, on a cluster that is a dictionary."""

from typing import Any, cast

import pytest

from tests.waiting import sleep_by
from volbench.errors import CampaignError, DeadlineError
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
        "storageClassName": "fast\n",
        "resources": {"requests": {"storage": "1Gi"}},
    },
)


class Objects:
    """Objects of a namespace; those of a stuck kind stay when they are deleted."""

    namespace = "n"

    def __init__(
        self, *, keep: bool = False, policy: str = "Delete", stuck: str = "", hidden: bool = False
    ) -> None:
        volume = {"capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": policy}
        self.stuck, self._hidden = stuck, hidden
        self._retains = policy == "Retain" or stuck == "PersistentVolume"
        self.kinds: dict[str, list[Manifest]] = {
            "ConfigMap": [item(CAMPAIGN, data={KEEP: "true" if keep else "false"})],
            "Pod": [item("volbench-1-0", spec={"nodeName": "n1"})],
            "PersistentVolumeClaim": [{**CLAIM}],
            "Lease": [item(CAMPAIGN)],
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

    def read_if_allowed(self, kind: str, name: str) -> Manifest | None:
        """Return an object; an empty one for a volume that may not be read."""
        return {} if self._hidden and kind == "PersistentVolume" else self.read(kind, name)

    def patch(self, kind: str, name: str, body: Manifest) -> None:
        """Merge metadata into an object."""
        found = self.read(kind, name)
        assert found is not None
        found["metadata"] = found["metadata"] | body["metadata"]

    def delete(self, kind: str, name: str, *, uid: str) -> bool:
        """Remove an object, unless it is stuck; volumes that are not retained go with claims."""
        assert uid == f"uid-{name}"
        if kind == self.stuck.removesuffix("!"):
            if self.stuck.endswith("!"):
                raise KeyboardInterrupt
            return True
        self.kinds[kind].clear()
        if kind == "PersistentVolumeClaim" and not self._retains:
            self.kinds["PersistentVolume"].clear()
        return True

    def give_up_soon(self) -> None:
        """Need no time at all."""

    def kubectl(self, *words: str, is_namespaced: bool = True) -> str:
        """Return a command."""
        return " ".join(("kubectl", *(("-n", "n") if is_namespaced else ()), *words))

    def command(self, verb: str, *names: str) -> str:
        """Return a command."""
        return " ".join(("volbench", "k8s", verb, *names, "--namespace", "n"))


def remove(objects: Objects, **options: Any) -> None:  # noqa: ANN401 - options of the removal
    """Remove the campaign."""
    removal.remove_campaign(cast("Cluster", objects), CAMPAIGN, **options)


def test_everything_of_a_campaign_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """Pods, claims and their owner; a volume that is deleted with its claim is not listed."""
    objects = Objects()
    remove(objects)
    kinds = ("Pod", "PersistentVolumeClaim", "PersistentVolume", "ConfigMap", "Lease")
    assert not any(objects.kinds[kind] for kind in kinds)
    assert capsys.readouterr().err == "removed volbench-1 from the namespace n\n"


@pytest.mark.parametrize(
    ("more", "command"),
    [
        ({"keep": True}, "kubectl -n n delete pvc volbench-1-0"),
        ({"policy": "Retain"}, "kubectl patch pv pv-1 -p "),
    ],
)
def test_volumes_that_remain_are_listed(
    more: dict[str, Any], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With their size, and the command that removes each."""
    remove(Objects(**more))
    printed = capsys.readouterr().err
    assert "# PV pv-1: 2Gi of fast" in printed
    assert command in printed


def test_kept_volumes_can_be_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """If that is asked for."""
    objects = Objects(keep=True)
    remove(objects, volumes=True)
    assert not objects.kinds["PersistentVolumeClaim"]
    assert "volumes remain" not in capsys.readouterr().err


def test_objects_that_stay_are_named(
    waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """After minutes, which are explained; with the trouble of their node, and what to do."""
    with pytest.raises(DeadlineError, match="has not removed the Pod volbench-1-0") as caught:
        remove(Objects(stuck="Pod"))
    assert "on its node n1: NotReady" in caught.value.message
    assert "then volbench k8s reap volbench-1 --namespace n" in caught.value.hint
    assert sum(waits) > 2 * SLOWEST_S
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == "waiting until the cluster has removed the Pod of volbench-1"
    assert printed[-1] == "  # PV pv-1: 2Gi of fast"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"hidden": True}, "could not check whether disks of removed claims stay .* PV pv-1: 1Gi"),
        ({"stuck": "PersistentVolume"}, "not deleted with their claims.*: PV pv-1: 2Gi of fast"),
    ],
)
def test_disks_that_may_remain_fail_the_removal(
    waits: list[float], more: dict[str, Any], message: str
) -> None:
    """A tenant may not read volumes, and a driver may not delete them: both are said."""
    objects = Objects(**more)
    with pytest.raises(CampaignError, match=message):
        remove(objects)
    assert not objects.kinds["Lease"]
    assert sum(waits) < 2 * 120


@pytest.mark.parametrize("kind", ["Pod", "PersistentVolumeClaim", "ConfigMap", "Lease"])
def test_an_interrupted_removal_is_continued_from_its_record(
    waits: list[float], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever was deleted before: a retained disk is named at the interruption, and once more."""
    del waits
    objects = Objects(policy="Retain", stuck=f"{kind}!")
    with pytest.raises(KeyboardInterrupt):
        remove(objects)
    printed = capsys.readouterr().err
    assert "# PV pv-1: 2Gi of fast" in printed
    assert "volbench k8s reap volbench-1 --namespace n" in printed
    objects.stuck = ""
    objects.kinds["PersistentVolumeClaim"].clear()
    remove(objects)
    assert "# PV pv-1: 2Gi of fast" in capsys.readouterr().err


def test_a_volume_that_is_being_made_is_named(
    monkeypatch: pytest.MonkeyPatch, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """A provisioner may end its work after its claim was deleted."""
    objects = Objects(policy="Retain")
    claim = item("c", spec={"resources": {"requests": {"storage": "1Gi"}}})
    objects.kinds["PersistentVolumeClaim"] = [claim]
    (volume,), objects.kinds["PersistentVolume"] = objects.kinds["PersistentVolume"], []
    volume["metadata"]["name"] = "pvc-uid-c"

    def sleep(pause_s: float) -> None:
        waits.append(pause_s)
        if sum(waits) > 2:
            objects.kinds["PersistentVolume"] = [volume]

    sleep_by(monkeypatch, sleep)
    remove(objects)
    assert "# PV pvc-uid-c: 2Gi of no class" in capsys.readouterr().err


def test_claims_that_are_being_deleted_are_not_kept() -> None:
    """Those of a campaign whose owner is gone are kept, until they are deleted."""
    objects = Objects()
    objects.kinds["ConfigMap"].clear()
    assert removal.has_volumes_only(cast("Cluster", objects), CAMPAIGN)
    (claim,) = objects.kinds["PersistentVolumeClaim"]
    claim["metadata"] = {**claim["metadata"], "deletionTimestamp": "2026-11-29T12:00:00Z"}
    assert not removal.has_volumes_only(cast("Cluster", objects), CAMPAIGN)
