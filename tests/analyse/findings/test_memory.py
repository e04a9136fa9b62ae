"""Rules on memory that answers instead of the volume."""

from dataclasses import replace

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    GIB,
    IOPS,
    SECONDS,
    Limits,
    Row,
    VolumeKind,
    a_run,
    a_view,
    device_sample,
    device_samples,
    found,
    series_rows,
    summary_row,
)
from tests.engine.machines import Server
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.engine.guard.volume_targets import find_volume, probe_volume
from volbench.execute.agent.files import FileStat
from volbench.model.campaign.planned_run import Imported, ImportedJob, Run, SourceFile
from volbench.model.results.finding import Severity
from volbench.model.results.provenance import BlockSample, HostFacts, VolumeFacts
from volbench.present.terminal.campaign_text import memory_words

RATE = IOPS * BLOCK
SATA = {"rotational": False, "link": "SATA 6.0 Gbps"}
BUFFERED = {"direct": None, "iodepth": None, "ioengine": "psync"}


def test_a_clean_run_has_no_memory_findings() -> None:
    """A direct run has no finding at all; an export is read by fio itself, buffered or not."""
    assert find(Context((a_view(),))) == []
    run = a_run(BUFFERED, kind=VolumeKind.NBD)
    view = a_view(run, device=[])
    assert found(view, rule="page-cache") == []
    assert found(view, rule="smaller-than-memory") == []


@pytest.mark.parametrize(("every", "is_cached"), [("1", False), ("100", True)])
def test_a_sync_after_each_write_leaves_nothing_to_the_page_cache(
    every: str, *, is_cached: bool
) -> None:
    """The published test of etcd is judged by fio's rates, and needs no direct I/O."""
    run = a_run({**BUFFERED, "fdatasync": every, "refill_buffers": None})
    host = HostFacts(host="h", memory_bytes=10**15)
    view = replace(a_view(run, device=slow_device(run, share=5.0)), host=host)
    for rule in ("page-cache", "smaller-than-memory", "compressible"):
        assert bool(found(view, rule=rule)) is is_cached
    assert (Context((view,)).level(view, "write") is None) is is_cached


def slow_device(run: Run, *, share: float, tail_s: int = 0) -> list[Row]:
    """Return samples of a device that moves a share of fio's rate, and goes on after it."""
    return [
        device_sample(
            run,
            float(t_s),
            write_bw_bytes_per_s=share * RATE if 0 < t_s <= SECONDS + tail_s else 0.0,
            dirty_bytes=1e6 + max(0, min(t_s, SECONDS)) * 1e6,
        )
        for t_s in range(-2, SECONDS + tail_s + 3)
    ]


def test_buffered_writes_that_did_not_reach_the_device_are_invalid() -> None:
    """The tool's bytes, the device's bytes, dirty growth and the tail are all told."""
    run = a_run(BUFFERED)
    (entry,) = found(a_view(run, device=slow_device(run, share=0.25, tail_s=20)), rule="page-cache")
    assert entry.severity is Severity.INVALID
    assert entry.direction == "write"
    assert entry.evidence["share_percent"] == pytest.approx(25)
    assert entry.evidence["tool_bytes"] == pytest.approx(RATE * SECONDS)
    assert entry.evidence["tail_s"] == pytest.approx(20)
    assert entry.evidence["tail_bytes"] == pytest.approx(0.25 * RATE * 20)
    assert entry.evidence["dirty_growth_bytes"] == pytest.approx(60e6)
    assert entry.evidence["dirty_peak_bytes"] == pytest.approx(61e6)
    assert "25 %" in entry.message
    assert "followed in the 20s" in entry.message


@pytest.mark.parametrize(
    ("share", "severity"), [(0.8, Severity.WARNING), (1.0, Severity.NOTE), (1.3, Severity.WARNING)]
)
def test_the_share_that_arrived_determines_the_severity(share: float, severity: Severity) -> None:
    """What arrived in full while the clock ran is context only."""
    run = a_run(BUFFERED)
    (entry,) = found(a_view(run, device=slow_device(run, share=share)), rule="page-cache")
    assert entry.severity is severity
    assert entry.message.startswith("Other load moved some of the bytes, so") is (share > 1)
    assert ("without other load" in entry.advice) is (share > 1)
    if share == 0.8:  # bytes of other campaigns only add to those of the device
        view = a_view(run, device=slow_device(run, share=0.004))
        assert view.volume is not None
        beside = view.volume.model_copy(update={"other_campaigns": ("o",)})
        (entry,) = found(replace(view, volume=beside), rule="page-cache")
        assert entry.severity is Severity.INVALID
        assert entry.message.startswith("At least 99.6 % stayed in the cache: fio wrote")
        assert "direct: 1" in entry.advice
    meant = a_run({**BUFFERED, "direct": "0", "end_fsync": "1"})
    (entry,) = found(a_view(meant, device=slow_device(meant, share=share / 10)), rule="page-cache")
    assert entry.severity is Severity.WARNING
    assert entry.message.startswith("The rate is that of the page cache, as direct=0 asks for")
    assert entry.advice == "Set direct: 1 to measure the volume."


@pytest.mark.parametrize(("sync", "severity"), [({}, "warning"), ({"end_fsync": "1"}, "note")])
def test_buffered_io_without_device_samples_is_reported(
    sync: dict[str, str], severity: str
) -> None:
    """Without samples of the device a flush at the end is the only comfort."""
    (entry,) = found(a_view(a_run(BUFFERED | sync), device=[]), rule="page-cache")
    assert entry.severity == severity
    assert "not sampled" in entry.message


def test_reads_from_memory_are_reported() -> None:
    """What the device did not see came from memory, or a filesystem ignores O_DIRECT."""
    run = a_run({**BUFFERED, "rw": "randread"})
    view = a_view(
        run,
        summary=[summary_row(run, direction="read")],
        device=device_samples(run, read_bw_bytes_per_s=0.1 * RATE, write_bw_bytes_per_s=0.0),
    )
    (entry,) = found(view, rule="page-cache")
    assert (entry.severity, entry.direction) == (Severity.INVALID, "read")
    assert entry.evidence["device_bytes"] == pytest.approx(0.1 * RATE * SECONDS, rel=0.01)
    run = a_run()
    (entry,) = found(a_view(run, device=slow_device(run, share=0.3)), rule="page-cache")
    assert entry.severity is Severity.INVALID
    assert "O_DIRECT" in entry.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["null", "io_uring_cmd", "http", "rbd", "libblkio:virtio", "nbd"]
)
@pytest.mark.parametrize("direct", ["0", "1"])
def test_engines_outside_the_kernel_have_no_page_cache(engine: str, direct: str) -> None:
    """Their I/O is neither cached by the host nor counted by its block layer."""
    run = a_run({"ioengine": engine, "direct": direct})
    idle = device_samples(run, write_bw_bytes_per_s=0.0)
    assert found(a_view(run, device=idle), rule="page-cache") == []
    assert found(a_view(run, device=[]), rule="page-cache") == []
    reads = a_run({"ioengine": engine, "direct": direct, "rw": "randread"})
    view = a_view(reads, summary=[summary_row(reads, direction="read")], device=idle)
    assert found(view, rule="never-written") == []


@pytest.mark.parametrize(
    ("facts", "count"),
    [
        ({"device": "", "filesystem": "tmpfs"}, 1),
        ({"device": "zram0"}, 1),
        ({"device": "loop3", "backing": ("ram0",)}, 1),
        ({"device": "loop3", "backing": ("sda",)}, 0),
        ({"device": "loop3", "memory_below": "tmpfs under loop3"}, 1),
    ],
)
def test_results_on_a_memory_device_are_reported(facts: dict[str, object], count: int) -> None:
    """direct=1 on tmpfs looks like a fast disk."""
    view = a_view(a_run(kind=VolumeKind.DIRECTORY))
    assert view.volume is not None
    there = replace(view, volume=view.volume.model_copy(update=facts))
    findings = found(there, rule="memory-volume")
    assert [finding.severity for finding in findings] == [Severity.INVALID] * count


def test_mmap_uses_the_page_cache_whatever_direct_says() -> None:
    """Mapped files are pages of the cache: fio ignores direct for them."""
    run = a_run({"ioengine": "mmap", "direct": "1", "iodepth": None})
    (entry,) = found(a_view(run, device=[]), rule="page-cache")
    assert entry.severity is Severity.WARNING
    assert "direct=0" not in entry.message


def test_a_buffered_read_of_a_file_that_fits_in_memory_is_reported() -> None:
    """A buffered test of 1 GiB on a host with 16 is a test of memory."""
    small = a_run({**BUFFERED, "size": str(GIB)}, kind=VolumeKind.DIRECTORY)
    (entry,) = found(a_view(small), rule="smaller-than-memory")
    assert entry.evidence["touched_bytes"] == GIB
    assert entry.evidence["memory_bytes"] == 16 * GIB
    assert "the host has 16 GiB of memory" in entry.message


@pytest.mark.parametrize(("limit_gib", "count"), [(2, 1), (1, 0)])
def test_the_memory_limit_of_a_container_decides_what_fits(limit_gib: int, count: int) -> None:
    """Page cache counts against the limit of a pod, however much memory its node has."""
    view = a_view(a_run({**BUFFERED, "size": str(GIB)}, kind=VolumeKind.DIRECTORY))
    assert view.host is not None
    limited = view.host.model_copy(update={"memory_limit_bytes": limit_gib * GIB})
    entries = found(replace(view, host=limited), rule="smaller-than-memory")
    messages = [entry.message for entry in entries]
    assert len(messages) == count
    assert all("its container may use 2 GiB of memory" in message for message in messages)


@pytest.mark.parametrize(
    "options",
    [
        {**BUFFERED, "size": str(32 * GIB)},
        {**BUFFERED, "size": str(4 * GIB), "numjobs": "4"},
        {"size": str(GIB)},
        {**BUFFERED, "size": "50%"},
    ],
)
def test_larger_files_and_direct_io_are_not_reported(options: dict[str, str | None]) -> None:
    """Larger files, several of them, direct I/O and half of 64 GiB are left alone."""
    assert found(a_view(a_run(options)), rule="smaller-than-memory") == []


def test_rates_above_the_declared_limit_are_reported() -> None:
    """A direct run at twice the declared rate did not come from the volume alone."""
    run = a_run(limits=Limits(iops=500))
    (entry,) = found(a_view(run), rule="host-cache")
    assert entry.evidence["rate"] == IOPS
    assert entry.evidence["declared"] == 500
    assert "200 %" in entry.message
    run = a_run(limits=Limits(bandwidth_bytes_per_s=RATE / 3))
    (entry,) = found(a_view(run), rule="host-cache")
    assert entry.evidence["of"] == "bw_bytes_per_s"


def test_a_burst_above_the_declared_limit_is_reported() -> None:
    """Fast until a cache was full: the first minute beats the limit, the mean does not."""
    run = a_run(limits=Limits(iops=1100))
    rates = [3000.0] * 10 + [0.0] * 20 + [1000.0] * 30
    (above,) = found(a_view(run, series=series_rows(run, rates)), rule="host-cache")
    assert above.from_s == 0
    assert above.to_s is not None
    assert 10 <= above.to_s <= 15


@pytest.mark.parametrize("limits", [Limits(iops=1000), Limits(iops=300, burst_iops=3000), Limits()])
def test_rates_within_the_declared_limits_are_not_reported(limits: Limits) -> None:
    """At the limit, within a declared burst, or with nothing declared: no doubt."""
    assert found(a_view(a_run(limits=limits)), rule="host-cache") == []


def test_a_caching_loop_device_is_reported() -> None:
    """A backing disk that moved a tenth is a note, of a loop a warning with what to do."""
    run = a_run()
    for share, count, device in ((0.1, 1, "sdb"), (1.0, 0, "sdb"), (0.1, 1, "loop0")):
        backing = device_samples(run, device="sda", level="backing")
        for row in backing:
            row["write_bw_bytes_per_s"] = share * float(str(row["write_bw_bytes_per_s"]))
        samples = [*device_samples(run, device=device), *backing]
        notes = found(a_view(run, device=samples), rule="host-cache")
        kind = Severity.WARNING if device == "loop0" else Severity.NOTE
        assert [note.severity for note in notes] == [kind] * count
        assert all(("losetup" in note.message) is (device == "loop0") for note in notes)


def reading(run: Run, *, share: float) -> list[Row]:
    """Return samples of a device that answers a share of the reads."""
    return device_samples(run, read_bw_bytes_per_s=share * RATE, write_bw_bytes_per_s=0.0)


@pytest.mark.parametrize(("share", "count"), [(0.0, 1), (0.3, 1), (0.97, 0)])
def test_direct_reads_that_never_reached_the_device_are_reported(share: float, count: int) -> None:
    """Holes and unwritten extents are answered by the filesystem."""
    run = a_run({"rw": "randread"}, kind=VolumeKind.DIRECTORY)
    view = a_view(
        run,
        summary=[summary_row(run, direction="read")],
        device=reading(run, share=share),
        series=[],
    )
    findings = found(view, rule="never-written")
    assert [finding.severity for finding in findings] == [Severity.INVALID] * count


@pytest.mark.parametrize(
    ("zeros", "unmapped_share", "severities"),
    [
        (1, None, []),
        (2, None, [Severity.WARNING]),
        (31, None, [Severity.WARNING]),
        (32, None, [Severity.INVALID]),
        (0, 0.02, []),
        (0, 0.04, [Severity.WARNING]),
        (0, 0.5, [Severity.INVALID]),
    ],
)
def test_sampled_blocks_without_data_are_reported_from_three_percent_on(
    zeros: int, unmapped_share: float | None, severities: list[Severity]
) -> None:
    """Two empty blocks of 64, or 3 % of unmapped space; half of either makes a result invalid."""
    run = a_run({"rw": "randread"})
    view = a_view(run, summary=[summary_row(run, direction="read")], device=[], series=[])
    blocks = BlockSample(
        sampled=64, zeros=zeros, unmapped_share=unmapped_share, reported_by="the filesystem"
    )
    facts = VolumeFacts(
        role="data", target=run.volume.target, kind=run.volume.kind, path="/dev/x", blocks=blocks
    )
    sampled = replace(view, volume=facts)
    findings = found(sampled, rule="never-written")
    assert [finding.severity for finding in findings] == severities
    fast = a_run({"rw": "randread"}, name="fast", limits=Limits(iops=1))
    later = a_view(fast, summary=[summary_row(fast, direction="read")], device=[], series=[])
    assert bool(found(sampled, later, rule="never-written")) is bool(severities)


@pytest.mark.parametrize(("mapped", "is_warned"), [(1.0, True), (0.9, False), (None, False)])
def test_written_zeros_that_the_device_read_are_not_called_unwritten(
    mapped: float | None, *, is_warned: bool
) -> None:
    """The counters of the device say that it read them; mapped blocks were written."""
    run = a_run({"rw": "randread"}, kind=VolumeKind.FILE)
    unmapped = None if mapped is None else 1 - mapped
    blocks = BlockSample(sampled=64, zeros=64, unmapped_share=unmapped)
    facts = VolumeFacts(role="data", target="/f", kind=VolumeKind.FILE, path="/f", blocks=blocks)
    view = a_view(
        run, summary=[summary_row(run, direction="read")], device=reading(run, share=1.0), series=[]
    )
    (entry,) = found(replace(view, volume=facts), rule="never-written")
    assert entry.severity is (Severity.WARNING if is_warned else Severity.INVALID)
    assert "the device read" in entry.message
    assert "no disk access" not in entry.message


@pytest.mark.parametrize(("runtime_s", "verb"), [(60.0, "moved"), (0.2, "may have moved")])
def test_bytes_are_other_load_s_only_by_enough_samples(runtime_s: float, verb: str) -> None:
    """Bytes of a run within one sample may be those before or after it."""
    run = a_run(BUFFERED)
    row = summary_row(run, runtime_s=runtime_s, io_bytes=round(RATE * runtime_s / 3))
    (entry,) = found(a_view(run, summary=[row], series=[]), rule="page-cache")
    assert entry.message.startswith(f"Other load {verb} some of the bytes")
    assert ("longer runtime" in entry.advice) is (runtime_s < 1)


@pytest.mark.parametrize(
    "options", [{}, {"direct": None, "end_fsync": "1"}, {"rw": "randread"}], ids=str
)
def test_a_run_far_shorter_than_a_sample_is_not_judged(options: dict[str, str | None]) -> None:
    """A tenth of a second within one sample: what reached the device may all be its own."""
    run = a_run(options)
    direction = "read" if "rw" in options else "write"
    row = summary_row(run, direction=direction, runtime_s=0.1, io_bytes=10**7, iops=25000.0)
    moved = {f"{direction}_bw_bytes_per_s": 1e7}
    other = {"write_bw_bytes_per_s": 0.0} if direction == "read" else {}
    sample = device_sample(run, 0.6, **other, **moved)
    view = a_view(run, summary=[row], device=[sample], series=[])
    findings = [*found(view, rule="page-cache"), *found(view, rule="never-written")]
    assert {finding.severity for finding in findings} <= {Severity.NOTE}


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ({"lat_mean_s": 1.5e-6}, 1),
        ({"lat_mean_s": 7.6e-6}, 0),
        ({"lat_mean_s": 1e-4, "bw_bytes_per_s": 40e9}, 1),
        ({"lat_mean_s": 0.017, "bw_bytes_per_s": 31.6e9}, 0),
        ({"lat_mean_s": None, "lat_p50_s": None, "bw_bytes_per_s": 25.6e9}, 0),
        ({"lat_mean_s": 36e-6, "clat_p50_s": 0.8e-6, "slat_mean_s": None}, 1),
        ({"lat_mean_s": 168e-6, "clat_p50_s": 1.1e-6, "slat_mean_s": 167e-6}, 0),
    ],
)
def test_imported_results_faster_than_any_disk_are_questioned(
    columns: dict[str, object], count: int
) -> None:
    """1.5 us or 40 GB/s are memory; 7.6 us of a drive and 32 GB/s of a cluster were published."""
    run = a_run(imported=Imported(files=(), jobs=()))
    view = a_view(run, summary=[summary_row(run, **columns)], device=[], volume=None)
    entries = found(view, rule="host-cache")
    assert [entry.severity for entry in entries] == [Severity.WARNING] * count
    assert all(entry.message.startswith("Too fast for a disk") for entry in entries)


@pytest.mark.parametrize(("disks", "count"), [(1, 1), (2, 1), (3, 0), (8, 0)])
def test_disks_of_one_job_add_up(disks: int, count: int) -> None:
    """40 GB/s of one or two drives are memory; of three and more they are not."""
    names = ":".join(f"/dev/nvme{number}n1" for number in range(disks))
    run = a_run({"filename": names}, imported=Imported(files=(), jobs=()))
    rows = [summary_row(run, lat_mean_s=253e-6, bw_bytes_per_s=40e9)]
    view = a_view(run, summary=rows, device=[], volume=None)
    assert len(found(view, rule="host-cache")) == count


@pytest.mark.parametrize(
    ("facts", "iops", "words"),
    [
        ({"rotational": True}, 1500.0, "1.5k random IOPS are more than the 1k of a spinning disk"),
        ({"rotational": True, "backing": ("sdb", "sdc")}, 1500.0, ""),
        ({"rotational": True}, 400.0, ""),
        ({"rotational": False}, 1500.0, ""),
        ({**SATA, "link_bytes_per_s": 1_000_000}, 1500.0, "are more than the 1 MB/s that SATA"),
        ({**SATA, "link_bytes_per_s": 600_000_000}, 1500.0, ""),
        ({"filesystem": "zfs"}, IOPS, "direct=1 on zfs"),
        ({"filesystem": "fuse.sshfs"}, IOPS, "direct=1 on fuse.sshfs"),
        ({"filesystem": "xfs"}, IOPS, ""),
        ({"mount_options": "rw,compress=zstd:3,ssd"}, IOPS, "is mounted with compress=zstd:3"),
        ({"mount_options": "rw,compress=no"}, IOPS, ""),
    ],
)
def test_rates_that_no_such_disk_has(facts: dict[str, object], iops: float, words: str) -> None:
    """Each bound is named with the number that exceeds it and where it comes from."""
    run = a_run()
    view = a_view(run, summary=[summary_row(run, iops=iops)], series=[])
    assert view.volume is not None
    metal = HostFacts(host="local", virtualization="none")
    view = replace(view, volume=view.volume.model_copy(update=facts), host=metal)
    entries = found(view, rule="host-cache")
    assert len(entries) == bool(words)
    assert all(words in entry.message for entry in entries)
    buffered = replace(view, run=a_run({"direct": "0"}))
    assert found(buffered, rule="host-cache") == []
    if "rotational" in facts:  # emulated, as links are
        guest = replace(view, host=HostFacts(host="local", virtualization="kvm"))
        assert found(guest, rule="host-cache") == []


@pytest.mark.parametrize(("share", "count"), [(2.0, 1), (1.05, 0), (0.5, 0)])
def test_an_upper_layer_that_is_faster_than_its_device_is_questioned(
    share: float, count: int
) -> None:
    """A file twice as fast as its disk is in a cache; another workload proves nothing."""
    disk, file = a_run(), a_run(name="b", kind=VolumeKind.DIRECTORY)
    upper = a_view(file, summary=[summary_row(file, iops=share * IOPS)], series=[])
    assert len(found(a_view(disk), upper, rule="host-cache")) == count
    assert found(a_view(a_run({"iodepth": "1"})), upper, rule="host-cache") == []
    assert found(upper, a_view(disk), rule="host-cache") == []


@pytest.mark.parametrize(
    ("options", "rate", "count"),
    [
        ({}, 2.48e9, 1),
        ({}, 1.2e9, 0),
        ({"direct": "1"}, 2.48e9, 0),
        ({"iodepth": "16"}, 2.48e9, 0),
        ({"ioengine": "spdk"}, 2.48e9, 0),
    ],
)
def test_fast_results_that_may_have_been_buffered_are_questioned(
    options: dict[str, str], rate: float, count: int
) -> None:
    """2.48 GB/s at depth 1, where the output does not say whether direct=1 was set."""
    given = {"direct": None, "iodepth": "1", "bs": "131072"}
    imported = Imported(
        files=(SourceFile(name="fio.txt", source="r.txt", sha256=""),),
        jobs=(ImportedJob(name="a", groupid=0, section="a"),),
        incomplete_sections=("a",),
    )
    run = a_run({**given, **options}, imported=imported)
    view = a_view(run, summary=[summary_row(run, bw_bytes_per_s=rate)], device=[], volume=None)
    entries = found(view, rule="page-cache")
    assert ["does not say that direct=1" in entry.message for entry in entries] == [True] * count


@pytest.mark.parametrize("engine", ["null", "cpuio"])
def test_imports_of_an_engine_without_a_disk_are_invalid(engine: str) -> None:
    """What fio counts with them is its own speed, whatever file name stands beside it."""
    run = a_run({"ioengine": engine}, imported=Imported(files=(), jobs=()))
    (entry,) = found(a_view(run, device=[], volume=None), rule="memory-volume")
    assert (entry.severity, entry.evidence) == (Severity.INVALID, {"ioengine": engine})


@pytest.mark.parametrize("mounted", ["tmpfs", "ext4"])
def test_the_file_of_a_loop_device_may_be_in_memory(mounted: str) -> None:
    """A loop on tmpfs is memory, and the plan says so before the run."""
    server = Server()
    server.disk("loop3", (7, 3), loop__backing_file="/dev/shm/image")
    server.machine.stats["/dev/shm/image"] = FileStat("file", (0, 26), (0, 0), 2, 0)
    server.machine.links["/sys/block/loop3"] = "/sys/devices/loop3"
    server.mount(f"30 27 0:26 / /dev/shm rw - {mounted} none rw")
    facts = probe_volume(server.machine, find_volume(server.machine, role="d", target="/dev/loop3"))
    assert bool(facts.memory_below) == (mounted == "tmpfs")
    assert ("memory of the host" in memory_words([facts])) == bool(facts.memory_below)
