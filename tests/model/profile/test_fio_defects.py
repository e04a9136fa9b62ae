"""Defects of versions of fio are found by version and options."""

import pytest

from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.fio_defects import defects_of, fio_defects

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
        ((3, 20), {"numjobs": "4"}, []),
        ((3, 20), {"numjobs": "4", "create_serialize": "0"}, ["acbda87c"]),
    ],
)
def test_defects_have_versions_and_options(
    version: tuple[int, int], options: dict[str, str], upstream: list[str]
) -> None:
    """A defect holds before the release that mends it, for jobs that trigger it."""
    assert [defect.upstream for defect in defects_of(version, options)] == upstream


def test_every_option_of_the_table_is_one_of_fio() -> None:
    """A misspelt option would never be met."""
    named = {name for defect in fio_defects() for name in defect.options} - {"blocks"}
    assert {name for name in named if shipped_table().find(name) is None} == set()
