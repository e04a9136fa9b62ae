"""The cold-volume probe with real fio: lab volumes, files and loop devices whose truth is known."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.waiting import until
from volbench import open_campaign
from volbench.analyse.time.cold_volume import describe
from volbench.api.one_campaign import campaign_data
from volbench.engine.campaign.campaign_engine import run_campaign
from volbench.engine.campaign.campaign_state import Settings
from volbench.engine.campaign.prepare import CampaignRequest, Prepared, prepare
from volbench.engine.conditioning.cold_probe import probe_cold
from volbench.engine.conditioning.cold_reads import ROUNDS, Reader, read_offset_log, spread_bytes
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.hosts.host_facts import require_fio
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import FioError, OutputError, RefusedError, StoppedError
from volbench.execute.local import LocalExecutor
from volbench.extensions.lab.scenario import read_scenario
from volbench.extensions.lab.server import serve
from volbench.fio.jobs.option_table import shipped_table
from volbench.ingest.run_files import Probed, read_probe
from volbench.model.campaign.event import Event, Notice, RunStarted
from volbench.model.campaign.planned_run import Consent, Volume, VolumeKind
from volbench.model.results.provenance import ColdProbe
from volbench.plan.expansion.expand import Terms
from volbench.plan.profile.load_profile import load_profile
from volbench.store.consent import create_signed_campaign
from volbench.store.layout import Layout, ProbeFolder

pytestmark = pytest.mark.slow

KIB = 1024
MIB = 1024**2
READ = 4 * KIB


def probe(target: str | Path, folder: Path, *, stop: StopRequest | None = None) -> Probed:
    """Probe a volume, with logs in a folder of its own."""
    executor = LocalExecutor()
    volume = find_volume(executor, role="data", target=str(target))
    fio = require_fio(executor)
    return probe_cold(executor, volume, ProbeFolder(folder), fio=fio, stop=stop or StopRequest())


def judged(probed: Probed) -> ColdProbe:
    """Return what was found, which must be something."""
    assert probed.cold is not None, probed.reason
    return probed.cold


def names_in(folder: Path) -> Sequence[str]:
    """Return every file below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_snapshot_is_cold_where_no_probe_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored snapshot stays cold: a second probe does not read the blocks that one warmed."""
    seeds = iter((0, 128, 0))
    monkeypatch.setattr("secrets.randbelow", lambda _: next(seeds))
    with serve(read_scenario("cold-read"), tmp_path / "lab") as lab:
        first = judged(probe(lab.uri, tmp_path / "1"))
        second = judged(probe(lab.uri, tmp_path / "2"))
        again = judged(probe(lab.uri, tmp_path / "3"))
    assert first.cold
    assert second.cold
    assert first.pairs >= 90
    assert first.first_median_s > 0.02
    assert first.median_ratio > 3  # 26, of a machine that does nothing else
    assert not again.cold  # the same seed, which no other probe draws
    assert first.zero_share == second.zero_share == 0


def test_fresh_volume_holds_only_zeros(tmp_path: Path) -> None:
    """Of a volume that nobody wrote to nothing is known, however slow its first reads were."""
    with serve(read_scenario("never-written"), tmp_path / "lab") as lab:
        found = judged(probe(lab.uri, tmp_path / "probe"))
    assert found.zero_share == 1
    assert found.never_written
    assert describe(replace(found, cold=True)) == describe(found)
    assert describe(found).startswith("undecided: first reads of")
    assert describe(found).endswith("fill the volume with volbench warmup, which shows it.")


@pytest.mark.smoke
def test_a_warm_written_volume_is_neither_cold_nor_empty(tmp_path: Path) -> None:
    """A volume that is warm and full raises no doubt."""
    with serve(read_scenario("clean"), tmp_path / "lab") as lab:
        found = judged(probe(lab.uri, tmp_path / "probe"))
    assert not found.cold
    assert not found.never_written
    assert found.first_median_s > 0.0035


def test_zeros_are_counted_block_by_block(tmp_path: Path) -> None:
    """Of a file whose first three quarters hold data, a quarter is zeros."""
    partly = tmp_path / "partly"
    partly.write_bytes(os.urandom(96 * MIB) + bytes(32 * MIB))
    found = judged(probe(partly, tmp_path / "probe"))
    assert found.zero_share == pytest.approx(0.25, abs=0.12)


def test_one_byte_makes_a_block_not_all_zeros(tmp_path: Path) -> None:
    """A block with a single byte in it was written."""
    block = bytes(READ - 1) + b"x"
    hardly = tmp_path / "hardly"
    hardly.write_bytes(block * (4 * MIB // READ))
    assert judged(probe(hardly, tmp_path / "probe")).zero_share == 0


def test_probe_only_reads(tmp_path: Path) -> None:
    """The file stays as it was, to its time of change, and nothing is left beside the logs."""
    data = tmp_path / "data: 1"
    data.write_bytes(os.urandom(8 * MIB))
    before = data.stat().st_mtime_ns, hashlib.sha256(data.read_bytes()).hexdigest()
    data.chmod(0o400)
    probe(data, tmp_path / "probe")
    assert (data.stat().st_mtime_ns, hashlib.sha256(data.read_bytes()).hexdigest()) == before
    always = ("fio.json", "job.fio", "stderr")
    logs = tuple(f"reads_{kind}.1.log" for kind in ("clat", "lat", "slat"))
    passes = [f"{which}-{part + 1}" for which in ("first", "second") for part in range(ROUNDS)]
    kept = {**dict.fromkeys(passes, (*always, *logs)), "zeros": always}
    names = [f"{step}/{name}" for step in kept for name in kept[step]]
    until(lambda: not any(tmp_path.glob("probe/*/.control")))  # its watching thread removes it
    assert names_in(tmp_path / "probe") == sorted(["probe.json", *names])
    assert {path.name for path in tmp_path.iterdir()} == {"data: 1", "probe"}


def test_reads_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that begins halfway slows as many first as second reads: it makes no volume cold."""
    calls: list[str] = []

    def loaded(_reader: Reader, name: str, part: int) -> dict[int, float]:
        calls.append(name)
        latency_s = 0.001 if part < ROUNDS // 2 else 0.004
        return {(100 * part + number) * MIB: latency_s for number in range(100)}

    monkeypatch.setattr(Reader, "latencies_s", loaded)
    (tmp_path / "data").write_bytes(os.urandom(MIB))
    found = judged(probe(tmp_path / "data", tmp_path / "probe"))
    assert calls[:4] == ["first", "second", "first", "second"]
    assert (found.pairs, found.median_ratio, found.cold) == (800, 1, False)


def test_both_passes_read_the_same_offsets(tmp_path: Path) -> None:
    """The second process reads the offsets of the first, in order; another probe has its own."""
    data = tmp_path / "data"
    data.write_bytes(os.urandom(32 * MIB))
    orders = []
    for number in ("1", "2"):
        probed = probe(data, tmp_path / number)
        passes = [
            list(read_offset_log(tmp_path / number / name / "reads_lat.1.log"))
            for name in ("first-1", "second-1")
        ]
        assert passes[0] == passes[1]
        assert len(passes[0]) <= judged(probed).pairs
        orders.append(passes[0])
    assert orders[0] != orders[1]


@pytest.mark.parametrize("target", ["", "new.img", "empty.img"])
def test_nothing_to_probe_is_reported(target: str, tmp_path: Path) -> None:
    """A folder, a file that is not there and an empty one are told apart from a failure."""
    place = tmp_path / "volume"
    place.mkdir()
    (place / "empty.img").touch()
    probed = probe(place / target if target else place, tmp_path / "probe")
    assert probed.cold is None
    assert "nothing to probe" in probed.words
    assert read_probe(ProbeFolder(tmp_path / "probe")) == probed
    assert not (place / "new.img").exists()


def test_volume_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    """An export that is not there can't be judged; fio's own words are kept."""
    with pytest.raises(FioError, match="cannot be probed"):
        probe(f"nbd+unix:///?socket={tmp_path / 'none.sock'}", tmp_path / "probe")
    assert read_probe(ProbeFolder(tmp_path / "probe")) is None


def test_an_interrupted_probe_leaves_no_result(tmp_path: Path) -> None:
    """A probe that the user stopped has found nothing."""
    data = tmp_path / "data"
    data.write_bytes(os.urandom(8 * MIB))
    stop = StopRequest()
    stop.request()
    with pytest.raises(StoppedError):
        probe(data, tmp_path / "probe", stop=stop)
    assert read_probe(ProbeFolder(tmp_path / "probe")) is None


@pytest.mark.parametrize(
    ("size_bytes", "spread"),
    [
        (None, MIB),
        (1024 * MIB, MIB),
        (64 * MIB, MIB),
        (48 * MIB, 512 * KIB),
        (MIB, 16 * KIB),
        (8 * KIB, 4 * KIB),
    ],
)
def test_small_volumes_are_sampled_more_densely(size_bytes: int | None, spread: int) -> None:
    """There are 64 places at least, unless blocks of 4 KiB would overlap."""
    assert spread_bytes(size_bytes) == spread


def test_only_the_first_read_of_an_offset_counts(tmp_path: Path) -> None:
    """A later read of the same offset is warm whatever the first was."""
    log = tmp_path / "reads_lat.1.log"
    log.write_text("0, 9000, 0, 4096, 4096, 0\n1, 500, 0, 4096, 0, 0\n2, 7, 0, 4096, 4096, 0\n")
    assert read_offset_log(log) == {4096: 9e-6, 0: 5e-7}


@pytest.mark.parametrize("text", ["", "0, 9000, 0, 4096\n", "fio: no log, 0, 0, 0, 0\n"])
def test_damaged_logs_are_reported(text: str, tmp_path: Path) -> None:
    """A log without offsets, or without a line, is no proof of warmth."""
    log = tmp_path / "reads_lat.1.log"
    log.write_text(text)
    with pytest.raises(OutputError):
        read_offset_log(log)


@pytest.mark.root
def test_another_device_under_the_same_name_is_refused(disks: Disks, tmp_path: Path) -> None:
    """What was pinned is read, or nothing."""
    device = disks.attach()
    volume = find_volume(LocalExecutor(), role="data", target=device)
    assert volume.pin is not None
    other = volume.pin.model_copy(update={"size_bytes": volume.pin.size_bytes * 2})
    wrong = Volume(role="data", kind=VolumeKind.DEVICE, target=device, pin=other)
    with pytest.raises(RefusedError):
        probe_cold(
            LocalExecutor(), wrong, ProbeFolder(tmp_path / "probe"), fio="fio", stop=StopRequest()
        )
    assert not (tmp_path / "probe").exists()


@dataclass
class Case:
    """A campaign with a cold probe, and what was told while it ran."""

    prepared: Prepared
    layout: Layout
    events: list[Event] = field(default_factory=list)

    def run(self, *, stop: StopRequest | None = None) -> None:
        """Run what is left of it."""
        run_campaign(
            self.layout,
            self.prepared.campaign,
            self.prepared.hosts,
            settings=Settings(),
            listener=self.events.append,
            stop=stop or StopRequest(),
        )


READS = (
    "name: p\ncold_probe: true\nsample: 0\ndevice_sample: 0\n"
    "defaults: {ioengine: psync, direct: 1, rw: randread, number_ios: 20}\n"
    "jobs:\n  a: {}\n  b: {}\n"
)


def a_campaign(target: str | Path, tmp_path: Path, text: str = READS) -> Case:
    """Plan short reads of a volume, or a profile, with a probe before them."""
    request = CampaignRequest(
        profiles=(load_profile(text, path="p.yaml", table=shipped_table()),),
        targets={"data": str(target)},
        into=tmp_path / "out",
        terms=Terms(consent=Consent(allow_destroy=(str(target),))),
    )
    prepared = prepare([this_machine()], request)
    layout = create_signed_campaign(tmp_path / "out", prepared.archive)
    return Case(prepared, layout)


def test_campaign_probes_first_and_findings_know(tmp_path: Path) -> None:
    """The probe comes before the first run, its numbers are kept, and findings rest on them."""
    with serve(read_scenario("cold-read"), tmp_path / "lab") as lab:
        case = a_campaign(lab.uri, tmp_path)
        case.run()
    notices = [n for n, event in enumerate(case.events) if isinstance(event, Notice)]
    starts = [n for n, event in enumerate(case.events) if isinstance(event, RunStarted)]
    assert len(notices) >= 2
    assert notices[1] < starts[0]
    opened = open_campaign(tmp_path / "out")
    for view in campaign_data(tmp_path / "out").context().views:
        assert view.cold is not None
        assert view.cold.cold
    found = opened.findings.frame
    (evidence,) = set(found[found["rule"] == "cold-blocks"]["evidence"])
    assert json.loads(evidence)["median_ratio"] > 3


def test_resumed_campaign_does_not_probe_again(tmp_path: Path) -> None:
    """What stands in probe.json is not measured again; without a run, an absent one is made."""
    data = tmp_path / "data"
    data.write_bytes(os.urandom(8 * MIB))
    case = a_campaign(data, tmp_path)
    stop = StopRequest()
    stop.request()
    with pytest.raises(StoppedError):
        case.run(stop=stop)
    folder = case.layout.probe("data")
    assert read_probe(folder) is None
    case.run()
    first = folder.result.read_bytes()
    case.run()
    assert folder.result.read_bytes() == first
    folder.result.unlink()
    case.run()
    assert not folder.result.exists()


def test_volume_that_can_not_be_probed_does_not_end_the_campaign(tmp_path: Path) -> None:
    """A folder has nothing to probe; its runs go on and the reason is kept."""
    folder = tmp_path / "volume"
    folder.mkdir()
    case = a_campaign(
        folder,
        tmp_path,
        "name: p\ncold_probe: true\nsample: 0\ndefaults: {size: 1m, ioengine: psync}\n"
        "jobs:\n  a: {rw: write}\n",
    )
    case.run()
    kept = read_probe(case.layout.probe("data"))
    assert kept is not None
    assert "directory" in kept.reason
    assert [view.cold for view in campaign_data(tmp_path / "out").context().views] == [None]
