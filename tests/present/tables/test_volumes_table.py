"""Volumes of a collection: what is ranked, what is typical, and what cannot be compared."""

from tests.present.frames_for_plots import result
from tests.present.tables.table_rows import of_volumes
from volbench.present.tables.volumes_table import (
    MIN_VOLUMES,
    collection_answer,
    collection_words,
    ranking_table,
    ranking_tables,
    workload_classes,
    workloads_table,
)


def test_volumes_are_ranked_under_one_workload() -> None:
    """The fastest first, each as a share of it; median and ends say what is typical."""
    [only] = workload_classes(of_volumes())
    ranked = ["/dev/nvme", "/dev/ssd", "/dev/disk", "/dev/floppy"]
    assert [(own.rank, own.volume) for own in only.volumes] == [*enumerate(ranked, start=1)]
    assert only.typical_iops == (9_000 + 180) / 2
    assert only.volumes[1].share == 9_000 / 120_000
    assert workloads_table([only]).records()[0]["slowest"] == "/dev/floppy"


def test_hosts_keep_their_names_and_paths_their_ends() -> None:
    """Two hosts may differ in the beginning of a long name alone, which is where paths are cut."""
    hosts = [f"ip-10-0-{n}-117.eu-central-1.compute.internal" for n in (3, 4, 5)]
    rows = [result(f"job{n}", host=host, iops=n + 1.0) for n, host in enumerate(hosts)]
    [only] = workload_classes(rows)
    assert {own.volume for own in only.volumes} == {*hosts}
    paths = [f"/var/lib/kubelet/plugins/a-long-path/volume-{n}" for n in (3, 4, 5)]
    rows = [result(f"job{n}", volume=path, iops=n + 1.0) for n, path in enumerate(paths)]
    [only] = workload_classes(rows)
    assert all(own.volume.startswith("...") for own in only.volumes)
    assert len({own.volume for own in only.volumes}) == 3


def test_volumes_that_nothing_names_are_not_ranked() -> None:
    """Results of text output in one folder may be of any volumes; a label tells them apart."""
    unnamed = [
        result(f"text{n}", host="unknown", volume="unknown", iops=1e6 + n, label_volume_type=name)
        for n, name in enumerate(("", "", "p10", "p20", "p10"))
    ]
    rows = [*of_volumes(), *unnamed]
    [only] = workload_classes(rows)
    assert {own.volume for own in only.volumes if "/dev" not in own.volume} == {"p10", "p20"}
    words = collection_words(rows, [only])
    assert words[0].endswith("on 6 volumes.")
    assert words[-1] == "Left out: 2 results of an unknown volume or pattern."


def test_two_volumes_are_compared_not_ranked() -> None:
    """From three volumes on, a set is a collection."""
    assert workload_classes(of_volumes(MIN_VOLUMES - 1)) == []
    assert workload_classes(of_volumes(MIN_VOLUMES))
    assert collection_answer(of_volumes(MIN_VOLUMES - 1), []) == []


def test_volumes_are_ranked_at_the_most_common_setting() -> None:
    """A rate at queue depth 128 has no rank among rates at 1, however high it is."""
    rows = [*of_volumes(), result("deep", iops=9e5, volume="/dev/array", iodepth=128)]
    [only] = workload_classes(rows)
    assert (only.setting, only.elsewhere) == ("queue depth 1", 1)
    assert "/dev/array" not in {own.volume for own in only.volumes}
    words = " ".join(collection_words(rows, [only]))
    assert "The ranking of 1 workload leaves out volumes measured only" in words


def test_an_invalid_result_has_no_rank_and_is_counted() -> None:
    """A read of never-written blocks is no rate of the volume."""
    rows = of_volumes()
    invalid = {str(rows[-1]["run"])}
    [only] = workload_classes(rows, invalid)
    words = " ".join(collection_words(rows, [only], invalid))
    assert only.volumes[0].volume == "/dev/ssd"
    assert "120k" not in words
    assert "Left out: 1 invalid result." in words


def test_repeats_are_pooled_and_directions_added() -> None:
    """The rate of a mix is the sum of its directions, that of repeats their median."""
    rows = [
        result("mix", repeat=repeat, iops=iops, volume=volume, rw="randrw", direction=direction)
        for volume in ("a", "b", "c")
        for repeat, iops in enumerate((100.0, 200.0, 900.0), start=1)
        for direction in ("read", "write")
    ]
    [only] = workload_classes(rows)
    assert [own.iops for own in only.volumes] == [400.0] * 3
    assert len(only.volumes[0].runs) == 3


def test_workloads_with_one_volume_each_are_not_compared() -> None:
    """Nothing is ranked where no workload was run on two volumes."""
    patterns = ("read", "write", "randread")
    rows = [{**row, "rw": rw} for row, rw in zip(of_volumes(3), patterns, strict=True)]
    classes = workload_classes(rows)
    assert ranking_tables(classes) == []
    words = ["Not ranked: 3 workloads that no two volumes ran at the same settings."]
    assert collection_words(rows, classes)[1:] == words


def test_a_screen_ranks_a_few_and_says_how_many_more() -> None:
    """The report has all of them."""
    table = ranking_table(workload_classes(of_volumes()), most=3)
    assert len(table.rows) == 3
    assert table.notes == ["1 more: volbench report ranks all"]
