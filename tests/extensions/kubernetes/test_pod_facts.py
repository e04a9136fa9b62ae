"""Facts of a pod, from objects as a cloud's API server returns them."""

from typing import cast

import pytest

from volbench.extensions.catalogue.class_limits import class_limits
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.pod_facts import PodFacts
from volbench.model.profile.profile_settings import Limits

HANDLE = "/subscriptions/0000/resourceGroups/mc/providers/Microsoft.Compute/disks/pvc-1"
OBJECTS: dict[tuple[str, str], Manifest] = {
    ("Node", "aks-pool-0"): {
        "metadata": {
            "labels": {
                "node.kubernetes.io/instance-type": "Standard_D4s_v5",
                "topology.kubernetes.io/zone": "westeurope-1",
            }
        },
        "status": {"nodeInfo": {"systemUUID": "6e0e", "machineID": "4c1d"}},
    },
    ("PersistentVolumeClaim", "c-0"): {
        "metadata": {"uid": "u"},
        "spec": {"storageClassName": "managed-csi", "volumeName": "pvc-1"},
        "status": {"capacity": {"storage": "250Gi"}},
    },
    ("PersistentVolume", "pvc-1"): {
        "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "disk.csi.azure.com"}},
        "spec": {"csi": {"driver": "disk.csi.azure.com", "volumeHandle": HANDLE}},
    },
    ("StorageClass", "managed-csi"): {
        "provisioner": "disk.csi.azure.com",
        "parameters": {
            "skuName": "PremiumV2_LRS",
            "DiskIOPSReadWrite": "1500",
            "DiskMBpsReadWrite": "200",
        },
    },
}
LIMITS = {"ephemeral-storage": "64Mi", "memory": "1Gi"}
POD: Manifest = {
    "spec": {"nodeName": "aks-pool-0", "containers": [{"resources": {"limits": LIMITS}}]}
}


class Objects:
    """Objects of a cluster; the cluster-wide ones may be forbidden."""

    def __init__(self, *, allows: bool = True, **replaced: Manifest) -> None:
        self._allows = allows
        self._replaced = replaced
        self.asked: list[str] = []

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return an object."""
        self.asked.append(kind)
        return self._replaced.get(kind, OBJECTS.get((kind, name)))

    def read_if_allowed(self, kind: str, name: str) -> Manifest | None:
        """Return an object, or an empty one."""
        return self.read(kind, name) if self._allows else {}


def facts(objects: Objects) -> PodFacts:
    """Return the facts of pods in a cluster."""
    return PodFacts(cast("Cluster", objects))


def test_node_and_volume_are_described() -> None:
    """Each node is asked for once, however many pods it has."""
    objects = Objects()
    pods = facts(objects)
    for _ in range(2):
        assert pods.of(POD, "c-0") == {
            "machine": "6e0e",
            "machine_type": "Standard_D4s_v5",
            "zone": "westeurope-1",
            "storage_class": "managed-csi",
            "claim_uid": "u",
            "persistent_volume": "pvc-1",
            "volume_size": "250Gi",
            "volume_bytes": 250 * 1024**3,
            "csi_driver": "disk.csi.azure.com",
            "volume_handle": HANDLE,
            "ephemeral_limit_bytes": 64 * 1024**2,
        }
    assert objects.asked.count("Node") == 1


def test_forbidden_or_missing_objects_leave_facts_empty() -> None:
    """An account of one namespace sees its claim; a pod without a claim has no volume."""
    found = facts(Objects(allows=False)).of(POD, "c-0")
    assert (found["machine"], found["csi_driver"]) == ("", "")
    assert (found["persistent_volume"], found["volume_size"]) == ("pvc-1", "250Gi")
    assert not any(facts(Objects()).of({"spec": {}}, "").values())


def limits(objects: Objects) -> Limits | None:
    """Return the limits of the volume of the pod."""
    pods = facts(objects)
    return pods.limits(pods.of(POD, "c-0"))


def storage_class(**parameters: str) -> Manifest:
    """Return the class with other parameters."""
    return {"provisioner": "disk.csi.azure.com", "parameters": parameters}


def test_class_and_node_say_what_the_volume_is_allowed() -> None:
    """What the class asks for is the promise, with its source and date, on the node's machine."""
    parameters = {"skuname": "PremiumV2_LRS", "diskIOPSReadWrite": "3500"}
    parameters["DiskMBpsReadWrite"] = "200"
    found = limits(Objects(StorageClass=storage_class(**parameters)))
    assert found is not None
    assert (found.name, found.iops) == ("azure/premium-ssd-v2", 3500)
    assert found.bandwidth_bytes_per_s == 200e6
    assert found.machine == "azure/Standard_D4s_v5"
    assert found.origin == "StorageClass managed-csi"
    assert found.checked == "2026-11-21"


def test_attributes_of_the_volume_are_what_it_was_made_with() -> None:
    """A class that was replaced since says nothing of the volume."""
    volume = OBJECTS["PersistentVolume", "pvc-1"]
    attributes = {"skuName": "Premium_LRS", "requestedsizegib": "250"}
    csi = volume["spec"]["csi"] | {"volumeAttributes": attributes}
    classless = volume | {"spec": {"csi": csi}, "metadata": {}}
    for objects in (
        Objects(PersistentVolume=volume | {"spec": {"csi": csi}}, StorageClass=storage_class()),
        Objects(PersistentVolume=classless),
    ):
        found = limits(objects)
        assert found is not None
        assert (found.name, found.iops) == ("azure/premium-ssd", 1100)


@pytest.mark.parametrize(
    "objects",
    [
        Objects(allows=False),
        Objects(StorageClass={}),
        Objects(PersistentVolume=OBJECTS["PersistentVolume", "pvc-1"] | {"metadata": {}}),
        Objects(StorageClass=storage_class(skuName="Premium_LRS", enableBursting="true")),
    ],
    ids=["forbidden", "no-class", "made-by-hand", "on-demand-bursts"],
)
def test_without_facts_there_are_no_limits(objects: Objects) -> None:
    """Nothing is assumed of a volume that the class did not make, or that may have more."""
    assert limits(objects) is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"skuName": "PremiumV2_LRS", "DiskIOPSReadWrite": "1500"}, "supports at least 3,000 IOPS"),
        ({"skuName": "PremiumV2_LRS", "DiskIOPSReadWrite": "1e400"}, "is not a number of IOPS"),
        ({"skuName": "Unheard_LRS"}, "there is no volume type 'azure/unheard_lrs'"),
    ],
)
def test_parameters_that_cannot_be_are_noted(
    parameters: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The campaign goes on without limits, and says why."""
    assert limits(Objects(StorageClass=storage_class(**parameters))) is None
    said = capsys.readouterr().err
    assert said.startswith("note: the storage class managed-csi gives no limits: ")
    assert message in said


@pytest.mark.parametrize(
    ("driver", "parameters", "name", "iops", "bandwidth"),
    [
        ("ebs.csi.aws.com", {}, "aws/gp3", 3000, 125 * 2**20),
        ("ebs.csi.aws.com", {"iops": "4000", "throughput": "250"}, "aws/gp3", 4000, 250 * 2**20),
        ("ebs.csi.aws.com", {"type": "io2", "iopsPerGB": "10"}, "aws/io2", 2500, 640 * 2**20),
        ("disk.csi.azure.com", {}, "azure/standard-ssd", 500, 60e6),
        ("disk.csi.azure.com", {"skuName": "UltraSSD_LRS"}, "azure/ultra-disk", 500, 100e6),
        (
            "disk.csi.azure.com",
            {"storageAccountType": "Standard_ZRS"},
            "azure/standard-hdd",
            500,
            6e7,
        ),
        (
            "pd.csi.storage.gke.io",
            {
                "type": "hyperdisk-balanced",
                "provisioned-iops-on-create": "4000",
                "provisioned-throughput-on-create": "180Mi",
            },
            "gcp/hyperdisk-balanced",
            4000,
            180 * 2**20,
        ),
    ],
)
def test_parameters_of_each_driver(
    driver: str, parameters: dict[str, str], name: str, iops: float, bandwidth: float
) -> None:
    """As the drivers document them, with their defaults and units; 250 GiB."""
    found = class_limits(driver, parameters, size_bytes=250 * 2**30, machine="")
    assert found is not None
    assert (found.name, found.iops, found.bandwidth_bytes_per_s) == (name, iops, bandwidth)
    assert class_limits("rancher.io/local-path", {}, size_bytes=None, machine="") is None
