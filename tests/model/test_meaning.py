"""Canonical values, held against what the installed fio makes of them."""

from pathlib import Path

import pytest

from tests.fio.plain import amount, fio_jobs
from volbench.errors import InputError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.option_policy import check_option
from volbench.units import parse_size

TABLE = shipped_table()


def line(name: str, raw: object) -> str:
    """Return a line of a job file for a value as a person wrote it."""
    return "{}={}\n".format(*check_option(TABLE, name, raw))


@pytest.mark.parametrize("size", ["64k", "1.5m", "0.5MiB", "98304", "256KB", 4096, "0x8000"])
def test_fio_transfers_exactly_the_size_in_the_profile(tmp_path: Path, size: object) -> None:
    """Fio moves as many bytes as the profile said; of 1.5m it would take 1 on its own."""
    (job,) = fio_jobs(tmp_path, "[j]\nioengine=null\nbs=4k\n" + line("size", size))
    assert amount(job, "io_bytes") == parse_size(str(size))


@pytest.mark.parametrize("word", [True, "yes", "on", "1", "TRUE"])
def test_boolean_options_take_effect(tmp_path: Path, word: object) -> None:
    """Two numjobs are reported as one with group_reporting; fio itself knows 1 and 0 only."""
    text = "[j]\nioengine=null\nsize=64k\nthread\nnumjobs=2\n"
    assert len(fio_jobs(tmp_path, text + line("group_reporting", word))) == 1


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("size", "150%"),
        ("offset", "101%"),
        ("size", "\u0665\u0660%"),
        ("bssplit", "4k/\u0665\u0660:8k/\u0665\u0660"),
        ("nrfiles", 2**32 + 1),
        ("iodepth", "9" * 5000),
        ("size", "9" * 5000),
        ("size", 2**63),
        ("runtime", "9" * 20),
    ],
)
def test_values_that_fio_would_misread_are_refused(name: str, raw: object) -> None:
    """What would wrap round or not be read at all is refused, in a line that fits a screen."""
    with pytest.raises(InputError) as caught:
        check_option(TABLE, name, raw)
    assert name in caught.value.message
    assert len(caught.value.message) < 150


def test_wide_integers_are_not_truncated() -> None:
    """A number of I/Os may need more than 32 bits."""
    assert check_option(TABLE, "number_ios", 2**40) == ("number_ios", str(2**40))
