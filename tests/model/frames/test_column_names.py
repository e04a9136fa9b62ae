"""Short names of columns."""

import pytest

from volbench.analyse.frames.run_facts import STEADY
from volbench.errors import InputError
from volbench.model.frames.column_names import ALIASES, find_column
from volbench.model.frames.columns import SUMMARY

COLUMNS = [column.name for column in SUMMARY] + ["label_volume_type"]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("iops", "iops"),
        ("p99", "lat_p99_s"),
        (" bs ", "block_bytes"),
        ("lat_p99.99_s", "lat_p9999_s"),
        ("IOPS", "iops"),
        ("volume_type", "label_volume_type"),
    ],
)
def test_columns_are_found_by_name_label_and_alias(name: str, column: str) -> None:
    """A column's own name, a label and an alias all mean a column."""
    assert find_column(name, COLUMNS) == column


def test_every_alias_refers_to_a_column() -> None:
    """No alias leads nowhere."""
    assert set(ALIASES.values()) <= {*COLUMNS, *STEADY}


def test_the_nearest_column_names_are_suggested() -> None:
    """A slip of the finger is answered with what was probably meant."""
    with pytest.raises(InputError, match="'volume_typ'") as caught:
        find_column("volume_typ", COLUMNS)
    assert "volume_type" in caught.value.hint
