"""Campaigns in pods of a real cluster."""

import io
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import pytest

from tests.command_line import call
from tests.engine.conftest import attach_loop
from tests.extensions.kubernetes.conftest import IMAGE, SHORT, Desk, block_volume
from tests.extensions.kubernetes.image import NAME
from tests.fleet.hosts import call as call_program
from tests.waiting import until
from volbench.api.one_campaign import CampaignData, campaign_data
from volbench.errors import CampaignError
from volbench.extensions.kubernetes import pod_status
from volbench.extensions.kubernetes.cluster import Cluster
from volbench.extensions.kubernetes.manifests import DATA_DEVICE, claim_spec, make_object
from volbench.model.frames.columns import LABEL_PREFIX


class Terminal(io.StringIO):
    """Standard input on which a user types."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def columns_of(campaign: CampaignData) -> list[str]:
    """Return the columns of the summary, without those of labels."""
    return [name for name in campaign.summary().columns if not name.startswith(LABEL_PREFIX)]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> CampaignData:
    """Return a campaign of one job on this machine."""
    folder = tmp_path_factory.mktemp("local")
    done = call("run", "quick", "--on", folder, *SHORT, "-o", folder / "c")
    assert done.returncode == 0, done.stderr
    return campaign_data(folder / "c")


def test_the_nine_tests_of_the_article(desk: Desk, local: CampaignData) -> None:
    """One command gives nine runs as on a machine, with samples of the device, and cleans up."""
    begun = time.monotonic()
    with mock.patch.object(
        Cluster, "open_exec", autospec=True, side_effect=Cluster.open_exec
    ) as ex:
        done = desk.run("c", "aks-disk", "--storage-class", "fast", *SHORT)
    assert done.returncode == 0, done.stderr
    assert ex.call_count < time.monotonic() - begun  # the API server is polled by nobody
    campaign = campaign_data(desk.folder / "c")
    summary = campaign.summary()
    assert columns_of(campaign) == columns_of(local)
    assert list(summary["job"]) == [f"test{number}" for number in range(1, 10)]
    assert list(summary["role"]) == ["os"] + 8 * ["data"]
    assert set(summary["label_storage_class"]) == {"fast"}
    assert summary["iops"].min() > 0
    labels = {"label_node", "label_persistent_volume", "label_volume_size"}
    assert labels <= set(summary.columns)
    found = campaign.frame("findings")
    # The devices were sampled, by an image with busybox; the page cache may have absorbed writes.
    assert not found["message"].str.contains("the device was not sampled", regex=False).any()
    assert set(campaign.frame("device")["run"]) == set(summary["run"])
    checked = call("check", desk.folder / "c", "--json")
    assert checked.returncode == 0, checked.stderr
    assert call("report", desk.folder / "c").returncode == 0


def test_two_classes_are_compared(desk: Desk, job: Path) -> None:
    """Two classes with both binding modes are one campaign, in turns: A B, then B A."""
    both = ("--storage-class", "fast", "--storage-class", "waiting", "--set", "seed=2")
    done = desk.run("c", str(job), *both, "--repeat", "2")
    assert done.returncode == 0, done.stderr
    campaign = campaign_data(desk.folder / "c")
    summary = campaign.summary()
    assert sorted(summary["label_storage_class"]) == 2 * ["fast"] + 2 * ["waiting"]
    turns = [names for _, names in hosts_over_time(campaign)]
    assert turns == [["waiting"], ["fast"], ["fast"], ["waiting"]]
    compared = call("compare", desk.folder / "c", "--between", "storage_class", "--json")
    assert compared.returncode == 0, compared.stderr
    assert json.loads(compared.stdout)
    page = call("report", desk.folder / "c", "-o", "-")
    assert page.returncode == 0, page.stderr
    first = page.stdout.partition("<table")[0]  # the answer leads
    assert "fast and waiting: 1 workload" in first


def hosts_over_time(campaign: CampaignData) -> list[tuple[float, list[str]]]:
    """Return the hosts that were measured at the same time, with the start of the first."""
    groups: list[tuple[float, list[str]]] = []
    end_s = 0.0
    for run in campaign.summary().sort_values("started_utc").to_dict("records"):
        begin_s = datetime.fromisoformat(str(run["started_utc"])).timestamp()
        if begin_s >= end_s:
            groups.append((begin_s, []))
        groups[-1][1].append(str(run["host"]))
        end_s = max(end_s, begin_s + float(run["runtime_s"]))
    return [(begin_s, sorted(hosts)) for begin_s, hosts in groups]


def test_all_classes_are_those_that_make_volumes_and_delete_them(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class without a volume soon after the others is left out, with the reason."""
    monkeypatch.setattr(pod_status, "_LATER_S", 15.0)
    done = desk.run("c", str(job), "--storage-class", "all")
    assert done.returncode == 0, done.stderr
    hosts = set(campaign_data(desk.folder / "c").summary()["host"])
    assert {"fast", "waiting"} <= hosts <= {"fast", "waiting", "csi"}
    assert "block (volumes made by hand)" in done.stderr
    assert "retained (its disks would stay)" in done.stderr
    assert "stuck is left out: ExternalProvisioning" in done.stderr


def test_a_block_volume_needs_consent(desk: Desk, job: Path, tmp_path: Path) -> None:
    """A raw device is refused without consent, as on a machine, and written with it."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 * 1024**2)
    device = attach_loop(image)
    os.chown(device, 0, 0)  # root in a pod may not open a device of somebody else
    block = ("--storage-class", "block", "--volume-mode", "Block", "--claim-size", "32Mi")
    try:
        with block_volume(desk.api, device):
            refused = desk.run("c", str(job), *block)
            assert refused.returncode == 3, refused.stderr
            assert f"--allow-destroy {DATA_DEVICE}" in refused.stderr
            misspelt = desk.run("c", str(job), *block, "--allow-destroy", "/dev/sdx")
            assert misspelt.returncode == 2, misspelt.stderr
            assert f"its targets are: {DATA_DEVICE}" in misspelt.stderr
            planned = desk.run("c", str(job), *block, "--dry-run")
            assert planned.returncode == 3, planned.stderr
            # Nothing was made: the volume of a class that retains would stay, bound to its claim.
            assert "created" not in refused.stderr + misspelt.stderr
            volume = desk.api.read("PersistentVolume", "block") or {}
            assert volume["status"]["phase"] == "Available"
            assert "claimRef" not in volume["spec"]
        with block_volume(desk.api, device):
            policy = {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}  # which nothing does
            desk.api.patch("PersistentVolume", "block", policy)
            done = desk.run("d", str(job), *block, "--allow-destroy", DATA_DEVICE)
            assert done.returncode == CampaignError.exit_code, done.stderr
            named = r"not deleted with their claims.*: PV block: 32Mi of block \(.*delet"
            assert re.search(named, done.stderr), done.stderr
    finally:
        call_program("losetup", "-d", device)
    assert any(image.read_bytes())


def test_a_raw_claim_is_overwritten_by_its_name_only(desk: Desk, job: Path) -> None:
    """Consent to the device of new volumes is none to a claim with the data of somebody."""
    spec = claim_spec("32Mi", "stuck", volumeMode="Block")
    desk.api.create(make_object("PersistentVolumeClaim", "raw", labels={}, spec=spec))
    raw = ("--claim", "raw", "--volume-mode", "Block")
    for consent, status in (((), 3), (("--allow-destroy", DATA_DEVICE), 2)):
        refused = run_on(desk, "c", job, *raw, *consent)
        assert refused.returncode == status, refused.stderr
        assert "raw" in refused.stderr
        assert "created" not in refused.stderr
    named = run_on(desk, "c", job, *raw, "--allow-destroy", "raw", "--dry-run")
    assert named.returncode == 0, named.stderr
    desk.api.delete("PersistentVolumeClaim", "raw")
    until(lambda: desk.left() == [])


def test_consent_is_requested_before_a_volume_is_created(desk: Desk, job: Path) -> None:
    """On a terminal, even where --allow-destroy names the device; another answer leaves nothing."""
    block = ("--storage-class", "retained", "--volume-mode", "Block", "--allow-destroy")
    before = desk.api.list("PersistentVolume")
    argv = ("run", *desk.arguments("c", str(job), *block, DATA_DEVICE))
    refused = call(*argv, cwd=desk.folder, stdin=Terminal("no\n"))
    assert refused.returncode == 3, refused.stderr
    assert f"Type {DATA_DEVICE} to continue" in refused.stderr
    assert "created" not in refused.stderr
    assert desk.api.list("PersistentVolume") == before


def test_buffers_that_no_memory_limit_allows_are_refused(desk: Desk, job: Path) -> None:
    """Before fio starts, by the limit of the pod: its node has enough."""
    large = ("--set", "bs=256m", "--set", "size=256m", "--pod", "limit.memory=160Mi")
    done = desk.run("c", str(job), "--storage-class", "fast", *large)
    assert done.returncode == 2, done.stderr
    assert "needs 256 MiB of memory" in done.stderr
    assert "may use only 160 MiB of memory here" in done.stderr


def test_a_volume_that_ignores_the_group_of_the_pod_is_refused(desk: Desk, job: Path) -> None:
    """Folders of the node belong to root; which user cannot write there is said before fio is."""
    user = ("--pod", "run-as-user=65532")
    done = desk.run("c", str(job), "--storage-class", "fast", *user)
    assert done.returncode == 2, done.stderr
    assert "the user 65532 cannot write to the volume data of fast" in done.stderr
    assert "belongs to the user 0\n  hint: --pod run-as-user=0" in done.stderr


def test_many_pods_write_to_one_volume(desk: Desk, job: Path) -> None:
    """First one, then both, each in a folder of its own; sharing their disk is no finding."""
    many = ("--storage-class", "fast", "--access-mode", "ReadWriteMany", "--replicas", "2")
    counts = ("--client-counts", "1,2", "--set", "runtime=2s")
    done = desk.run("c", str(job), *many, "--pod", "spread=none", *counts)
    assert done.returncode == 0, done.stderr
    campaign = campaign_data(desk.folder / "c")
    assert len(set(campaign.summary()["label_persistent_volume"])) == 1
    assert list(campaign.frame("aggregate")["clients"]) == [1, 2]
    assert list(campaign.frame("aggregate")["job"]) == ["a-clients1", "a-clients2"]
    assert (campaign.frame("aggregate")["fairness"] > 0.5).all()
    assert "shared-limit" not in set(campaign.frame("findings")["rule"])


@pytest.fixture
def mine(desk: Desk) -> Iterator[str]:
    """Make a claim of the user."""
    spec = claim_spec("64Mi", "fast")
    desk.api.create(make_object("PersistentVolumeClaim", "mine", labels={}, spec=spec))
    yield "mine"
    assert desk.left() == ["PersistentVolumeClaim mine"]
    desk.api.delete("PersistentVolumeClaim", "mine")
    until(lambda: desk.left() == [])


def run_on(desk: Desk, name: str, job: Path, *arguments: str) -> CompletedProcess[str]:
    """Run on a claim that exists."""
    place = ("--k8s", "--namespace", desk.api.namespace, *IMAGE, "-o", name)
    return call("run", job, *place, *arguments, cwd=desk.folder)


def test_a_claim_that_exists_is_measured_and_stays(desk: Desk, job: Path, mine: str) -> None:
    """Nobody else may use it meanwhile, and nothing removes it."""
    for wrong, words in (
        (("--claim", "absent"), "there is no claim absent"),
        (("--claim", mine, "--volume-mode", "Block"), "has the volume mode Filesystem"),
    ):
        refused = run_on(desk, "c", job, *wrong)
        assert refused.returncode == 2, refused.stderr
        assert words in refused.stderr
    for name, access, words in (
        ("dying", "ReadWriteOnce", "the claim dying is being deleted"),
        ("read", "ReadOnlyMany", "the claim read has the access mode ReadOnlyMany"),
    ):
        spec = claim_spec("64Mi", "fast", accessModes=[access])
        claim = make_object("PersistentVolumeClaim", name, labels={}, spec=spec)
        claim["metadata"]["finalizers"] = ["example.com/held"]
        desk.api.create(claim)
        if name == "dying":
            desk.api.delete("PersistentVolumeClaim", name)
        refused = run_on(desk, "c", job, "--claim", name)
        desk.api.patch("PersistentVolumeClaim", name, {"metadata": {"finalizers": None}})
        desk.api.delete("PersistentVolumeClaim", name)
        assert refused.returncode == 2, refused.stderr
        assert words in refused.stderr
    done = run_on(desk, "c", job, "--claim", mine)
    assert done.returncode == 0, done.stderr
    summary = campaign_data(desk.folder / "c").summary()
    assert list(summary["host"]) == [mine]
    assert list(summary["label_storage_class"]) == ["fast"]
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": mine}}
    program = {"name": "app", "image": NAME, "command": ["sleep", "1d"]}
    app = {"containers": [program], "volumes": [volume], "nodeName": "nowhere"}
    desk.api.create(make_object("Pod", "app", labels={}, spec=app))
    used = run_on(desk, "d", job, "--claim", mine)
    desk.api.delete("Pod", "app", grace_s=0)
    assert used.returncode == 3, used.stderr
    assert "the claim mine is used by the pod app" in used.stderr
    until(lambda: not desk.api.list("Pod"))
    reaped = call("k8s", "reap", "--volumes", "--namespace", desk.api.namespace)
    assert reaped.returncode == 0, reaped.stderr


def test_kept_and_retained_volumes_are_listed(desk: Desk, job: Path) -> None:
    """What outlives the campaign is listed with the command that removes it."""
    done = desk.run("c", str(job), "--storage-class", "retained")
    assert done.returncode == 0, done.stderr
    volumes = desk.api.list("PersistentVolume")
    (name,) = [
        volume["metadata"]["name"]
        for volume in volumes
        if volume["spec"]["storageClassName"] == "retained"
    ]
    assert f" patch pv {name} -p '" in done.stderr
    patch = json.loads(done.stderr.partition("-p '")[2].partition("'")[0])
    desk.api.patch("PersistentVolume", name, patch)
    until(lambda: desk.api.read("PersistentVolume", name) is None)
    kept = desk.run("d", str(job), "--storage-class", "fast", "--keep")
    (claim,) = desk.left()
    assert f"delete pvc {claim.partition(' ')[2]}" in kept.stderr
    name = claim.partition(" ")[2].rpartition("-")[0]
    assert "--volumes" in call("k8s", "reap", "--namespace", desk.api.namespace).stderr
    call("k8s", "reap", name, "--volumes", "--namespace", desk.api.namespace)


def test_an_interrupted_removal_names_its_disks(desk: Desk, job: Path) -> None:
    """Ctrl-C after the campaign: so does the reap that ends the removal, without the claim."""
    with desk.start("c", str(job), "--storage-class", "retained") as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any(line.startswith("campaign folder:") for line in lines)
        until(lambda: "deletionTimestamp" in desk.pod()["metadata"])
        process.send_signal(signal.SIGINT)
        last = "".join(lines)
    assert process.returncode == 130
    (name,) = re.findall(r"# PV (pvc-\S+): 64Mi of retained", last)
    for claim in desk.api.list("PersistentVolumeClaim"):
        desk.api.delete("PersistentVolumeClaim", claim["metadata"]["name"])
    until(lambda: not desk.api.list("PersistentVolumeClaim"))
    reaped = call("k8s", "reap", "--namespace", desk.api.namespace)
    assert reaped.returncode == 0, reaped.stderr
    assert f"# PV {name}: 64Mi of retained" in reaped.stderr
    desk.api.delete("PersistentVolume", name)


def test_a_dry_run_creates_nothing(desk: Desk) -> None:
    """With --dry-run the cluster checks the objects, and the plan is shown."""
    done = desk.run("c", "aks-disk", "--storage-class", "fast", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test") >= 9
    assert not (desk.folder / "c").exists()
