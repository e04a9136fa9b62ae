"""fio's normal and terse output say what its JSON says, as far as they say anything."""

from pathlib import Path

import pytest

from volbench.errors import OutputError
from volbench.fio.results.embedded_results import find_results
from volbench.fio.results.text_output import read_text_output
from volbench.model.results.result import Direction, DirectionResult, JobResult, RunOutput

CASES = Path(__file__).parents[2] / "cases"
TEXT = CASES / "text-output"


def both() -> tuple[RunOutput, str]:
    """Return the JSON of a run, and the normal output of the same run around it."""
    text = (TEXT / "fio-3.33-normal.txt").read_text()
    (whole,) = find_results(text).results
    before, _, rest = text.partition("\n{\n")
    return whole, before + rest.partition("\n}\n")[2]


def assert_alike(exact: DirectionResult, printed: DirectionResult, *, rel: float) -> None:
    """Check rates, latencies and percentiles of a direction, which are rounded differently."""
    assert printed.io_bytes == pytest.approx(exact.io_bytes, rel=rel)
    assert printed.runtime_s == pytest.approx(exact.runtime_s)
    assert printed.iops == pytest.approx(exact.iops, rel=rel)
    assert printed.bw_bytes_per_s == pytest.approx(exact.bw_bytes_per_s, rel=rel)
    for kind in ("lat", "clat", "slat"):
        known, found = getattr(exact, kind), getattr(printed, kind)
        assert (known is None) == (found is None), kind
        if known is not None:
            assert found.mean_s == pytest.approx(known.mean_s, rel=0.01)
            assert found.max_s == pytest.approx(known.max_s, rel=0.01, abs=1e-6)
            assert found.stddev_s == pytest.approx(known.stddev_s, rel=0.01, abs=1e-8)
    assert exact.clat is not None
    assert printed.clat is not None
    assert printed.clat.percentiles == pytest.approx(exact.clat.percentiles, rel=0.05, abs=1e-6)


@pytest.mark.parametrize(("version", "name"), [(2, "terse-3"), (3, "terse-3"), (5, "normal")])
def test_terse_output(version: int, name: str) -> None:
    """Version 2 lacks the version of fio, and only version 5 has IOPS of windows."""
    text = (TEXT / f"fio-3.33-{name}.txt").read_text()
    (whole,) = find_results(text).results
    text = "".join(line for line in text.splitlines(keepends=True) if line[:2] in {"3;", "5;"})
    text = text.replace("3;fio-3.33;", "2;") if version == 2 else text
    found = read_text_output(text)
    assert [output.form for output in found] == ["terse", "terse"]
    assert {output.tool_version for output in found} == {"" if version == 2 else "fio-3.33"}
    for known, (job,) in zip(whole.jobs, [output.jobs for output in found], strict=True):
        assert (job.name, job.groupid, job.error) == (known.name, known.groupid, known.error)
        assert job.cpu_sys == pytest.approx(known.cpu_sys, abs=0.01)
        assert job.depth_shares == pytest.approx(known.depth_shares, abs=0.1)
        transfers = [own for own in known.directions if own.direction is not Direction.SYNC]
        for exact, printed in zip(transfers, job.directions, strict=True):
            assert_alike(exact, printed, rel=0.001)
            assert printed.iops_min == (exact.iops_min if version == 5 else None)


def test_normal_output() -> None:
    """I/Os, runtime and so IOPS are exact, and bytes with one block size; the rest is rounded."""
    whole, text = both()
    (found,) = read_text_output(text)
    assert (found.tool_version, found.form) == ("fio-3.33", "normal")
    for known, job in zip(whole.jobs, found.jobs, strict=True):
        assert (job.name, job.groupid) == (known.name, known.groupid)
        for exact in known.directions:
            printed = job.direction(exact.direction)
            assert printed is not None
            if exact.direction is Direction.SYNC:
                assert exact.lat is not None
                assert printed.lat is not None
                assert printed.lat.mean_s == pytest.approx(exact.lat.mean_s, rel=0.01)
                continue
            assert (printed.total_ios, printed.io_bytes) == (exact.total_ios, exact.io_bytes)
            assert printed.iops_max == pytest.approx(exact.iops_max)
            assert_alike(exact, printed, rel=1e-6)
    options = {"rw": "randrw", "bs": "4096", "ioengine": "libaio", "iodepth": "4"}
    assert found.jobs[0].options == options | {"numjobs": "2", "group_reporting": "1"}


@pytest.mark.parametrize(
    ("case", "iops", "io_bytes", "mean_s"),
    [
        ("numjobs-grouped", 1099033 / 1.007, 1099033 * 4096, 3.11e-6),
        ("fsync-latency", 330 / 1.004, 330 * 4096, 39.02e-6),
    ],
)
def test_normal_output_of_fio_2(case: str, iops: float, io_bytes: int, mean_s: float) -> None:
    """KB are 1024 bytes, the totals are r=.../w=..., and rates stand behind io=."""
    (found,) = read_text_output((CASES / "fio-2.2.10" / case / "stdout").read_text())
    (direction,) = found.jobs[0].directions
    assert direction.iops == pytest.approx(iops)
    assert direction.io_bytes == io_bytes
    assert direction.lat is not None
    assert direction.lat.mean_s == pytest.approx(mean_s)


def test_the_last_report_of_a_process_counts() -> None:
    """With --status-interval a process reports the same job several times."""
    text = (TEXT / "fio-3.33-status.txt").read_text()
    assert text.count("(groupid=0, jobs=1)") == 4
    (found,) = read_text_output(text)
    (job,) = found.jobs
    assert job.directions[0].runtime_s == pytest.approx(3.0, abs=0.1)


def test_processes_in_one_file_are_never_added_up() -> None:
    """Output that was appended to a file is of several processes, with or without their headers."""
    _, text = both()
    entries = text[text.index("\nmix: (groupid=0") :]
    other = entries.replace("pid=", "pid=9")
    for several in (text + text.replace("pid=", "pid=9"), entries + other):
        found = read_text_output(several)
        assert [[job.name for job in output.jobs] for output in found] == [["mix", "seq"]] * 2


def _jobs(text: str) -> tuple[JobResult, ...]:
    return tuple(job for output in read_text_output(text) for job in output.jobs)


def test_a_contradiction_of_total_and_rate_is_not_resolved() -> None:
    """The printed rate stands where the total does not explain it, as after a ramp time."""
    _, text = both()
    line = next(line for line in text.splitlines() if "issued rwts" in line)
    (mix, _) = _jobs(text.replace(line, "     issued rwts: total=99,99,0,0 short=0,0,0,0"))
    exact = _jobs(text)[0].directions[0].iops
    assert mix.directions[0].iops == pytest.approx(exact, rel=0.01)


def test_output_without_a_result() -> None:
    """A killed fio printed its jobs only; a cut line of terse output has no numbers."""
    _, text = both()
    with pytest.raises(OutputError, match=r"such as 'mix: .*, and none that begins a result"):
        read_text_output("\n".join(text.splitlines()[:5]))
    row = (TEXT / "fio-3.33-terse-3.txt").read_text().partition("\n3;")[2].partition("\n")[0]
    for damaged in (
        row.replace("%=", "%=x", 1),
        row[:60],
        row.replace(row.split(";")[11], "nan", 1),
    ):
        good, bad = (found.jobs[0] for found in read_text_output(f"3;{row}\n3;{damaged}\n"))
        assert (bool(good.directions), good.damage, bad.directions) == (True, "", ())
        assert bad.damage.startswith("line 2 of fio's terse output")
    (found,) = read_text_output(text.replace("min=", "min=1.2.", 1))
    assert [bool(job.damage) for job in found.jobs] == [True, False]
    assert read_text_output("mix: 4k\n3;fio;4\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "> seq: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B,",
        "   READ: io=3200.0MB, aggrb=28992KB/s, mint=112623msec, maxt=113021msec",
        "   read: IOPS=9389, BW=36.7MiB/s (38.5MB/s)(1024MiB/27920msec)",
        "fio: pid=0, err=30/file:filesetup.c:224, func=write, error=Read-only file system",
    ],
)
def test_parts_of_output_are_refused_by_what_they_lack(line: str) -> None:
    """A quotation without the line with a process ID is not just another file."""
    with pytest.raises(OutputError, match="none that begins a result"):
        read_text_output(f"It was slow:\n{line}\nWhy?\n")
    assert read_text_output("read: 9389 IOPS in 27920msec\nfio: see also\n") == []


def test_a_version_before_fio_2_1_ends_the_jobs_of_a_process() -> None:
    """Fio 2.0.8 printed ``2.0.8``; fio 3 may print ``...`` behind a job."""
    for old in ("2.0.8", "2.0.10-4-g2f8d"):
        (job,) = _jobs(ETCD.replace("fio-3.28", old).replace("iodepth=1", "iodepth=1 ..."))
        assert (job.options["ioengine"], job.options["bs"]) == ("sync", "2300")


ETCD = """\
wal: (g=0): rw=write, bs=(R) 2300B-2300B, (W) 2300B-2300B, (T) 2300B-2300B, ioengine=sync, iodepth=1
fio-3.28
Starting 1 process
wal: (groupid=0, jobs=1): err= 0: pid=25: Fri Sep  8 07:53:08 2023
  write: IOPS=58, BW=132KiB/s (135kB/s)(21.0MiB/170299msec); 0 zone resets
     lat (msec): min=2, max=31, avg= 9.81, stdev= 2.03
    clat (msec): min=2, max=31, avg= 9.76, stdev= 2.02
    clat percentiles (usec):
     |  1.00th=[ 7712], 50.00th=[ 9152], 99.99th=[31360]
     issued rwts: total=0,10029,0,0 short=10029,0,0,0 dropped=0,0,0,0
"""


def test_a_carry_that_fio_loses_is_no_contradiction() -> None:
    """10,029 blocks of 2,300 bytes are 21.998 MiB, which fio prints as 21.0; 20.0 it would not."""
    (job,) = _jobs(ETCD)
    assert job.directions[0].io_bytes == 10029 * 2300
    (other,) = _jobs(ETCD.replace("21.0MiB", "20.0MiB").replace("132KiB/s", "120KiB/s"))
    assert other.directions[0].io_bytes == 20 << 20
    (odd,) = _jobs(ETCD.replace("21.0MiB", "20.0MiB").replace("132KiB/s", "126KiB/s"))
    assert odd.directions[0].io_bytes == 21 << 20


def test_a_percentile_is_not_above_a_maximum_that_is_rounded() -> None:
    """31.36 ms are 31 with the digits of the maximum; 33 ms would be an error."""
    (job,) = _jobs(ETCD)
    assert job.directions[0].clat is not None
    assert job.directions[0].clat.percentiles[99.99] == 0.031
    (other,) = _jobs(ETCD.replace("31360", "33000"))
    assert other.directions[0].clat is not None
    assert other.directions[0].clat.percentiles[99.99] == 0.033


@pytest.mark.parametrize("margin", ["", "    ", "> "])
def test_a_quotation_may_lack_indentation(margin: str) -> None:
    """Markdown editors indent all lines of an entry alike; the totals below are not its own."""
    lines = [margin + line.strip() for line in ETCD.splitlines()]
    totals = ["", "Run status group 0 (all jobs):", "  WRITE: bw=132KiB/s, io=21.0MiB"]
    (job,) = _jobs("\n".join([*lines, *(margin + line for line in totals)]))
    assert (job.directions[0].total_ios, job.directions[0].runtime_s) == (10029, 170.299)
    assert job.directions[0].lat is not None
    assert job.directions[0].lat.mean_s == pytest.approx(9.81e-3)


def test_messages_of_fio_belong_to_the_result_behind_them() -> None:
    """Fio says that it was stopped before it prints what it has."""
    stopped = ETCD.replace("\nwal: (group", "\nfio: terminating on signal 2\n\nwal: (group")
    first, second = read_text_output(stopped + ETCD.replace("pid=25", "pid=26"))
    assert (first.diagnostics, second.diagnostics) == ("fio: terminating on signal 2", "")


def test_an_entry_without_numbers_says_nothing_about_its_io() -> None:
    """Its lines were cut off; fio prints no entry without I/O, except one with an error."""
    short = "\n".join(line for line in ETCD.splitlines()[:4])
    with pytest.raises(OutputError, match="no rate and no number of I/Os"):
        read_text_output(short)
    (job,) = _jobs(short.replace("err= 0", "err= 5 (file:io_u.c:2008, func=io_u error)"))
    assert (job.error, job.damage) == (5, "")


def test_sections_that_differ_in_nothing_known_are_not_unlike() -> None:
    """Fio merges them under the name of the first one; what the header lines tell is of all."""
    header, rest = ETCD.split("\n", 1)
    merged = rest.replace("jobs=1", "jobs=2")
    (alike,) = _jobs("\n".join([header, header.replace("wal:", "log:"), merged]))
    assert (alike.merged, alike.options["bs"], alike.options["numjobs"]) == ({}, "2300", "2")
    unlike = header.replace("wal:", "log:").replace("iodepth=1", "iodepth=2")
    (other,) = _jobs(f"{header}\n{unlike}\n{merged}")
    assert [*other.merged] == ["wal", "log"]


def test_sums_over_clients_are_results_of_their_own() -> None:
    """They have no process ID, so a later one is another run; beside its clients it is left out."""
    clients = ETCD[ETCD.index("wal: (groupid") :].replace("wal:", "All clients:")
    clients = clients.replace("pid=25", "pid=0").replace("BW=132KiB/s (135kB/s)", "BW=132Ki (135k)")
    assert len(_jobs(clients + clients)) == 2
    assert [job.name for job in _jobs(ETCD + clients)] == ["wal"]


_TWO = """\
x: (g=0): rw=write, bs=(R) 64.0KiB-64.0KiB, (W) 64.0KiB-64.0KiB, (T) 64.0KiB-64.0KiB, ioengine=psync, iodepth=1
x: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1
fio-3.33
Starting processes
x: (groupid=0, jobs=1): err= 0: pid=30653: Thu Nov 26 18:58:30 2026
  write: IOPS=16, BW=1024KiB/s (1049kB/s)(4096KiB/4000msec); 0 zone resets
     issued rwts: total=0,64,0,0 short=0,0,0,0 dropped=0,0,0,0
{entry}x: (groupid=0, jobs=1): err= 0: pid=30654: Thu Nov 26 18:58:30 2026
  read: IOPS=256, BW=1024KiB/s (1049kB/s)(4096KiB/4000msec)
     issued rwts: total=1024,0,0,0 short=0,0,0,0 dropped=0,0,0,0
"""  # noqa: E501 - as fio prints it


def test_options_of_two_jobs_of_one_name_are_what_both_have() -> None:
    """With --name=x twice (fio 3.33), nothing says which entry is of which section."""
    entry = "x: (groupid=0, jobs=1): err= 0: pid=30655: Thu Nov 26 18:58:30 2026\n"
    entry += "  read: IOPS=256, BW=1024KiB/s (1049kB/s)(4096KiB/4000msec)\n"
    (output,) = read_text_output(_TWO.format(entry=entry))
    assert [job.options for job in output.jobs] == [{"ioengine": "psync", "iodepth": "1"}] * 3
    assert [part.io_bytes for job in output.jobs for part in job.directions] == [4194304] * 3
