"""The reading of values, held against what the installed fio makes of them."""

from pathlib import Path

import pytest

from tests.fio.plain import amount, fio_jobs
from volbench.errors import InputError
from volbench.fio.jobs.job_syntax import read_value
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.fio_options import Option

BLOCK_SPELLINGS = [
    *("8k", " 8k", "8K", "8kb", "8KiB", "8ki", "4k8", "4kk", "4k-8k", "4096b", "0x1000", "010k"),
    *("+8k", "600x", "512.5k", "1m"),
]
DECIMAL_TOO = ("8kb", "8KiB", "8ki")


def _option(name: str) -> Option:
    option = shipped_table().find(name)
    assert option is not None
    return option


@pytest.mark.slow
@pytest.mark.parametrize("text", BLOCK_SPELLINGS)
def test_a_block_size_is_read_as_fio_reads_it(tmp_path: Path, text: str) -> None:
    """The number of I/Os that fio counts shows which block size it understood."""
    kb_base = 1000 if text in DECIMAL_TOO else 1024
    for base in {1024, kb_base}:
        (job,) = fio_jobs(
            tmp_path, f"[j]\nioengine=null\nnumber_ios=4\nsize=8m\nkb_base={base}\nbs={text}\n"
        )
        read = read_value(_option("bs"), text, kb_base=base)
        blocks = read.value.split(",")[0]  # of reads
        assert int(blocks) == amount(job, "io_bytes") // amount(job, "total_ios")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "50%", "50%"),
        ("offset", "4z", "4z"),
        ("bs", "4k,,8k", "4096,,8192"),
        ("iodepth", "16,32", "16"),
        ("bsrange", "8k:4k", "4096-8192"),
        ("bsrange", "4k-8k,16k-32k", "4096-8192,16384-32768"),
        ("bssplit", "4k/60:64KiB/", "4096/60:64000/"),
        ("thinktime", "100", "100"),
        ("thinktime", "2ms", "2000"),
        ("latency_target", "1s", "1000000"),
        ("runtime", "1.5s", "1s"),
        ("runtime", "300msec", "300ms"),
        ("runtime", "1min", "1us"),
        ("runtime", "2m", "120s"),
        ("runtime", "00:00:10", "0s"),
        ("direct", "1x", "1"),
        ("norandommap", "2", "1"),
        ("norandommap", None, "1"),
        ("nice", "-10", "-10"),
        ("filename", " a b", "a b"),
    ],
)
def test_each_kind_of_option_is_read_with_its_own_grammar(
    name: str, text: str | None, value: str
) -> None:
    """Each kind of option has its own grammar."""
    assert read_value(_option(name), text).value == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("size", "big"),
        ("size", "(4*1024)"),
        *(("size", text) for text in ("６４k", "٣m", "9" * 5000)),  # noqa: RUF001 - foreign digits
        ("size", None),
        ("rw", " write"),
        ("bsrange", "4k"),
        ("startdelay", "1-2"),
        ("runtime", "-1"),
        ("direct", "yes"),
        ("iodepth", "10%"),
        ("zone_reset_threshold", "1.5"),
    ],
)
def test_values_that_fio_refuses_or_a_profile_cannot_hold_are_refused(
    name: str, text: str | None
) -> None:
    """Such a value is an error with a way out."""
    with pytest.raises(InputError) as caught:
        read_value(_option(name), text)
    assert caught.value.hint
