"""What pydantic found wrong, in words for the person who wrote the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from volbench.model.base import Frozen
from volbench.model.profile.fio_option import nearest

_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "string_pattern_mismatch": "must be letters, digits, - and _, at most 60",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "bool_parsing": "must be true or false",
}


def words(error: Mapping[str, Any]) -> str:
    """Return what is wrong, without pydantic's own vocabulary."""
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Exception):
        return str(cause)
    text = _WORDS.get(error["type"])
    if text is None:
        text = error["msg"][:1].lower() + error["msg"][1:].replace("Input should be", "must be")
        text = text.replace("input should be", "must be")
    given = error["input"]
    if isinstance(given, str | int | float) and error["type"] not in {"missing", "extra_forbidden"}:
        return f"{str(given)[:40]!r} {text}"
    return text


def hint(error: Mapping[str, Any], models: Iterable[type[Frozen]]) -> str:
    """Return the nearest known key for a key that is not known."""
    if error["type"] != "extra_forbidden":
        return ""
    known = {field.alias or name for model in models for name, field in model.model_fields.items()}
    near = nearest(str(error["loc"][-1]), sorted(known))
    return f"did you mean `{near}`?" if near else ""
