"""Limits by metadata services: servers on loopback that answer what the providers document."""

import json
import time

import pytest

from tests.metadata_service import AWS, Answers, azure, gcp, service
from volbench.engine.hosts.cloud_limits import cloud_limits
from volbench.errors import InputError
from volbench.execute.agent import cloud_metadata
from volbench.execute.agent.cloud_metadata import CloudMachine, cloud_machine
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.provenance import VolumeFacts


def limits(endpoint: str, device: str = "sdc") -> Limits | None:
    """Return the limits of a volume on a device."""
    facts = VolumeFacts(
        role="data", target="/dev/sdc", kind=VolumeKind.DEVICE, path="/dev/sdc", device=device
    )
    return cloud_limits(LocalExecutor(), endpoint, [facts]).get("data")


@pytest.fixture(autouse=True)
def _links(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {"/dev/disk/azure/scsi1/lun0", "/dev/disk/by-id/google-data-1"}
    monkeypatch.setattr(cloud_metadata, "_device", lambda paths: "sdc" * bool(links & {*paths}))


def test_azure_tells_type_size_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A P15 on a Standard_B2s; a proxy of the environment is not used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with service(azure()) as endpoint:
        found = limits(endpoint)
        other = limits(endpoint, device="sdd")
    assert found is not None
    assert (found.name, found.iops, found.machine) == (
        "azure/premium-ssd",
        1100,
        "azure/Standard_B2s",
    )
    assert found.origin == "metadata service of azure"
    assert other is not None
    assert (other.name, other.iops, other.machine) == ("", None, "azure/Standard_B2s")


def test_azure_tells_what_an_ultra_disk_was_given() -> None:
    """IMDS has the provisioned numbers of Ultra Disks only."""
    given = {"opsPerSecondThrottle": "65280", "bytesPerSecondThrottle": "979202048"}
    with service(azure(isUltraDisk="true", **given)) as endpoint:
        found = limits(endpoint)
    assert found is not None
    assert (found.name, found.iops) == ("azure/ultra-disk", 65280)
    assert found.bandwidth_bytes_per_s == pytest.approx(979.2e6, rel=1e-4)
    with service(azure(managedDisk={"storageAccountType": "PremiumV2_LRS"})) as endpoint:
        found = limits(endpoint)
    assert found is not None
    assert (found.name, found.iops) == ("", None)


def test_aws_and_google_tell_the_machine() -> None:
    """IMDSv2 with its token; Google names the type of disk, and not its size."""
    with service(AWS) as endpoint:
        assert LocalExecutor().ask(cloud_machine, endpoint) == CloudMachine("aws", "m5.large")
        assert limits(endpoint) in (
            None,
            Limits(machine="aws/m5.large", origin="metadata service of aws"),
        )
    with service(gcp()) as endpoint:
        machine = LocalExecutor().ask(cloud_machine, endpoint)
        assert (machine.machine, machine.disks[0].device) == ("n2-standard-4", "sdc")
        found = limits(endpoint)
    assert found is not None
    assert (found.name, found.iops) == ("gcp/pd-balanced", None)
    assert found.wanted is not None


@pytest.mark.parametrize(
    ("answers", "moved_to"),
    [
        ({}, ""),
        (dict.fromkeys(azure(), "<html>"), ""),
        (dict.fromkeys(azure(), "x" * (2 << 20)), ""),
        (azure(), "http://127.0.0.1:9"),
        (dict.fromkeys(azure(), json.dumps({"vmSize": "../../etc"})), ""),
    ],
    ids=["nothing", "no-json", "too-long", "redirected", "hostile-name"],
)
def test_other_answers_are_refused(answers: Answers, moved_to: str) -> None:
    """Another web server, an endless answer, a redirection and hostile names give nothing."""
    with (
        service(answers, moved_to=moved_to) as endpoint,
        pytest.raises(InputError, match="is not that of"),
    ):
        limits(endpoint)


def test_a_service_that_does_not_answer_is_given_up_after_a_second() -> None:
    """Neither a closed port nor an answer in drops delays a campaign."""
    with pytest.raises(InputError, match=r"no metadata service answers at http://127\.0\.0\.1:9: "):
        limits("http://127.0.0.1:9")
    began = time.monotonic()
    with service(AWS, drops=True) as endpoint, pytest.raises(InputError, match="no whole answer"):
        limits(endpoint)
    assert time.monotonic() - began < 60
