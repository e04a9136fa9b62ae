"""Checks of a run against what its host has."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from tests.fio.runs import run_on, section
from volbench.engine.guard.preflight import check_job_files, check_memory
from volbench.errors import FioError, InputError
from volbench.execute.protocol import Completed


@pytest.mark.parametrize(
    "options",
    [
        {"bs": "1073741824", "iodepth": 64},
        {"bs": "4096,1048576", "iodepth": 4096, "numjobs": 8},
        {"bssplit": "4096/50:1073741824/50", "iodepth": 64},
        {"bsrange": "4096-1073741824", "numjobs": 64},
        {"lockmem": "1073741824", "numjobs": 17},
    ],
)
def test_buffers_must_fit_the_memory(options: dict[str, str | int]) -> None:
    """One buffer of the largest block for each I/O in flight; more than all memory is refused."""
    run = run_on("/data", options={}).model_copy(update={"sections": (section("j", **options),)})
    with pytest.raises(InputError, match="of memory") as caught:
        check_memory(run, memory_bytes=16 << 30)
    assert caught.value.hint
    check_memory(run, memory_bytes=1 << 40)
    check_memory(run, memory_bytes=None)


def test_usual_jobs_fit() -> None:
    """The defaults of fio, and a deep queue of small blocks."""
    check_memory(run_on("/data"), memory_bytes=1 << 30)
    deep = section("j", iodepth=256, numjobs=16, bs="4096")
    check_memory(
        run_on("/data", options={}).model_copy(update={"sections": (deep,)}), memory_bytes=1 << 30
    )


def test_a_rejected_job_is_found_among_many() -> None:
    """Many job files are parsed by one process of fio, and the one that it rejects is named."""
    runs = [
        run_on("/data", options={}).model_copy(
            update={
                "job": f"job{depth}",
                "sections": (section("j", rw="read", size=4096, iodepth=depth),),
            }
        )
        for depth in range(1, 1001)
    ]
    sizes: list[int] = []

    def parse(argv: Sequence[str], *, texts: Sequence[str]) -> Completed:
        sizes.append(len(texts))
        is_rejected = any("iodepth=777\n" in text for text in texts)
        return Completed((*argv, "0"), int(is_rejected), "", "bad option")

    host = Mock(fio="fio", executor=Mock(run=parse))
    with pytest.raises(FioError, match="fio rejects job job777: bad option"):
        check_job_files(host, runs)
    assert len(sizes) < 25
    assert max(sizes) > 100
