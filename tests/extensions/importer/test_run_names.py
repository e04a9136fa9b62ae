"""Jobs, repeats, hosts and labels are called as paths and results tell, and never mixed up."""

from itertools import count
from pathlib import Path

import pytest

from tests.extensions.importer.sources import CASES, result_of, take
from tests.extensions.importer.sources import put as put_text
from volbench.errors import InputError
from volbench.extensions.importer.run_names import (
    assign_host_names,
    parse_labels,
    parse_pattern,
    split_repeat,
)

_NUMBERS = count(1)
RANDREAD = result_of("fio-3.33/logs-histogram", jobname="FIOJOB")
DEEPER = result_of("fio-3.33/logs-histogram", jobname="FIOJOB", iodepth="16")


def put(path: Path, text: str) -> None:
    """Write a result to a file that is a copy of no other."""
    put_text(path, text + " " * next(_NUMBERS))


def put_each(folder: Path, text: str, *names: str) -> None:
    """Write results of the same job to several files."""
    for name in names:
        put(folder / name, text)


def jobs_of(
    *, source: Path, into: Path, pattern: str | tuple[str, ...] = ()
) -> list[tuple[str, str, int]]:
    """Return host, job and repeat of every run, sorted."""
    intake, _ = take(source, into=into, pattern=pattern)
    return sorted((run.run.host, run.run.job, run.run.repeat) for run in intake.runs)


def test_paths_distinguish_jobs_of_one_name(tmp_path: Path) -> None:
    """Two settings under one jobname are never pooled; all of its names have the same parts."""
    put(tmp_path / "in" / "4k" / "randread-1-3.json", RANDREAD)
    put_each(tmp_path / "in", DEEPER, "4k/randread-16-3.json", "8k/randread-16-3.json")
    assert [job for _, job, _ in jobs_of(source=tmp_path / "in", into=tmp_path / "c")] == [
        "4k-randread-1-3",
        "4k-randread-16-3",
        "8k-randread-16-3",
    ]


def test_files_without_a_job_name_are_named_after_their_folders(tmp_path: Path) -> None:
    """A folder called gp3 tells more than a file called fio.json."""
    put_each(tmp_path / "in", RANDREAD, "gp2/fio.json", "gp3/fio.json", "gp4/output.0.json")
    jobs = [job for _, job, _ in jobs_of(source=tmp_path / "in", into=tmp_path / "c")]
    assert jobs == ["gp2", "gp3", "gp4"]


def test_only_names_with_a_repeat_number_are_repeats(tmp_path: Path) -> None:
    """Folders called run-1 and run-2 hold repeats, if the settings are equal."""
    put_each(tmp_path / "in", RANDREAD, "run-1/fio.json", "run-2/fio.json")
    put(tmp_path / "in" / "deep_rep3.json", DEEPER)
    found = jobs_of(source=tmp_path / "in", into=tmp_path / "c")
    assert sorted(repeat for _, _, repeat in found) == [1, 1, 2]
    assert len({job for _, job, _ in found}) == 2


@pytest.mark.parametrize(
    ("path", "rest", "number"),
    [
        (("4k", "run-2", "fio"), ("4k",), 2),
        (("randread_rep3",), ("randread",), 3),
        (("Iteration 12", "out"), ("out",), 12),
        (("brun3",), ("brun3",), None),
        (("fio",), ("fio",), None),
    ],
)
def test_repeats_are_numbered_by_names(
    path: tuple[str, ...], rest: tuple[str, ...], number: int | None
) -> None:
    """A number behind a word for a repeat is one; what is left names the job."""
    assert split_repeat(path) == (rest, number)


def test_labels_come_from_folders(tmp_path: Path) -> None:
    """Each part of the pattern is a folder, or the name of the file without its endings."""
    for provider, kind, host in (("azure", "P15", "vm1"), ("azure", "P20", "vm2")):
        put(tmp_path / "in" / provider / kind / host / "fio.json", RANDREAD)
    put(tmp_path / "in" / "aws" / "gp3" / "vm3.json", RANDREAD)
    _, opened = take(
        tmp_path / "in",
        into=tmp_path / "c",
        pattern="{provider}/{volume_type}/{host}",
        labels=("zone=1",),
    )
    frame = opened.summary().sort_values("host", ignore_index=True)
    assert frame["host"].tolist() == ["vm1", "vm2", "vm3"]
    assert frame["label_provider"].tolist() == ["azure", "azure", "aws"]
    assert frame["label_volume_type"].tolist() == ["P15", "P20", "gp3"]
    assert set(frame["label_zone"]) == {"1"}
    assert set(frame["job"]) == {"FIOJOB"}


def test_labels_are_not_hosts(tmp_path: Path) -> None:
    """One machine with two volume types is one host; its results are kept apart by their labels."""
    put_each(tmp_path / "in", RANDREAD, "gp2/r.json", "gp3/r.json")
    for into, host in (("c", "vm1"), ("d", "")):
        intake, opened = take(
            tmp_path / "in", into=tmp_path / into, pattern="{volume_type}", host=host
        )
        assert [run.run.host for run in intake.runs] == [host or "unknown"] * 2
        assert [run.run.job for run in intake.runs] == ["FIOJOB-gp2", "FIOJOB-gp3"]
        summary = opened.summary()
        assert summary["label_volume_type"].tolist() == ["gp2", "gp3"]
        assert summary["import_folder"].tolist() == ["gp2", "gp3"]


def test_the_pattern_names_the_job_whatever_differs(tmp_path: Path) -> None:
    """Repeats with other options, and results under other labels, keep their job and repeat."""
    for day in ("mon", "tue"):
        put(tmp_path / "in" / day / "reads" / "run_1" / "fio.json", RANDREAD)
        put(tmp_path / "in" / day / "reads" / "run_c" / "fio.json", DEEPER)
    intake, opened = take(
        tmp_path / "in", into=tmp_path / "c", pattern="{day}/{job}/{repeat}", host="vm1"
    )
    assert [(run.run.job, run.run.repeat) for run in intake.runs] == [
        ("reads", 1),
        ("reads", 3),
    ] * 2
    summary = opened.summary()
    assert sorted(set(zip(summary["profile"], summary["label_day"], strict=True))) == [
        ("mon", "mon"),
        ("tue", "tue"),
    ]


def test_two_results_of_one_name_are_refused_with_their_paths(tmp_path: Path) -> None:
    """A job that the pattern names is never numbered."""
    put(tmp_path / "in" / "reads" / "1" / "a.json", RANDREAD)
    put(tmp_path / "in" / "reads" / "1" / "b.json", DEEPER)
    with pytest.raises(InputError, match="job reads, repeat 1 on host unknown") as caught:
        jobs_of(source=tmp_path / "in", into=tmp_path / "c", pattern="{job}/{repeat}")
    assert "in/reads/1/a.json and in/reads/1/b.json" in caught.value.message
    with pytest.raises(InputError, match=r"in/reads/1/a\.json and in/reads/1/b\.json"):
        jobs_of(source=tmp_path / "in", into=tmp_path / "c", pattern="{job}")
    assert not (tmp_path / "c").exists()


def test_the_job_of_a_file_with_several_has_their_names_too(tmp_path: Path) -> None:
    """One name cannot be that of two jobs."""
    text = (CASES / "fio-3.33" / "stonewall-two-jobs" / "stdout").read_text()
    put(tmp_path / "in" / "both" / "fio.json", text)
    found = jobs_of(source=tmp_path / "in", into=tmp_path / "c", pattern="{job}")
    assert [job for _, job, _ in found] == ["both-first", "both-second"]


def test_the_first_matching_pattern_is_used(tmp_path: Path) -> None:
    """Paths of two forms; the first pattern that matches applies, and each has to match some."""
    put(tmp_path / "in" / "azure" / "reads" / "2.json", RANDREAD)
    put(tmp_path / "in" / "writes.json", DEEPER)
    patterns = ("{provider}/{job}/{repeat}", "{job}")
    found = jobs_of(source=tmp_path / "in", into=tmp_path / "c", pattern=patterns)
    assert found == [("unknown", "reads", 2), ("unknown", "writes", 1)]
    with pytest.raises(InputError, match=r"'\{a\}/\{b\}' matches no result"):
        jobs_of(source=tmp_path / "in", into=tmp_path / "d", pattern=(*patterns, "{a}/{b}"))


def test_a_pattern_that_fits_nothing_is_refused_with_an_example(tmp_path: Path) -> None:
    """The message shows a path that is there, and the hint a pattern that would fit it."""
    put(tmp_path / "in" / "azure" / "vm1.json", RANDREAD)
    with pytest.raises(InputError, match="the first one is azure/vm1") as caught:
        take(tmp_path / "in", into=tmp_path / "c", pattern="{a}/{b}/{c}/{d}")
    assert "{provider}/{volume_type}" in caught.value.hint


def test_a_path_that_does_not_fit_is_imported_without_labels(tmp_path: Path) -> None:
    """One file in the wrong place is no reason to lose it, and it is said."""
    put_each(tmp_path / "in", RANDREAD, "azure/vm1.json", "stray.json")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c", pattern="{provider}/{host}")
    notes = {note.path: note.message for note in intake.remarks}
    assert [*notes] == ["in/stray.json"]
    assert opened.summary()["label_provider"].isna().sum() == 1


@pytest.mark.parametrize("text", ["azure", "{a}/{a}", "{a", "{}", "{a b}", "{a}}"])
def test_odd_patterns_are_refused(text: str) -> None:
    """A pattern has names, each once."""
    with pytest.raises(InputError, match="not a pattern"):
        parse_pattern(text)


@pytest.mark.parametrize("texts", [("a",), ("=b",), ("a=",), ("host=x",), ("a=1", "a=2")])
def test_odd_labels_are_refused(texts: tuple[str, ...]) -> None:
    """A label has a name and a value, and no name is reserved or stands twice."""
    with pytest.raises(InputError, match="not a label"):
        parse_labels(texts)


def test_hosts_that_differ_never_share_a_name() -> None:
    """Also where odd letters fall away."""
    assert assign_host_names(["a b", "a:b", "", "a b"]) == ["a-b", "a-b-2", "unknown", "a-b"]


def test_results_keep_their_folder_of_origin(tmp_path: Path) -> None:
    """Drives in sibling folders are told apart, and repeats in theirs are not."""
    for drive in ("hdd", "ssd"):
        put_each(tmp_path / "in", RANDREAD, f"{drive}/run-1/a.json", f"{drive}/run-2/a.json")
    _, campaign = take(tmp_path / "in", into=tmp_path / "c")
    summary = campaign.frame("summary")
    assert dict(zip(summary["job"], summary["import_folder"], strict=True)) == {
        "hdd-a": "in/hdd",
        "ssd-a": "in/ssd",
    }


def test_names_that_labels_split_in_several_ways_are_shown(tmp_path: Path) -> None:
    """iou_s_none is the engine iou_s with no scheduler, or iou with s_none: nobody knows."""
    put(tmp_path / "in" / "iou_s_none.json", RANDREAD)
    put(tmp_path / "in" / "aio_kyber.json", DEEPER)
    intake, _ = take(tmp_path / "in", into=tmp_path / "c", pattern="{engine}_{sched}")
    [found] = [each for each in intake.remarks if "in other ways" in each.message]
    assert found.path == "in/iou_s_none.json"
    assert found.message.endswith("engine=iou, sched=s_none")
