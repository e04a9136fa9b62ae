"""``expect``: read, dumped, and changed by settings."""

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.plan.loading import TABLE, load
from volbench.errors import InputError
from volbench.model.profile.expect_setting import expectations_in
from volbench.model.profile.profile_model import Profile
from volbench.plan.profile.load_profile import dump_profile, json_schema

TEXT = """
name: database
defaults: {size: 64m}
expect:
  wal: {fdatasync_p99: "< 10ms"}
  reads: {iops: [">= 3000", "< 9000"], steady: yes}
  "*": {max: "< 1s", error: 0}
jobs:
  wal: {rw: write, fdatasync: 1}
  reads: {rw: randread}
"""


def texts(profile: Profile) -> list[str]:
    """Return the expectations as they are printed."""
    return [expectation.text for expectation in expectations_in(profile.expect)]


def test_expectations_of_a_profile_are_read_and_dumped() -> None:
    """Each job, pattern of jobs, metric and bound is one; a dumped profile has the same."""
    assert texts(load(TEXT)) == [
        "wal.fdatasync_p99 < 10ms",
        "reads.iops >= 3000",
        "reads.iops < 9000",
        "reads.steady = yes",
        "max < 1s",
        "error = 0",
    ]
    again = load(dump_profile(load(TEXT)))
    assert texts(again) == texts(load(TEXT))


def test_the_schema_accepts_expectations() -> None:
    """An editor marks none of them, and marks a bound that is a mapping."""
    validator = Draft202012Validator(json_schema(TABLE))
    document = YAML(typ="safe", pure=True).load(TEXT)
    assert validator.is_valid(document)
    document["expect"]["wal"] = {"p99": {"below": "10ms"}}
    assert not validator.is_valid(document)


def test_settings_change_expectations() -> None:
    """One is replaced, removed or added; those of a removed job go with it."""
    assert "reads.iops >= 10" in texts(load(TEXT, "expect.reads.iops=>= 10"))
    assert texts(load(TEXT, "expect=")) == []
    assert "wal.iops > 5" in texts(load(TEXT, "expect.wal.iops=> 5"))
    assert not any(text.startswith("wal.") for text in texts(load(TEXT, "wal=")))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("expect.raeds.iops=> 5", "no such measured job"),
        ("expect.wal.speed=> 5", "there is no metric 'speed'"),
    ],
)
def test_wrong_settings_are_refused(setting: str, message: str) -> None:
    """The setting is named."""
    with pytest.raises(InputError, match=message) as caught:
        load(TEXT, setting)
    assert setting.partition("=")[0] in str(caught.value)
