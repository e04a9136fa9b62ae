"""The JSON Schema agrees with the loader, so that an editor's red lines can be trusted."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from volbench.fio.jobs.option_table import shipped_table
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.profile.load_profile import json_schema

BAD = Path(__file__).parents[2] / "profiles"

SEEN_BY_A_SCHEMA = [
    "unknown-option", "unknown-key", "bad-choice", "bad-boolean", "jobs-as-list", "job-as-text",
    "option-as-list", "list-at-the-top", "own-option", "empty-matrix", "bad-order", "bad-repeat",
    "no-name", "unknown-phase", "job-called-global", "odd-job-name", "bad-source",
]  # fmt: skip


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return a validator of the schema as it is exported."""
    schema = json.loads(json.dumps(json_schema(shipped_table())))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def read(text: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return plain data of a YAML text."""
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", profile_names())
def test_bundled_profiles_are_valid(validator: Draft202012Validator, name: str) -> None:
    """No editor marks a bundled profile."""
    errors = list(validator.iter_errors(read(read_profile(name)[0])))
    assert not errors, errors[0].message


@pytest.mark.parametrize("defect", SEEN_BY_A_SCHEMA)
def test_mistakes_are_marked(validator: Draft202012Validator, defect: str) -> None:
    """What a schema can see is marked while it is typed."""
    text = (BAD / defect / "profile.yaml").read_text()
    assert not validator.is_valid(read(text))
