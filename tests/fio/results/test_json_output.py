"""Results of eight fio versions are read exactly, or refused with the reason."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from volbench.errors import OutputError
from volbench.fio.results.json_output import parse_output, parse_version, read_document
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency

CASES = Path(__file__).parents[2] / "cases"
ALL = sorted(path.parent.relative_to(CASES).as_posix() for path in CASES.glob("fio-*/*/stdout"))
REFUSED = {
    **{f"{path.name}/bad-option": "fio produced no output" for path in CASES.glob("fio-*")},
    "fio-2.2.10/fsync-latency": "fio printed no JSON: w: (g=0)",  # json+ came with 2.2.12
    "fio-2.2.10/numjobs-grouped": "fio printed no JSON: seq: (g=0)",
    "fio-2.2.10/randrw-jsonplus": "fio printed no JSON: mix: (g=0)",
    "fio-2.2.10/logs-histogram": "fio produced no output",  # histogram logs came with 2.13
    "fio-2.2.10/steadystate": "fio produced no output",  # steady state came with 2.16
    "fio-3.16/interrupted": "fio produced no output",  # the signal came before its handler
}
READ = [case for case in ALL if case not in REFUSED]
Raw = dict[str, object]


def text_of(case: str) -> str:
    """Return the stdout of a case."""
    return (CASES / case / "stdout").read_text(errors="replace")


def raw_of(case: str) -> Raw:
    """Return the last document of a case as Python decodes it, found by its braces."""
    found = re.findall(r"^\{\n.*?^\}$", text_of(case), re.DOTALL | re.MULTILINE)
    document = json.loads(found[-1])
    assert isinstance(document, dict)
    return document


def below(raw: Raw, key: str) -> Raw:
    """Return an object of the document."""
    value = raw[key]
    assert isinstance(value, dict)
    return value


def listed(raw: Raw, key: str) -> list[Raw]:
    """Return a list of objects of the document."""
    value = raw.get(key, [])
    assert isinstance(value, list)
    return value


def number(raw: Raw, key: str) -> float:
    """Return a number of the document."""
    value = raw[key]
    assert isinstance(value, int | float)
    return value


def test_every_recorded_case_is_tested() -> None:
    """All the cases of all versions take part, so none is lost unseen."""
    assert len(ALL) == 8 * 17
    assert set(REFUSED) <= set(ALL)


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_output_that_is_not_a_result_is_refused_with_a_reason(case: str) -> None:
    """Output without a document gives OutputError that says why or quotes fio."""
    with pytest.raises(OutputError, match=re.escape(REFUSED[case])):
        parse_output(text_of(case))


@pytest.mark.slow
@pytest.mark.parametrize("case", READ)
def test_every_number_is_the_raw_one(case: str) -> None:
    """Every number of a result is fio's own, but for its unit."""
    output, raw = parse_output(text_of(case)), raw_of(case)
    version = parse_version(case)
    assert output.tool_version == raw["fio version"] == case.split("/", maxsplit=1)[0]
    stamp = ("timestamp_ms", 1000) if "timestamp_ms" in raw else ("timestamp", 1)
    assert output.ended_utc_s == number(raw, stamp[0]) / stamp[1]
    assert output.global_options == raw.get("global options", {})
    entries = listed(raw, "jobs")
    assert len(output.jobs) == len(entries)
    for job, entry in zip(output.jobs, entries, strict=True):
        assert (job.name, job.groupid, job.error) == (
            entry["jobname"],
            entry["groupid"],
            entry["error"],
        )
        assert job.options == entry.get("job options", {})
        assert (job.cpu_usr, job.cpu_sys) == (entry["usr_cpu"], entry["sys_cpu"])
        assert job.elapsed_s == entry["elapsed"]
        compare_shares(job, entry)
        assert job.steadystate == entry.get("steadystate")
        assert (job.total_errors, job.members) == (0, 1)
        if version >= (3, 36):
            assert (job.start_utc_s or 0) == number(entry, "job_start") / 1000
        for name in ("read", "write", "trim"):
            found = job.direction(Direction(name))
            if below(entry, name)["total_ios"] == 0:
                assert found is None
            else:
                assert found is not None
                compare_direction(found, below(entry, name), version)
        compare_sync(job.direction(Direction.SYNC), entry, version)


def compare_shares(job: JobResult, entry: Raw) -> None:
    """Compare the classes with fio's: its depths are named by their lower ends."""
    depths = below(entry, "iodepth_level")
    assert job.depth_shares == {int(key.removeprefix(">=")): depths[key] for key in depths}
    names = [name for name in ("latency_ns", "latency_us", "latency_ms") if name in entry]
    assert list(job.clat_shares.values()) == [
        value for name in names for value in below(entry, name).values()
    ]
    slow = below(entry, "latency_ms")
    assert job.clat_shares[500_000] == below(entry, "latency_us")["750"]
    assert (job.clat_shares[10**6], job.clat_shares[2 * 10**9]) == (slow["2"], slow[">=2000"])


def compare_direction(found: DirectionResult, raw: Raw, version: tuple[int, int]) -> None:
    """Compare a direction with its object, units told by the version."""
    assert found.io_bytes == number(raw, "io_bytes") * (1024 if version < (2, 21) else 1)
    assert found.total_ios == raw["total_ios"]
    assert found.runtime_s == number(raw, "runtime") / 1000
    assert found.iops == raw["iops"]
    bandwidth = number(raw, "bw") * 1024 if version < (3, 2) else number(raw, "bw_bytes")
    cut = (found.bw_bytes_per_s or 0.0) - bandwidth
    assert 0 <= cut < (1024 if version < (3, 2) else 1e-9)
    for key in ("iops_min", "iops_max", "iops_stddev"):
        # Zeros without a single sample say nothing: they are not told.
        reported = version >= (3, 0) and raw["iops_samples"] != 0
        assert getattr(found, key) == (raw[key] if reported else None)
    for latency, name in ((found.lat, "lat"), (found.clat, "clat"), (found.slat, "slat")):
        compare_latency(latency, below(raw, name if version < (3, 0) else f"{name}_ns"), version)


def compare_latency(found: Latency | None, raw: Raw, version: tuple[int, int]) -> None:
    """Compare a latency with its object: microseconds in fio 2, nanoseconds in fio 3."""
    unit_ns = 1000 if version < (3, 0) else 1
    if number(raw, "mean") == 0 and number(raw, "max") == 0:
        assert found is None
        return
    assert found is not None
    assert found.count == (raw["N"] if version >= (3, 18) else None)
    for value_s, key in (
        (found.min_s, "min"),
        (found.max_s, "max"),
        (found.mean_s, "mean"),
        (found.stddev_s, "stddev"),
    ):
        assert value_s == number(raw, key) / (1e9 / unit_ns)
    percentiles = below(raw, "percentile") if "percentile" in raw else {}
    assert found.percentiles == {
        float(key): number(percentiles, key) / (1e9 / unit_ns)
        for key in percentiles
        if float(key) > 0
    }
    bins = below(raw, "bins") if "bins" in raw else {}
    assert found.bins == {int(key) * unit_ns: count for key, count in bins.items()}


def compare_sync(found: DirectionResult | None, entry: Raw, version: tuple[int, int]) -> None:
    """Compare the syncs: they count the samples, for fdatasync is missing in fio's total."""
    if version < (3, 4) or number(below(below(entry, "sync"), "lat_ns"), "max") == 0:
        assert found is None
        return
    assert found is not None
    raw = below(below(entry, "sync"), "lat_ns")
    compare_latency(found.lat, raw, version)
    assert found.total_ios == sum(below(raw, "bins").values())  # type: ignore[arg-type]  # counts
    assert (found.iops, found.bw_bytes_per_s, found.io_bytes) == (None, None, 0)


@pytest.mark.parametrize("case", [case for case in ALL if case.endswith("status-interval")])
def test_the_last_of_several_documents_is_the_result(case: str) -> None:
    """Status documents come first in the stream; the result is the last."""
    output = parse_output(text_of(case))
    assert output.documents == 4
    assert output.jobs[0].directions[0].total_ios == max(
        int(count) for count in re.findall(r'"total_ios" : (\d+)', text_of(case))
    )


def test_text_around_a_document_is_kept() -> None:
    """Notes and errors before and after the JSON become diagnostics."""
    text = text_of("fio-3.33/randtrim-null")
    output = parse_output(f"fio: pid=7, err=28/file:x\r\n{text}\nfio: later\n")
    assert output.diagnostics == "fio: pid=7, err=28/file:x\nfio: later"
    assert output.jobs == parse_output(text).jobs
    note = parse_output(text_of("fio-3.42/iodepth-note")).diagnostics
    assert note.startswith("note: both iodepth >= 1")


def test_status_lines_before_a_document_do_not_hide_it() -> None:
    """A status line ends in a carriage return, so the brace follows on the same line."""
    text = text_of("fio-3.33/randtrim-null")
    assert parse_output(f"Jobs: 1 (f=1)\r{text}").jobs == parse_output(text).jobs
    assert parse_output(text.replace("\n", "\r\n")).jobs == parse_output(text).jobs


@pytest.mark.parametrize("case", ["fio-3.33/randrw-jsonplus", "fio-2.2.10/interrupted"])
def test_a_truncated_document_is_refused_with_its_position(case: str) -> None:
    """Cut at any byte, the output gives OutputError; only a lost final newline is harmless."""
    data = (CASES / case / "stdout").read_bytes().rstrip()
    cuts = [*range(0, len(data), 97), *range(len(data) - 40, len(data))]
    for cut in cuts:
        with pytest.raises(OutputError, match=r"line \d+|no output|no JSON"):
            parse_output(data[:cut].decode(errors="replace"))
    assert parse_output(data.decode()).documents == 1


@pytest.mark.parametrize(
    "text",
    [
        '{\n"fio version" : "fio-3.33", "jobs" : ' + "[" * 100_000,
        '{\n"fio version" : "fio-3.33"\n}\n',
        '{\n"fio version" : "fio-3.33", "jobs" : 3\n}\n',
        '{\n"fio version" : 3, "jobs" : []\n}\n',
        '{\n"jobs" : []\n}\n',
        '{\n"fio version" : "fio-3.33", "jobs" : [' + "9" * 6000 + "]\n}\n",
        '{\n"fio version" : "fio-3.33", "jobs" : [1]\n}\n',
        '{\n"fio version" : "fio-3.33", "jobs" : [{"groupid": 0, "error": 1' + "0" * 400 + "}]\n}",
    ],
    ids=["deep", "no-jobs", "jobs-number", "version-number", "foreign", "digits", "entry", "huge"],
)
def test_foreign_json_is_refused(text: str) -> None:
    """JSON that fio would never write gives OutputError."""
    with pytest.raises(OutputError):
        parse_output(text)


def test_nan_and_inf_become_missing_numbers() -> None:
    """``nan`` and ``inf`` become missing numbers, and a text that looks like one stays."""
    text = text_of("fio-3.33/randtrim-null")
    text = re.sub(r'"iops" : [\d.]+', '"iops" : -nan', text)
    text = re.sub(r'"usr_cpu" : [\d.]+', '"usr_cpu" : inf', text)
    text = re.sub(r'"stddev" : [\d.]+', '"stddev" : nan', text)
    text = text.replace('"jobname" : "t"', '"jobname" : "a -nan, inf"')
    job = parse_output(text).jobs[0]
    trim = job.direction(Direction.TRIM)
    assert job.name == "a -nan, inf"
    assert job.cpu_usr is None
    assert trim is not None
    assert trim.iops is None
    assert trim.lat is not None
    assert math.isnan(trim.lat.stddev_s)


def test_raw_control_characters_in_texts_are_read() -> None:
    """Quotes and backslashes are all that fio escapes, so a tab stands raw in a name."""
    text = text_of("fio-3.33/randtrim-null")
    changed = text.replace('"jobname" : "t"', '"jobname" : "a\tb\x0b\u2028\ufffd"')
    assert parse_output(changed).jobs[0].name == "a\tb\x0b\u2028\ufffd"


@pytest.mark.parametrize("key", [r"\ud800", r"\u202e", r"\u001b[2J", r"\u0000"])
def test_errors_escape_a_key_that_cannot_be_printed_or_stored(key: str) -> None:
    """The message of an error is printed, and kept in the tables of its campaign."""
    text = text_of("fio-3.42/fsync-latency")
    changed = re.sub(r'"bins" : \{(?=\s*")', lambda _: f'"bins" : {{ "{key}" : 6,', text)
    assert changed != text
    with pytest.raises(OutputError, match="a latency bin") as raised:
        parse_output(changed)
    assert str(raised.value).isprintable()


def test_the_last_of_a_repeated_option_counts() -> None:
    """An option given twice is printed as two keys of one object; it used the last."""
    text = text_of("fio-3.33/randtrim-null")
    changed = text.replace('"bs" : "4k"', '"bs" : "4k", "bs" : "64k"')
    assert parse_output(changed).jobs[0].options["bs"] == "64k"


def test_constants_of_old_versions_among_the_bins_are_left_out() -> None:
    """Versions 2.2.12 to 2.19 put constants of fio's source into the bins."""
    text = text_of("fio-2.21/randrw-jsonplus")
    changed = re.sub(r'"bins" : \{(?=\s*")', '"bins" : { "FIO_IO_U_PLAT_BITS" : 6,', text)
    assert changed != text
    assert parse_output(changed).jobs == parse_output(text).jobs


def test_clients_are_read_separately_and_their_sum_is_left_out() -> None:
    """With clients each entry names its host, and fio's own sum is not a job."""
    raw = raw_of("fio-3.33/randtrim-null")
    entry = listed(raw, "jobs")[0]
    del raw["jobs"]
    raw["client_stats"] = [
        {**entry, "hostname": "left", "port": 8765},
        {**entry, "hostname": "right", "port": 8765},
        {**entry, "jobname": "All clients", "hostname": "right"},
    ]
    raw["global options"] = [{"hostname": "left", "port": 8765, "bs": "4k"}]
    output = parse_output("<left> Starting\n" + json.dumps(raw, indent=1))
    assert [job.name for job in output.jobs] == ["left:t", "right:t"]
    assert output.global_options == {"bs": "4k"}


def test_versions_that_do_not_count_ios_are_read() -> None:
    """Fio 2.1.11 and before wrote no ``total_ios``, and whole IOPS."""
    raw = raw_of("fio-2.2.10/numjobs-separate")
    for entry in listed(raw, "jobs"):
        for name in ("read", "write", "trim"):
            for key in ("total_ios", "short_ios", "drop_ios"):
                below(entry, name).pop(key)
    for job, entry in zip(parse_output(json.dumps(raw)).jobs, listed(raw, "jobs"), strict=True):
        (found,) = job.directions
        assert (found.total_ios, found.iops) == (None, below(entry, found.direction.value)["iops"])


def test_unified_reporting_is_read_as_mixed() -> None:
    """``unified_rw_reporting=1`` puts `mixed` in the place of the directions."""
    raw = raw_of("fio-3.33/randtrim-null")
    entry = listed(raw, "jobs")[0]
    entry["mixed"] = entry.pop("trim")
    for name in ("read", "write", "sync"):
        del entry[name]
    (mixed,) = parse_output(json.dumps(raw)).jobs[0].directions
    assert mixed.direction is Direction.MIXED
    assert mixed.total_ios == below(entry, "mixed")["total_ios"]


@pytest.mark.parametrize(
    ("text", "version"),
    [("fio-3.33", (3, 33)), ("fio-3.36-42-gabc1234-dirty", (3, 36)), ("fio-2.2.10\n", (2, 2))],
)
def test_versions_are_read(text: str, version: tuple[int, int]) -> None:
    """Releases and builds between them give two comparable numbers."""
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("added_ms", "longest_ms", "options", "jobs"),
    [
        (4001, 1001, {}, 4),
        (1000, 1001, {}, 1),
        (2900, 1001, {}, 3),
        (4600, 1400, {}, 4),  # one job was held up by 0.3 s
        (4020, 1001, {}, 4),
        (1400, 1001, {}, 1),
        (2000, 1001, {"verify": "md5"}, 1),  # 1 s of writing, and 1 s of reading it back
        (400, 90, {}, None),
        (10**12, 1000, {}, None),
        (0, 1000, {}, None),
    ],
)
def test_jobs_of_a_group_are_counted_by_their_runtimes(
    added_ms: int, longest_ms: int, options: dict[str, str], jobs: int | None
) -> None:
    """``job_runtime`` is the sum over all jobs in an entry; of short ones it says nothing."""
    document = json.loads((CASES / "fio-3.42/randrw-jsonplus/stdout").read_text())
    entry = document["jobs"][0]
    entry["job_runtime"] = added_ms
    entry["job options"] = options
    for direction in ("read", "write"):
        entry[direction]["runtime"] = longest_ms
    assert read_document(document).jobs[0].jobs_in_it == jobs


class Watched(dict[str, object]):
    """An object that notes which of its keys were read."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.seen: set[str] = set()

    def __getitem__(self, key: str) -> object:
        """Return a value, and note its key."""
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: object = None) -> object:
        """Return a value, and note its key."""
        self.seen.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        """Return the keys, and note them all."""
        self.seen |= super().keys()
        return super().__iter__()

    def items(self) -> Any:  # noqa: ANN401 - dict_items has no public name
        """Return keys and values, and note all of them but those of a whole entry."""
        self.seen |= super().keys() if not super().__contains__("jobname") else set()
        return super().items()

    @property
    def is_empty(self) -> bool:
        """Whether it is a direction without I/O, or a latency without samples."""
        return 0 in (super().get("total_ios"), super().get("N"))

    def unread(self) -> Iterator[str]:
        """Yield the keys that nobody read, with those above them."""
        for key, value in super().items():
            if key not in self.seen:
                yield key
                continue
            for item in value if isinstance(value, list) else [value]:
                # A direction or a latency without samples is not read any further.
                if isinstance(item, Watched) and key != "steadystate" and not item.is_empty:
                    yield from (f"{key}.{name}" for name in item.unread())


IGNORED = {
    *("time", "bw", "bw_bytes", "io_kbytes"),  # others are exact, or in bytes
    "disk_util",  # the samples of the host say more, and imports name no device
    *("jobs.eta", "jobs.ctx", "jobs.majf", "jobs.minf", "jobs.desc"),  # no rule needs them
    *("jobs.iodepth_submit", "jobs.iodepth_complete"),  # the batches of the engine
    # of latency_target, an option that searches for a depth
    *("jobs.latency_depth", "jobs.latency_target", "jobs.latency_target_ns"),
    *("jobs.latency_percentile", "jobs.latency_window", "jobs.latency_window_us"),
    "jobs.zone_resets",  # of zoned devices
    "jobs.sync.total_ios",  # it leaves out fdatasync; the samples count all
    *("short_ios", "drop_ios"),  # fio completes them; trims that were not done
    # as the windows of IOPS, in KiB/s
    *("bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples"),
    *("iops_min", "iops_max", "iops_stddev"),  # zeros where there is no sample
    "iops_mean",  # it leaves out windows without I/O
    "prios",  # latencies by priority of I/O
}
"""Fields of fio 3.42 that volbench does not use, and why."""


def test_every_field_of_the_newest_fio_is_read_or_ignored() -> None:
    """What a new version of fio adds is noticed when its cases are recorded."""
    unread: set[str] = set()
    for case in READ:
        if case.startswith("fio-3.42"):
            found = re.findall(r"^\{\n.*?^\}$", text_of(case), re.DOTALL | re.MULTILINE)
            document = json.loads(found[-1], object_pairs_hook=Watched)
            read_document(document)
            unread |= set(document.unread())
    known = {re.sub(r"^jobs\.(read|write|trim|mixed)\.", "", name) for name in unread}
    assert known <= IGNORED, known - IGNORED


def test_sections_of_a_patched_fio_are_io() -> None:
    """A section that fio does not have is a direction of its own, and nothing of it is lost."""
    text = text_of("fio-3.33/randrw-jsonplus")
    entry = json.loads(text)["jobs"][0]
    renamed = text.replace('"write" : {', '"finish" : {').replace('"trim" : {', '"ZNS Reset" : {')
    job = parse_output(renamed).jobs[0]
    other, wrote = job.direction(Direction.OTHER), parse_output(text).jobs[0].directions[1]
    assert other == replace(wrote, direction=Direction.OTHER)
    assert job.other_ios == {"finish": entry["write"]["total_ios"]}
    twice = parse_output(renamed.replace('"read" : {', '"append" : {')).jobs[0]
    assert [each.direction for each in twice.directions] == [Direction.OTHER]
    ios = entry["read"]["total_ios"], entry["write"]["total_ios"]
    assert twice.other_ios == {"append": ios[0], "finish": ios[1]}
    assert twice.directions[0].total_ios == sum(ios)
    bare = parse_output(text.replace('"read" : {', '"copy" : {"total_ios" : 5}, "read" : {', 1))
    assert bare.jobs[0].other_ios == {"copy": 5}
