"""Jobs, sections and matrices: names, inheritance and places of what is wrong."""

import pytest

from tests.plan.loading import load
from volbench.errors import ProfileError
from volbench.model.profile.profile_model import Phase
from volbench.plan.profile.profile_document import profile_warnings


def problems(text: str) -> list[tuple[int, str]]:
    """Return line and message of every problem in a profile."""
    with pytest.raises(ProfileError) as caught:
        load(text)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_an_exclusion_may_name_a_part() -> None:
    """Whatever has the values of an exclusion is left out, in any spelling of them."""
    profile = load(
        "name: x\nmatrix:\n  bs: [4k, 64k]\n  iodepth: [1, 2]\n  exclude: [{blocksize: 65536}]\n"
    )
    assert {job.options["bs"] for job in profile.jobs} == {"4096"}


@pytest.mark.parametrize(
    "jobs",
    [
        "jobs: {a: {bs: LIST, size: LIST, offset: LIST}}",
        "jobs: {a: {bs: 4k, size: LIST}}\nmatrix: {bs: [4k], size: LIST, offset: LIST}",
        "jobs: {a: {rw: read, bs: 4k, size: LIST}}\nvariants: {" + "v%d: {direct: 1}, " * 40 + "}",
    ],
)
def test_too_many_jobs_are_refused_before_they_are_made(jobs: str) -> None:
    """The product of the lists is compared first: the jobs would fill the memory."""
    jobs = jobs % tuple(range(jobs.count("%d")))
    jobs = jobs.replace("LIST", str([4096 * number for number in range(1, 300)]))
    assert "combinations; the maximum is 10000" in problems(f"name: x\n{jobs}\n")[0][1]


def test_two_combinations_of_one_name_are_reported() -> None:
    """A template that leaves an axis out would give two jobs one folder."""
    text = 'name: x\nmatrix:\n  name: "{rw}"\n  rw: [read]\n  bs: [4k, 8k]\n'
    assert "already" in problems(text)[0][1]


@pytest.mark.parametrize("defaults", ["", "defaults: {ioengine: libaio}\n"])
def test_a_matrix_that_would_multiply_jobs_is_refused(defaults: str) -> None:
    """Its jobs would run at fio's default pattern and block size."""
    jobs = "jobs: {a: {rw: randread, bs: 4k}, b: {rw: randwrite, bs: 4k}}\n"
    with pytest.raises(ProfileError) as caught:
        load(f"name: x\n{defaults}{jobs}matrix: {{iodepth: [1, 4]}}\n")
    pattern, _ = caught.value.problems
    assert "does not multiply" in pattern.message
    assert "rw: [randread, randwrite]" in str(caught.value)
    assert "bs: [4k]" in str(caught.value)
    load(f"name: x\ndefaults: {{rw: read, bs: 4k}}\n{jobs}matrix: {{iodepth: [1, 4]}}\n")


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        ("{rw: read, bs: 4k}", []),
        ("{bs: 4k}", ["rw is not set"]),
        ("{rw: read}", ["bs is not set"]),
        ("{rw: randread, bssplit: 4k/50:64k/50, rate_iops: 9}", ["rate_iops with bssplit limits"]),
        ("{rw: randread, bsrange: 4k-64k, rate_iops: 9}", ["rate_iops with bsrange limits"]),
        ("{rw: randread, bssplit: 4k/50:64k/50, rate_iops: 9, rate_process: poisson}", []),
        ("{rw: read, bs: 4k, ioengine: psync, iodepth: 64}", ["one I/O in flight"]),
        ("{rw: read, bs: 4k, iodepth: 64}", ["fio's default, has one I/O in flight"]),
        ("{rw: read, bs: 4k, ioengine: libaio, direct: 0, iodepth: 8}", ["without direct: 1"]),
        ("{rw: read, bs: 4k, ioengine: libaio, direct: 1, iodepth: 8}", []),
        ("{rw: read, bs: 4k, ioengine: mmap, direct: 1}", ["no effect with the ioengine mmap"]),
        ("{rw: read, bs: 4k, ioengine: io_uring, iodepth_batch: 9}", ["lowers it to 1"]),
        ("{rw: read, bs: 4k, runtime: 60s}", ["when it has moved its size once"]),
        ("{rw: read, bs: 4k, runtime: 60s, loops: 9}", []),
        ("{rw: read, bs: 4k, runtime: 2s, time_based: 1, loops: 9}", ["loops has no effect"]),
        ("{rw: read, bs: 4k, runtime: 2s, time_based: 1, ramp_time: 5s}", ["not shorter"]),
        ("{rw: read, bs: 4k, numjobs: 4, rate: 1m}", ["rate applies to each of the 4 jobs"]),
        ("{rw: read, bs: 4k, numjobs: 4, filename: f}", ["the same blocks of filename: f"]),
        ("{rw: read, bs: 4k, numjobs: 4, filename: f, offset_increment: 1m}", []),
        ("{rw: randread, bs: 4k, fsync: 1}", ["fsync has no effect with rw: randread"]),
        ("{rw: read, bs: 4k, rwmixread: 70}", ["does not mix directions"]),
        ("{rw: read, bs: 4k, random_distribution: 'zipf:1.2'}", ["which is sequential"]),
        ("{rw: randrw, bs: 4k, rwmixread: 70, norandommap: 1, fsync: 1}", []),
        ("{rw: randread, bs: 8k, bssplit: 4k/50:8k/50}", ["bs has no effect"]),
        ("{rw: write, bs: 4k, thinktime_blocks: 4}", ["no effect without thinktime"]),
        ("{rw: read, bs: 4k, rate_process: poisson}", ["no effect without rate or rate_iops"]),
        ("{rw: read, bs: 4k, invalidate: 0}", ["keeps the page cache"]),
        ("{rw: read, bs: 4k, invalidate: 0, direct: 1}", []),
        ("{rw: read, bs: 4k, gtod_reduce: 1}", ["switches off the measurement of latency"]),
    ],
)
def test_implicit_behaviour_of_fio_is_a_warning(options: str, warnings: list[str]) -> None:
    """Defaults that decide what is measured, and options without effect."""
    profile = load(f"name: x\njobs: {{a: {options}}}\n")
    texts = [*profile_warnings(profile)]
    assert len(texts) == len(warnings)
    assert all(part in text for part, text in zip(warnings, texts, strict=True))
    assert all(text.startswith("job a: ") for text in texts)
    there = profile.model_copy(update={"volumes": {"data": "nbd://h/e"}})
    assert "so iodepth" not in "".join(profile_warnings(there))


def test_lists_in_a_job_are_a_job_for_each_combination() -> None:
    """Named after the values, and changed like any other."""
    text = "name: x\njobs: {a: {rw: [read, write], bs: [4k, 8k]}, b: {bs: 4k}}\n"
    jobs = {job.name: job.options["bs"] for job in load(text, "a-read-bs4k.bs=1m").jobs}
    assert [*jobs] == ["a-read-bs4k", "a-read-bs8k", "a-write-bs4k", "a-write-bs8k", "b"]
    assert [*jobs.values()] == ["1048576", "8192", "4096", "8192", "4096"]


def test_sections_that_report_as_one_are_rows_of_their_own() -> None:
    """group_reporting would merge unlike sections into one row; defaults may be for other jobs."""
    text = (
        "name: x\ndefaults: {bs: 4k, group_reporting: 1, rwmixread: 70}\njobs:\n"
        "  a: {sections: {data: {rw: randrw}, log: {rw: write}}}\n  b: {rw: read, numjobs: 2}\n"
    )
    (warning,) = profile_warnings(load(text))
    assert warning.startswith("job a: group_reporting is left out")


def test_phases_come_in_the_order_they_run() -> None:
    """Whatever the order they were written in."""
    profile = load(
        "name: x\njobs: {m: {rw: read}}\n"
        "phases: {warmup: {w: {rw: write}}, measured: {n: {rw: read}}, precondition: {p: {}}}\n"
    )
    assert [job.phase for job in profile.jobs] == [
        Phase.PRECONDITION,
        Phase.WARMUP,
        Phase.MEASURED,
        Phase.MEASURED,
    ]


def test_a_contradiction_is_reported_where_it_was_written_last() -> None:
    """In the defaults, the job or the section; inside a matrix at the axis or the inclusion."""
    assert problems("name: x\ndefaults:\n  bs: 2m\njobs:\n  a:\n    size: 1m\n")[0][0] == 3
    assert problems("name: x\ndefaults:\n  size: 1m\njobs:\n  a:\n    bs: 2m\n")[0][0] == 6
    section = "name: x\njobs:\n  a:\n    size: 1m\n    sections:\n      s:\n        bs: 2m\n"
    assert problems(section)[0][0] == 7
    assert problems("name: x\ndefaults: {size: 1m}\nmatrix:\n  rw: [read]\n  bs: [2m]\n")[0][0] == 5
    included = "  rw: [read]\n  include:\n    - {rw: write, bs: 2m}\n"
    included = f"name: x\ndefaults: {{size: 1m}}\nmatrix:\n{included}"
    assert problems(included)[0][0] == 6


def test_an_option_with_two_names_is_reported() -> None:
    """Nobody can know which of them was meant."""
    found = problems("name: x\njobs:\n  a:\n    bs: 4k\n    blocksize: 8k\n")
    assert found == [(5, "is given twice, once as an alias")]
