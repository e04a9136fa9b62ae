"""Documents: every error at its line and key, in plain words, all of them at once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Self

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, Field, model_validator
from ruamel.yaml import YAML

from volbench.errors import InputError, Problem, Problems, ProfileError
from volbench.model.document.document_model import (
    Boolean,
    Document,
    Duration,
    Filled,
    Integer,
    Nullable,
    Rate,
    Size,
    Text,
    document_schema,
)
from volbench.model.document.located_errors import Fault, reject
from volbench.model.document.yaml_text import read_document, yaml_text


class Colour(StrEnum):
    """A few words."""

    RED = "red"
    GREEN = "green"


class Burst(Document):
    """A mapping that a single value may stand for."""

    shorthand: ClassVar[str] = "mode"

    mode: Colour
    length_s: Duration = Field(default=10.0, alias="length", description="Of the burst.")

    @model_validator(mode="after")
    def _is_long(self) -> Self:
        if self.length_s < 1:
            reject(Fault("is too short", "at least 1s", at=("length",)))
        return self


def _name(text: str) -> str:
    if not text.isalpha():
        reject(Fault(f"{text!r} is not a name", "use letters"))
    return text


Name = Annotated[Text, AfterValidator(_name)]


class Crate(Document):
    """A document with one field of each type."""

    name: Name
    size_bytes: Size = Field(default=0, alias="size")
    rate: Rate | None = None
    count: Integer = Field(default=1, ge=1, le=9)
    is_open: Boolean = Field(default=False, alias="open")
    seed: Nullable[Integer] = None
    note: Filled = "none"
    burst: Burst | None = None
    parts: dict[Name, Burst] = Field(default_factory=dict)
    steps: tuple[Burst, ...] = ()


def problems_of(text: str) -> list[Problem]:
    """Return what is wrong with a text."""
    with pytest.raises(ProfileError) as caught:
        load(text)
    return list(caught.value.problems)


def load(text: str) -> Crate:
    """Return a good document."""
    return read_document(text, Crate, path="f.yaml", what="a crate", needs="a name")


FULL = """
name: box
size: 1.5g
rate: 125MB/s
count: 3
open: yes
seed: null
burst: red
parts: {a: {mode: green, length: 1min}}
steps: [red, {mode: green}]
"""


def test_units_become_numbers() -> None:
    """Texts are read with their unit, and a single value may stand for a mapping."""
    crate = load(FULL)
    assert (crate.size_bytes, crate.rate, crate.count, crate.is_open) == (3 << 29, 125e6, 3, True)
    assert crate.burst == Burst(mode=Colour.RED)
    assert crate.parts == {"a": Burst(mode=Colour.GREEN, length_s=60)}
    assert [step.mode for step in crate.steps] == [Colour.RED, Colour.GREEN]


def test_dumped_documents_read_back() -> None:
    """Defaults are left out, units are base units, keys are those of the file."""
    crate = load(FULL)
    text = yaml_text(crate.document())
    assert load(text) == crate
    assert "is_open" not in text
    assert "seed" not in text


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("nam: x\nname: y", (1, 1, "nam"), "did you mean `name`"),
        ("count: 1", (1, 1, "name"), "missing"),
        ("name: a1", (1, 7, "name"), "not a name"),
        ("name: x\nsize_bytes: 5", (2, 1, "size_bytes"), "unknown key"),
        ("name: x\nsize:", (2, 1, "size"), "no value"),
        ("name: x\ncount: 10", (2, 8, "count"), "at most 9"),
        ("name: x\ncount: true", (2, 8, "count"), "an integer"),
        ("name: x\nopen: perhaps", (2, 7, "open"), "true or false"),
        ("name: x\nnote: ''", (2, 7, "note"), "empty"),
        ("name: x\nburst: {mode: rad}", (2, 15, "burst.mode"), "did you mean `red`"),
        ("name: x\nburst: {mode: red, lenght: 1}", (2, 20, "burst.lenght"), "`length`"),
        ("name: x\nburst: {mode: red, length: 0}", (2, 28, "burst.length"), "too short"),
        ("name: x\nparts: {b1: red}", (2, 9, "parts.b1"), "not a name"),
        ("name: x\nsteps: red", (2, 8, "steps"), "must be a list"),
        ("name: x\nsteps: [red, {mode: blue}]", (2, 21, "steps.1.mode"), "one of"),
    ],
)
def test_an_error_has_line_column_and_key(
    text: str, place: tuple[int, int, str], words: str
) -> None:
    """Line and column are those of the value, or of the key where the key is wrong."""
    problems = problems_of(text)
    found = {(problem.line, problem.column, problem.key): str(problem) for problem in problems}
    assert place in found
    assert words in found[place]


def test_all_errors_are_found_at_once() -> None:
    """One wrong value does not hide another."""
    text = "name: a1\ncount: x\nburst: {mode: red, length: 0}\nfoo: 1\n"
    assert [problem.line for problem in problems_of(text)] == [1, 2, 3, 4]


def test_the_schema_rejects_what_the_loader_rejects() -> None:
    """Editors mark what the loader refuses, and nothing else."""
    schema = document_schema(Crate)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)

    def read(text: str) -> object:
        return YAML(typ="safe", pure=True).load(text)

    errors = list(validator.iter_errors(read(FULL)))
    assert not errors, errors[0].message
    for wrong in ("burst: rad", "burst: {mod: red}", "count: 10", "foo: 1", "open: perhaps"):
        assert not validator.is_valid(read(f"name: x\n{wrong}"))


def test_a_refusal_of_units_keeps_its_hint() -> None:
    """What `volbench.units` says of a value is what the author reads."""
    (problem,) = problems_of("name: x\nrate: 1mb/s")
    assert "ambiguous" in problem.message
    assert problem.hint
    with pytest.raises(InputError):
        Problems("p", [problem]).raise_if_any()


class _Needy(Document):
    """A mapping with required keys."""

    size_bytes: Size = Field(alias="size", description="Capacity.", examples=["64m"])
    title: Text = Field(description="Title of the page.")
    parts: dict[Text, _Needy] | None = Field(default=None, description="More of it.")


def test_a_missing_key_says_what_to_write() -> None:
    """The hint is the example of the key, or else its meaning; at any depth."""
    with pytest.raises(ProfileError) as caught:
        read_document("parts: {a: {}}\n", _Needy, path="x.yaml", what="a file", needs="keys")
    found = {(problem.key, problem.hint) for problem in caught.value.problems}
    size, title = "write it like size: 64m", "add title: title of the page"
    assert found == {
        ("size", size), ("title", title), ("parts.a.size", size), ("parts.a.title", title)
    }  # fmt: skip
