"""Defects of versions of fio are found by version and options."""

import pytest

from tests.planned import planned_run
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.planned_run import Section, Volume, VolumeKind
from volbench.model.profile.fio_defects import (
    defects_between,
    defects_of,
    fio_defects,
    known_defects,
)
from volbench.plan.expansion.met_defects import met_defects

SQTHREAD = {"ioengine": "io_uring", "sqthread_poll": "1"}
LARGE = {"rw": "randread", "blocks": str(2**32 + 1)}


@pytest.mark.parametrize(
    ("version", "options", "upstream"),
    [
        ((3, 35), SQTHREAD, ["#1484 and 10bad6b9"]),
        ((3, 36), SQTHREAD, []),
        ((3, 35), {"ioengine": "io_uring", "sqthread_poll": "0"}, []),
        ((3, 41), LARGE, ["#2036"]),
        ((3, 42), LARGE, []),
        ((3, 41), {**LARGE, "blocks": str(2**32)}, []),
        ((3, 41), {**LARGE, "blocks": ""}, []),
        ((3, 41), {**LARGE, "rw": "read"}, []),
        ((3, 41), {**LARGE, "random_generator": "tausworthe64"}, []),
        ((3, 35), {"latency_target": "5ms", "numjobs": "2"}, ["#1582"]),
        ((3, 35), {"latency_target": "5ms", "numjobs": "1"}, []),
        ((3, 16), {"write_hist_log": "h"}, ["#974"]),
        ((3, 5), {"write_hist_log": "h"}, []),
        ((2, 21), {"log_compression": "1m"}, ["#1457"]),
        ((9, 0), {"io_size": "1g", "ramp_time": "5s"}, ["#748"]),
        ((9, 0), {"openfiles": "2", "nrfiles": "8", "time_based": "1"}, ["#941"]),
        ((9, 0), {"openfiles": "8", "nrfiles": "8", "time_based": "1"}, []),
        ((3, 20), {"numjobs": "4"}, []),
        ((3, 20), {"numjobs": "4", "create_serialize": "0"}, ["acbda87c"]),
    ],
)
def test_defects_have_versions_and_options(
    version: tuple[int, int], options: dict[str, str], upstream: list[str]
) -> None:
    """A defect holds before the release that mends it, for jobs that trigger it."""
    assert [defect.upstream for defect in defects_of(version, options)] == upstream
    section = Section(name="j", options=options)
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/d")
    warned = [*met_defects([planned_run(volume, section)], {"local": "fio-3.35-2-gabc"})]
    known = [defect.upstream for defect in defects_of((3, 35), {"blocks": "", **options})]
    is_known = "blocks" not in options  # a plan knows the size of a device, not of a directory
    assert len(warned) == len(known) or not is_known
    assert all(text.startswith("job j: fio 3.35 with ") for text in warned)


def test_versions_are_told_apart_by_their_defects() -> None:
    """Of both sides of a comparison, and of the fio of a host."""
    assert "#1582" in defects_between("fio-3.33", "fio-3.36")
    assert defects_between("fio-3.42", "fio-3.43") == defects_between("", "fio-3.36") == ""
    assert known_defects("fio-3.33").endswith("mended up to fio 3.42")
    assert known_defects("") == ""


def test_every_option_of_the_table_is_one_of_fio() -> None:
    """A misspelt option would never be met."""
    named = {name for defect in fio_defects() for name in defect.options} - {"blocks"}
    assert {name for name in named if shipped_table().find(name) is None} == set()
