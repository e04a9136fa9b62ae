"""Wrong profiles: all problems are reported at once, and an editor sees them too."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.command_line import call
from volbench.errors import ProfileError
from volbench.fio.jobs.option_table import shipped_table
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.profile.load_profile import json_schema, load_profile

FOLDER = Path(__file__).parents[2] / "profiles"
DEFECTS = sorted(path.name for path in FOLDER.iterdir())


_FACTS = re.compile(r"profile\.yaml:(\d+:\d+): (?:([\w./*-]+): )?(.*)")
_VALUES = re.compile(r"'[^']*'|`[^`]*`|\b\d+\b")


def facts(problem: str) -> tuple[str, ...]:
    """Return place, key, and the values, bounds and suggestions in the text of a problem."""
    match = _FACTS.fullmatch(problem)
    assert match is not None, problem
    place, key, text = match.groups()
    return place, key or "", *_VALUES.findall(text)


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_problem_has_its_position_and_a_hint(defect: str) -> None:
    """Each defect is reported at its line, column and key, with the expected suggestion."""
    folder = FOLDER / defect
    with pytest.raises(ProfileError) as caught:
        load_profile(
            (folder / "profile.yaml").read_text(), path="profile.yaml", table=shipped_table()
        )
    expected = (folder / "expected.txt").read_text().splitlines()
    found = [str(problem) for problem in caught.value.problems]
    assert list(map(facts, found)) == list(map(facts, expected)), found
    for problem in caught.value.problems:
        assert problem.line > 0
        assert problem.column > 0
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places == sorted(places)


@pytest.mark.parametrize("defect", DEFECTS[::20])
def test_the_command_line_exits_2_without_traceback(defect: str) -> None:
    """`volbench profile check` of a wrong profile exits 2 and names file, line and key."""
    path = FOLDER / defect / "profile.yaml"
    done = call("profile", "check", path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    expected = (FOLDER / defect / "expected.txt").read_text()
    first = expected.splitlines()[0].removeprefix("profile.yaml").partition(" (")[0]
    # The installed fio may be another version than the shipped table's.
    place = ":".join(first.split(":")[:3])
    assert f"{path}{place}" in done.stderr


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
