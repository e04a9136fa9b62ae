"""volbench audit with real fio, and on campaigns that exist."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import Volbench, settings
from tests.loopback_fleet import loopback_fleet
from tests.metadata_service import azure, service
from volbench.api.report_content import report_content
from volbench.engine.campaign.prepare import CampaignRequest
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.execute.local import LocalExecutor
from volbench.extensions.kubernetes.pod_placement import PodPlacement
from volbench.model.campaign.host import Host
from volbench.model.profile.profile_settings import Limits

PROFILE = """
name: bounded
defaults: {ioengine: 'null', bs: 4k, size: 64m, runtime: 2s, time_based: 1, rw: randread}
limits: {iops: 1000000000000, time_percent: 99.9}
jobs:
  shallow: {iodepth: 16}
  deep: {iodepth: 64}
"""
SHORT = (
    *("--scratch-size", "4m"),
    *settings("runtime=1s", "sample=250ms", "repeat=1", "ioengine=null"),
)


def test_an_audit_measures_and_ends_with_a_verdict(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Seven workloads on a directory that a file is written to first; no promise, no failure."""
    output = tmp_path / "out"
    done = volbench("audit", "--on", scratch, "--for", "1m", *SHORT, "--yes", "--output", output)
    assert done.returncode == 0, done.stderr
    rows = api.open_campaign(output).summary()
    rows = rows[rows["phase"] == "measured"].sort_values("iodepth")
    depths = rows.groupby("rw")["iodepth"].agg(list).to_dict()
    assert depths["read"][:2] == [4, 16]
    assert depths["randread"][:3] == [1, 16, 64]
    assert "I/Os in flight tried; the " in done.stdout
    assert "7 workloads" not in done.stdout  # the generic answer: that of an audit is its verdict
    shown = volbench("show", output).stdout
    answer = api.open_campaign(output).answer[1]
    assert answer.startswith(f"{scratch}: no promise, read ")
    assert answer in shown
    recorded = Path(__file__).parents[1] / "campaigns" / "format-1"
    both = api.open_campaigns(output, shutil.copytree(recorded, tmp_path / "recorded"))
    assert (both.answer[1], report_content(both).tables[0].name) == (answer, "audit")
    assert done.stderr.count("not needed: ") == shown.count("not needed: ")
    assert "not needed: " not in done.stdout
    assert f"warning: no limit of {scratch} is known, so there will be rates" in done.stderr
    assert done.stderr.index("--type PROVIDER/TYPE") < done.stderr.index("finished 001-")
    assert "Latency at queue depth 1, read of 4 KiB: median " in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{scratch}: no promise, read ")
    assert not list(scratch.iterdir())


def test_the_exit_code_follows_the_verdict(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """10 for a volume that falls short; the same from the campaign later, and as JSON."""
    (tmp_path / "bounded.yaml").write_text(PROFILE)
    run = ("run", "bounded.yaml", "--on", scratch, "--yes")
    assert volbench(*run, "--output", "out", "--set", "sample=250ms").returncode == 0
    short = volbench("audit", "out", "--json")
    assert short.returncode in {10, 11}, short.stderr
    (row,) = json.loads(short.stdout)
    assert (row["limit"], row["promised"]) == ("read IOPS", 1e12)
    assert row["promised_time_percent"] == pytest.approx(99.9)
    assert 0 <= row["delivered_low"] < row["delivered"] < row["delivered_high"]
    assert row["shortfall_percent"] > 90
    assert "99.9 % of the time" not in short.stdout
    page = volbench("audit", "out", columns=80)
    assert page.returncode == short.returncode
    assert max(map(len, page.stdout.split("delivered: ")[0].splitlines())) <= 80
    assert volbench(*run, "--output", "means", "--set", "sample=0").returncode == 0
    refused = volbench("audit", "means")  # nothing is judged by its mean alone
    assert refused.returncode == 2
    assert "has a log over time" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ((), "name campaigns, or volumes with --on", "--type azure/P15"),
        (("out", "--on", "."), "campaigns cannot be combined with --on", "volbench audit --on"),
        (("--inventory", "fleet.yaml"), "vm1 needs one volume data", "volumes: {data: /dev/sdb}"),
        (("--on", "vm[1-2]:/a", "--on", "vm[1-2]:/b"), "vm1 needs one volume", "volumes:"),
        (("--on", ".", "--limits-from", "clod"), "'clod' is unknown", "--limits-from cloud"),
        (("--on", ".", "--limits-from", "cloud=http://127.0.0.1:9"), "no metadata", "leave out"),
        (("--on", ".", "--scratch-size", "0"), "0 is not a size", "1g"),
        (("out", "--type", "azure/P15"), "--type has no effect on campaigns", "with --on"),
        (("--on", ".", "--set", "runtime=1s"), "a run of 1s has no second one", "use --for"),
        (("--on", ".", "--set", "sample=0"), "sample=0 records no series", "leave out"),
        (("--on", ".", "--for", "10s"), "10s is too short for an audit", "--for 10m"),
        (("--on", ".", "--type", "P15"), "--type: 'P15' is not a volume type", "aws/gp3"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    arguments: tuple[str, ...], message: str, hint: str, tmp_path: Path, volbench: Volbench
) -> None:
    """Exit code 2, with what to do instead."""
    (tmp_path / "out").mkdir()
    (tmp_path / "fleet.yaml").write_text("hosts: {vm1: {address: local}}")
    done = volbench("audit", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert not (tmp_path / "volbench-results").exists()


# Leaves out most workloads
FEW = [
    *SHORT,
    *(f"--set={job}=" for job in ("randread-4k-qd1", "randread-4k-qd16", "read-1m-qd4")),
    *("--set", "read-1m-qd16=", "--yes", "--allow-shared-folder", "--json"),
]


@pytest.mark.slow
def test_a_fleet_is_audited_with_its_own_limits(tmp_path: Path, volbench: Volbench) -> None:
    """Each host has the promise of the inventory; the worst volume comes first."""
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        text = fleet.inventory.read_text().replace("volumes:", "limits: {iops: 10}, volumes:", 1)
        head, _, tail = text.rpartition("volumes:")
        fleet.inventory.write_text(f"{head}limits: {{iops: 1000000000000}}, volumes:{tail}")
        done = volbench("audit", "--inventory", fleet.inventory, "--output", "out", *FEW)
    assert done.returncode in {10, 11}, done.stderr
    rows = json.loads(done.stdout[done.stdout.rindex("[\n") :])
    promised = [(row["host"], row["promised"]) for row in rows if row["limit"] == "read IOPS"]
    assert promised == [("vm1", 1e12), ("vm0", 10)]


@pytest.mark.slow
def test_pods_are_audited_by_their_storage_class(
    tmp_path: Path, scratch: Path, volbench: Volbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods' volumes are directories, and the limits those of their class."""
    limits = Limits(iops=1e12, name="azure/premium-ssd-v2", origin="StorageClass fast")
    host = Host(name="fast", volumes={"data": str(scratch)}, limits={"data": limits})

    @contextmanager
    def made(
        _placement: PodPlacement, request: CampaignRequest, **_options: bool
    ) -> Iterator[tuple[CampaignRequest, list[ConnectedHost]]]:
        assert request.targets == {}
        yield request, [ConnectedHost(host, LocalExecutor())]

    monkeypatch.setattr(PodPlacement, "hosts", made)
    done = volbench(
        *("audit", "--k8s", "--storage-class", "fast", "--claim-size", "1Gi"),
        *("--pod", "image=example/fio:1", "--output", tmp_path / "out", *FEW),
    )
    assert done.returncode in {10, 11}, done.stderr
    rows = json.loads(done.stdout[done.stdout.rindex("[\n") :])
    (row,) = (row for row in rows if row["limit"] == "read IOPS")
    assert (row["host"], row["type"], row["promised"]) == ("fast", "azure/premium-ssd-v2", 1e12)
    assert row["source"] == "StorageClass fast"


@pytest.mark.slow
def test_the_metadata_service_is_asked_with_the_option_only(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """The machine's limits are the promise of a directory on a disk that is not described."""
    with service(azure()) as endpoint:
        done = volbench(
            *("audit", "--on", scratch, "--limits-from", f"cloud={endpoint}"),
            *("--output", tmp_path / "out", *FEW),
        )
    assert done.returncode in {10, 11}, done.stderr
    rows = json.loads(done.stdout[done.stdout.rindex("[\n") :])
    assert {row["promised"] for row in rows} == {1280, 15e6}
    assert {row["source"] for row in rows} == {"metadata service of azure"}
