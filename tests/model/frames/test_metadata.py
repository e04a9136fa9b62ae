"""The registry of what matters when runs are compared."""

import pytest

from volbench.errors import InputError
from volbench.model.frames.columns import SUMMARY
from volbench.model.frames.metadata import (
    FACTS,
    NOT_SET,
    Source,
    Weight,
    fact_of,
    find_fact,
    option_matters,
    option_value,
)
from volbench.model.results.provenance import HostFacts


def test_each_fact_exists_in_its_declared_source() -> None:
    """Facts of the summary are its columns, labels apart; facts of the host are its fields."""
    columns = {column.name for column in SUMMARY}
    for fact in FACTS.values():
        if fact.source is Source.SUMMARY and not fact.name.startswith("label_"):
            assert fact.name in columns
        if fact.source is Source.HOST:
            assert fact.name in HostFacts.model_fields


@pytest.mark.parametrize(
    "name", ["block_bytes", "volume_bytes", "direct", "rw", "iodepth", "numjobs", "kernel"]
)
def test_differences_in_decisive_facts_are_refused(name: str) -> None:
    """What decides a number is refused, within a side and between two."""
    assert FACTS[name].within is FACTS[name].between is Weight.REFUSE


def test_versions_of_fio_are_compared_with_reservations() -> None:
    """Two versions are compared, and said; their repeats are never pooled."""
    assert FACTS["fio_version"].within is Weight.REFUSE
    assert FACTS["fio_version"].between is Weight.REPORT


def test_options_of_fio_matter_unless_known_not_to() -> None:
    """An option that nobody thought of is refused; names, logs and seeds are not."""
    assert option_matters("zonemode")
    assert fact_of("zonemode").within is Weight.REFUSE
    for name in ("filename", "randseed", "write_bw_log", "log_avg_msec", "bs", "iodepth"):
        assert not option_matters(name)


def test_an_option_that_is_off_equals_one_that_is_not_set() -> None:
    """Defaults that are spelled out are no difference."""
    assert option_value("refill_buffers", "0") == option_value("refill_buffers", None) == NOT_SET
    assert option_value("invalidate", "1") == option_value("invalidate", None) == "1"
    assert option_value("invalidate", "0") != option_value("invalidate", None)
    assert option_value("rate_iops", "1000") == "1000"


def test_facts_are_found_by_alias_and_label() -> None:
    """Aliases and labels are found; what is unknown tells the nearest."""
    known = [*FACTS, "rate_iops"]
    assert find_fact("bs", known) == "block_bytes"
    assert find_fact("volume_type", known) == "label_volume_type"
    assert find_fact("rate_iops", known) == "rate_iops"
    with pytest.raises(InputError, match="'kernl'") as caught:
        find_fact("kernl", known)
    assert "kernel" in caught.value.hint
