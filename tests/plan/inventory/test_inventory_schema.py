"""The JSON Schema of inventories agrees with the loader."""

import json

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.plan.inventory.reading import BAD, FILES
from volbench.plan.inventory.host_document import json_schema

SEEN_BY_A_SCHEMA = [
    "address-in-defaults", "empty-hosts", "group-called-all", "host-as-text", "moving-device",
    "no-hosts", "odd-labels", "odd-names", "odd-sudo", "odd-volumes", "unknown-keys",
    "odd-workdirs",
]  # fmt: skip


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return a validator of the schema as it is exported."""
    schema = json.loads(json.dumps(json_schema()))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_a_good_inventory_is_valid(validator: Draft202012Validator) -> None:
    """No editor marks an inventory that uses every key."""
    errors = list(validator.iter_errors(YAML(typ="safe").load(FILES / "fleet.yaml")))
    assert not errors, errors[0].message


@pytest.mark.parametrize("defect", SEEN_BY_A_SCHEMA)
def test_mistakes_are_marked(validator: Draft202012Validator, defect: str) -> None:
    """What a schema can see is marked while it is typed."""
    assert not validator.is_valid(YAML(typ="safe").load(BAD / defect / "inventory.yaml"))
