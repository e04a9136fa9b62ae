"""YAML nodes with line and column, and their validation by a pydantic model with located errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Final, NoReturn, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from volbench.errors import InputError, Problems, did_you_mean, nearest

_CONTAINERS = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True)
class Node:
    """A value in a YAML file."""

    line: int  # 1-based
    column: int  # 1-based
    key: str  # dotted path from the top, such as ``jobs.test1.bs``
    raw: str | bool | None = None  # text, True, False or None (null) of a scalar
    # keys and values of a mapping, in file order; None for anything else
    entries: tuple[Entry, ...] | None = None
    items: tuple[Node, ...] | None = None  # values of a list; None for anything else

    @property
    def kind(self) -> str:
        """Kind of node, for messages."""
        if self.entries is not None:
            return "a mapping"
        return "a list" if self.items is not None else "nothing" if self.raw is None else "a value"

    @property
    def is_null(self) -> bool:
        """Whether a key has no value."""
        return self.is_scalar and self.raw is None

    @property
    def is_scalar(self) -> bool:
        """Whether the node is a single value or null."""
        return self.entries is None and self.items is None


@dataclass(frozen=True)
class Entry:
    """A key of a mapping with its value; line and column are those of the key."""

    name: str
    line: int
    column: int
    value: Node


Location = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)

MAX_LISTED = 24  # Maximum number of known keys in a hint; more would hide the message


class _Null:
    """A key without a value."""


NULL: Final = _Null()  # Placeholder for null, accepted only by fields of type `Nullable`


@dataclass(frozen=True)
class Fault:
    """An error in a document, before its line is known."""

    message: str  # description of the error; the key is printed before it
    hint: str = ""  # suggested correction; may be empty
    at: Location = ()  # keys and indexes from the validated value down to the wrong one
    on_key: bool = False  # whether the error refers to the key instead of its value


def fault_error(fault: Fault) -> PydanticCustomError:
    """Return a fault as an error for field validators to raise; `Fault.at` is not used."""
    context: dict[str, Any] = {"message": fault.message, "hint": fault.hint, "on_key": fault.on_key}
    return PydanticCustomError("fault", "{message}", context)


def input_fault(error: InputError, *, at: Location = (), on_key: bool = False) -> Fault:
    """Return an `InputError` as a fault at a location."""
    return Fault(error.message, error.hint, at, on_key)


def reject(*faults: Fault) -> NoReturn:
    """Reject a value for one or more reasons; for validators of models and fields."""
    lines = [
        InitErrorDetails(type=fault_error(fault), loc=fault.at, input=fault.message)
        for fault in faults
    ]
    raise ValidationError.from_exception_data("document", lines)


def validate(
    model: type[Model], node: Node, problems: Problems, *, context: object = None
) -> Model | None:
    """Return the model of a node, or None if it has problems."""
    before = len(problems.found)
    valid: Model | None = None
    try:
        valid = model.model_validate(plain(node), context=context, by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in faults_of(error, model):
            note_fault(problems, node, fault)
    return None if len(problems.found) > before else valid


def plain(node: Node) -> object:
    """Return the Python value of a node: dicts, lists, texts, booleans, and `NULL`."""
    if node.entries is not None:
        return {entry.name: plain(entry.value) for entry in node.entries}
    if node.items is not None:
        return [plain(item) for item in node.items]
    return NULL if node.raw is None else node.raw


def note_fault(problems: Problems, node: Node, fault: Fault) -> None:
    """Record a fault at its location below a node."""
    line, column, key = place(node, fault.at, on_key=fault.on_key)
    problems.add(fault.message, line=line, column=column, key=key, hint=fault.hint)


def place(node: Node, location: Location, *, on_key: bool = False) -> tuple[int, int, str]:
    """Return line, column and key of a location below a node, or of its last existing part.

    Parts of a location that do not occur in the file are skipped: fields behind a shorthand,
    options that a model collects in a field of its own.
    """
    at: Node | Entry = node
    missing = ""
    for depth, step in enumerate(location, 1):
        child: Entry | Node | None
        if node.items is not None and isinstance(step, int) and step < len(node.items):
            child = node.items[step]
        else:
            child = _entry(node.entries or (), str(step), is_last=depth == len(location))
        missing = "" if child or not str(step).isidentifier() else str(step)
        if child is not None:
            node = child.value if isinstance(child, Entry) else child
            at = child if on_key else node
    key = f"{node.key}.{missing}".strip(".") if missing and node.entries is not None else node.key
    return at.line, at.column, key


def _entry(entries: Sequence[Entry], name: str, *, is_last: bool) -> Entry | None:
    """Return the entry of a name, of the job with lists of values, or a misspelt one on the way."""
    names = {each.name: each for each in entries}
    job = next((each for each in names if name.startswith(f"{each}-")), None)
    near = None if is_last else nearest(name, names)
    return names.get(name) or names.get(job or near or "")


def faults_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Fault]:
    """Yield the errors of a validation as faults with readable messages."""
    for details in error.errors(include_url=False):
        location = tuple(part for part in details["loc"] if part != "[key]")
        on_key = len(location) < len(details["loc"])
        given = details["input"]  # a fault that a validator of the whole put there
        fault = given if isinstance(given, Fault) else _fault(details, model, location)
        yield replace(fault, at=location, on_key=on_key or fault.on_key)


def _fault(details: ErrorDetails, model: type[BaseModel], location: Location) -> Fault:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "missing":
        return Fault("is missing", _what_to_add(_fields(model, location[:-1]), str(location[-1])))
    if kind == "extra_forbidden":
        key, known = str(location[-1]), list(_fields(model, location[:-1]))
        comma = "write numbers with a decimal point, such as 24.50" if key.isdecimal() else ""
        return Fault("unknown key", comma or suggestion(key, known), on_key=True)
    if value is NULL or value == "":
        state = "has no value" if value is NULL else "is empty"
        return Fault(state, "write a value, or remove the key", on_key=value is NULL)
    if kind == "fault":
        return Fault(context["message"], context["hint"], on_key=context["on_key"])
    if kind in {"enum", "literal_error"}:
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        hint = did_you_mean(str(value), choices)
        expected = f"one of {', '.join(choices)}" if len(choices) > 1 else "".join(choices)
        return Fault(f"must be {expected}, not {value!r}", hint)
    hint = ""
    for end in range(len(location) - 1, -1, -1) if kind in _CONTAINERS else ():
        hint = hint or _what_to_add(_fields(model, location[:end]), str(location[end]))
    return Fault(_sentence(kind, value, context) or details["msg"], hint)


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return the hint for a misspelt name: the nearest known one, or all of them."""
    near = nearest(name, list(known))
    if near:
        return f"did you mean `{near}`?"
    return f"known: {', '.join(known)}" if 0 < len(known) <= MAX_LISTED else ""


def _sentence(kind: str, value: object, context: Mapping[str, Any]) -> str:
    """Return the message for a built-in error of pydantic; empty for other errors."""
    if kind in _CONTAINERS:
        return f"must be {_CONTAINERS[kind]}, not {_kind_of(value)}"
    if isinstance(value, Mapping | list) and kind.endswith(("_type", "_parsing")):
        return f"must be a single value, not {_kind_of(value)}"
    if kind in _BOUNDS:
        bound, name = _BOUNDS[kind]
        return f"must be {bound} {context[name]:.12g}, not {value}"
    if kind in {"too_short", "too_long"}:
        is_short = kind == "too_short"
        count = context["min_length" if is_short else "max_length"]
        entries = "entry" if count == 1 else "entries"
        return f"must have at {'least' if is_short else 'most'} {count} {entries}"
    return ""


def _kind_of(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"


def _what_to_add(fields: Mapping[str, FieldInfo], key: str) -> str:
    """Return the hint for a missing key: an example, or else its description."""
    field = fields.get(key)
    if field is None or not field.description:
        return ""
    if field.examples:
        return f"write it like {key}: {field.examples[0]}"
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", field.description).rstrip(".")  # of links
    return f"add {key}: {words[0].lower()}{words[1:]}"


def _fields(annotation: object, location: Location) -> dict[str, FieldInfo]:
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _fields(arguments[0], location)
    if get_origin(annotation) in {Union, UnionType}:
        choices = [_fields(choice, location) for choice in arguments]
        return {key: field for choice in choices for key, field in choice.items()}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _fields_of_model(annotation, location)
    if location and arguments:
        is_mapping = issubclass(get_origin(annotation) or object, Mapping)
        return _fields(arguments[1 if is_mapping else 0], location[1:])
    return {}


def _fields_of_model(model: type[BaseModel], location: Location) -> dict[str, FieldInfo]:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    if not location:
        return fields
    field = fields.get(str(location[0]))
    if field is None:  # a part of the location that pydantic adds: the name of a model
        return _fields_of_model(model, location[1:])
    return _fields(field.annotation, location[1:])
