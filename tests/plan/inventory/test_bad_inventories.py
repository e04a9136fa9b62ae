"""Bad inventories: all problems are reported at once, and an editor sees them too."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.plan.inventory.reading import BAD, FILES
from volbench.errors import InventoryError
from volbench.plan.inventory.host_document import json_schema
from volbench.plan.inventory.load_inventory import load_inventory

DEFECTS = sorted(path.name for path in BAD.iterdir())


def _facts(message: str) -> list[list[str]]:
    """Return what is quoted in each line of a message: names and values, not the wording."""
    return [re.findall(r"'[^']*'|`[^`]*`", line) for line in message.splitlines()]


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_problem_is_named(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each problem has its place and key, and quotes the names and values it is about."""
    monkeypatch.chdir(BAD / defect)
    (path,) = Path().glob("inventory.*")
    with pytest.raises(InventoryError) as caught:
        load_inventory(path)
    expected = Path("expected.txt").read_text()
    assert _facts(caught.value.message) == _facts(expected)
    assert caught.value.exit_code == 2
    for problem, line in zip(caught.value.problems, expected.splitlines(), strict=True):
        place = [problem.path, problem.line, problem.column]
        assert line.startswith(":".join(str(part) for part in place if part) + ": " + problem.key)
        assert problem.line > 0
    places = [(problem.path, problem.line, problem.column) for problem in caught.value.problems]
    assert places == sorted(places)


def test_secrets_are_never_repeated() -> None:
    """A key that stands in a file does not get into a terminal or a log."""
    assert "BEGIN" not in (BAD / "key-instead-of-path" / "expected.txt").read_text()


@pytest.mark.parametrize("text", ["[web]\nvm1 ansible_host=10.0.0.4\n", "#!/bin/sh\necho {}\n"])
def test_inventories_of_other_programs_are_refused_with_a_hint(tmp_path: Path, text: str) -> None:
    """Files that only another program can turn into hosts: the hint says where that is shown."""
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(InventoryError, match="neither YAML nor JSON") as caught:
        load_inventory(path)
    assert "inventory.md" in caught.value.hint


def test_files_that_are_not_text(tmp_path: Path) -> None:
    """Nothing at all, bytes, and what has no end."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name, words in (("none", "read"), ("bytes", "UTF-8"), ("/dev/zero", "larger")):
        with pytest.raises(InventoryError, match=words):
            load_inventory(tmp_path / name)


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
