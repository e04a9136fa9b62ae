"""Options and volumes are those that a result tells; what it leaves out is not made up."""

import json
from pathlib import Path

import pytest

from tests.extensions.importer.sources import CASES, copy_logs, put, result_of, take
from volbench.analyse.frames.run_facts import fact_columns, stack, with_facts
from volbench.extensions.importer.run_drafts import reported_options, unreported_flags, volume_of
from volbench.fio.results.embedded_results import find_results
from volbench.model.campaign.planned_run import VolumeKind
from volbench.present.formatting import block_size


@pytest.mark.parametrize(
    ("options", "kind", "target"),
    [
        ({"filename": "/dev/nvme0n1"}, VolumeKind.DEVICE, "/dev/nvme0n1"),
        ({"filename": "/mnt/data/a.dat"}, VolumeKind.DIRECTORY, "/mnt/data"),
        ({"filename": r"/mnt/a:/mnt/b\:c"}, VolumeKind.DIRECTORY, "/mnt"),
        ({"filename": "/mnt/a:/srv/b"}, VolumeKind.UNKNOWN, "/mnt/a:/srv/b"),
        ({"filename": "a.dat"}, VolumeKind.DIRECTORY, "unknown"),
        ({"directory": "/mnt", "filename": "a"}, VolumeKind.DIRECTORY, "/mnt"),
        ({"directory": "/mnt", "filename": "/dev/sdb"}, VolumeKind.DEVICE, "/dev/sdb"),
        ({"filename": r"E\:\test.dat"}, VolumeKind.FILE, r"E:\test.dat"),
        ({"directory": "/mnt/data"}, VolumeKind.DIRECTORY, "/mnt/data"),
        ({"filename": "/dev/sdb:/dev/sdc"}, VolumeKind.UNKNOWN, "/dev/sdb:/dev/sdc"),
        ({"filename": r"\\.\PhysicalDrive1"}, VolumeKind.FILE, r"\\.\PhysicalDrive1"),
        ({"ioengine": "nbd", "uri": "nbd://h/x"}, VolumeKind.NBD, "nbd://h/x"),
        ({"ioengine": "rbd", "pool": "vms", "rbdname": "img"}, VolumeKind.UNKNOWN, "rbd:vms/img"),
        ({"ioengine": "gfapi", "brick": "n1", "volume": "v"}, VolumeKind.UNKNOWN, "gluster://n1/v"),
        ({"ioengine": "rbd", "pool": "vms"}, VolumeKind.UNKNOWN, "unknown"),
        ({}, VolumeKind.UNKNOWN, "unknown"),
    ],
)
def test_a_volume_is_described_as_reported(
    options: dict[str, str], kind: VolumeKind, target: str
) -> None:
    """A device, the folder of files, or an export; several, or none, are unknown."""
    (output,) = find_results(result_of("fio-3.33/fsync-latency", **options)).results
    volume = volume_of({"w": reported_options(output, output.jobs[0])})
    assert (volume.kind, volume.target) == (kind, target)


def test_a_job_named_after_its_device_is_recognised() -> None:
    """Without a filename fio takes the jobname for one; benchmarks of Ceph use that."""
    for options, target in (({}, "/dev/nvme8n13"), ({"filename": "/dev/sdb"}, "/dev/sdb")):
        text = result_of("fio-3.33/fsync-latency", jobname="/dev/nvme8n13", bs="4096B", **options)
        (output,) = find_results(text).results
        reported = reported_options(output, output.jobs[0])
        volume = volume_of({"w": reported})
        assert (volume.kind, volume.target) == (VolumeKind.DEVICE, target)
        assert reported.options["bs"] == "4096"


def test_many_files_get_one_short_name() -> None:
    """Two sets of files that begin alike are two volumes, and no table becomes wide for them."""
    targets = set()
    for last in ("x", "y"):
        names = ":".join([*(f"/mnt/data/file-{number}" for number in range(200)), last])
        (output,) = find_results(result_of("fio-3.33/fsync-latency", filename=names)).results
        targets.add(volume_of({"w": reported_options(output, output.jobs[0])}).target)
    assert len(targets) == 2
    assert max(map(len, targets)) < 170


def test_options_are_read_as_fio_reads_them() -> None:
    """Texts of a job file become canonical; what can't be read is named, and nothing fails."""
    text = result_of(
        "fio-3.33/fsync-latency", bs="4k", runtime="1m", numjobs="2", iodepth="oops", odd_one="x"
    )
    (output,) = find_results(text).results
    reported = reported_options(output, output.jobs[0])
    assert (reported.options["bs"], reported.options["runtime"]) == ("4096", "60s")
    assert reported.left_out == ("iodepth=oops",)
    assert "odd_one" not in reported.options
    assert not reported.is_whole  # so that the depth is unknown, not 1


# What fio 3.33 read and wrote with these options: I/Os and bytes
_BLOCKS = [
    ({"bs": "4k-32k"}, "4k", (4001, 16388096), "32k", (3998, 131006464)),
    ({"bs": "4k,64k"}, "4k", (4000, 16384000), "64k", (4000, 262144000)),
    ({"bs": "4k:64k"}, "4k", (4000, 16384000), "64k", (4000, 262144000)),
    ({"bs": "64k,"}, "64k", (4000, 262144000), "n/a", (4000, 16384000)),
    ({"bsrange": "4k-32k"}, "4k-32k", (1195, 16388096), "4k-32k", (1129, 16392192)),
    ({"blocksize_range": "4k-32k,8k-64k"}, "4k-32k", (1036, 16400384), "8k-64k", (1076, 32784384)),
    ({"bssplit": "4k/60:64k/40"}, "4k-64k", (974, 16384000), "4k-64k", (1092, 16388096)),
    ({"bssplit": "4k:64k,8k/9:16k"}, "4k-64k", (850, 16420864), "8k-16k", (2771, 32768000)),
    ({"bs": "1k", "bssplit": ",64k:8k"}, "n/a", (244, 3997696), "8k-64k", (273, 6381568)),
    ({"bs": "4k,64k", "bs_is_seq_rand": "1"}, "n/a", (266, 16433152), "n/a", (4001, 262209536)),
    ({"bs": "4k-16k", "verify": "crc32c"}, "4k-16k", (2970, 30720000), "16k", (4001, 65552384)),
    (
        {"bs": "4k-16k", "verify": "md5", "rw": "write"},
        "16k",
        (2970, 48660480),
        "16k",
        (4001, 65552384),
    ),
    ({"bs": "4k", "ba": "8k"}, "4k", (4001, 16388096), "4k", (4001, 16388096)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "reads", "read", "writes", "written"), _BLOCKS)
def test_bytes_are_judged_by_the_blocks_that_the_options_allow(
    options: dict[str, str],
    reads: str,
    read: tuple[int, int],
    writes: str,
    written: tuple[int, int],
    tmp_path: Path,
) -> None:
    """Blocks of unlike sizes are no contradiction, and tables have their sizes."""
    document = json.loads(result_of("fio-3.33/randrw-jsonplus", **{"rw": "randrw", **options}))
    for name, (ios, count) in (("read", read), ("write", written)):
        part = document["jobs"][0][name]
        part |= {"total_ios": ios, "io_bytes": count, "runtime": 2000, "iops": ios / 2}
        part |= {"bw_bytes": count // 2, "bw": count // 2048}
    put(tmp_path / "in" / "a.json", json.dumps(document))
    _, opened = take(tmp_path / "in", into=tmp_path / "out")
    assert "inconsistent-result" not in {row["rule"] for row in opened.rows("findings")}
    sizes = {row["direction"]: block_size(row) for row in opened.rows("summary")}
    assert sizes == {"read": reads, "write": writes}


def test_options_are_unknown_in_versions_that_did_not_write_them() -> None:
    """Up to 3.36 fio leaves a bare ``time_based`` out of its result, 3.42 does not."""
    for version, wanted in (("3.36", True), ("3.42", False)):
        (output,) = find_results((CASES / f"fio-{version}/logs-numjobs/stdout").read_text()).results
        assert ("time_based" in unreported_flags(output)) is wanted
    (entry, *_) = json.loads(result_of("fio-3.42/fsync-latency"))["jobs"]
    del entry["job options"]
    (output,) = find_results(json.dumps({"jobs": [entry]})).results
    assert "refill_buffers" in unreported_flags(output)


def test_unreported_options_cause_no_findings(tmp_path: Path) -> None:
    """Whether buffers were filled anew is not known where bare options are left out."""
    for version, doubted in (("3.33", False), ("3.42", True)):
        source = put(tmp_path / f"{version}.json", result_of(f"fio-{version}/randrw-jsonplus"))
        _, opened = take(source, into=tmp_path / version)
        assert ("compressible" in set(opened.frame("findings")["rule"])) is doubted


def test_an_unreported_option_is_not_a_difference(tmp_path: Path) -> None:
    """A comparison says that an option is not known; it does not take it for not set."""
    parts = []
    for version in ("3.36", "3.42"):
        source = put(tmp_path / f"{version}.json", result_of(f"fio-{version}/logs-averaged"))
        _, opened = take(source, into=tmp_path / version)
        parts.append(with_facts(opened.summary(), opened.context().views, volbench_version="0"))
    rows = stack(parts)
    assert "time_based" in fact_columns(rows)
    assert rows["time_based"].isna().tolist() == [True, True, False, False]


def test_logs_without_a_time_of_day_get_it_from_the_result(tmp_path: Path) -> None:
    """From 3.36 on fio reports when I/O began; before, its end less its runtime says so."""
    for version in ("3.33", "3.36"):
        case = f"fio-{version}/logs-averaged"
        put(tmp_path / version / "r.json", result_of(case))
        copy_logs(case, tmp_path / version, prefix="l")
        _, opened = take(tmp_path / version, into=tmp_path / f"c{version}")
        series = opened.series()
        assert series["utc"].notna().all()
    assert series["utc"].min() == "2026-11-21T03:18:51.540Z"


@pytest.mark.parametrize(("options", "has_rate"), [({"verify": "md5"}, False), ({}, True)])
def test_reads_of_verification_have_no_rate(
    tmp_path: Path, options: dict[str, str], *, has_rate: bool
) -> None:
    """A job that writes and then verifies does not read at 35 GB/s; its latencies are known."""
    text = result_of("fio-3.33/randrw-jsonplus", rw="randwrite", **options)
    _, opened = take(put(tmp_path / "r.json", text), into=tmp_path / "c")
    rows = {str(row["direction"]): row for row in opened.rows("summary")}
    assert rows["write"]["iops"] is not None
    assert (rows["read"]["iops"] is not None) == has_rate
    assert rows["read"]["clat_mean_s"] is not None
