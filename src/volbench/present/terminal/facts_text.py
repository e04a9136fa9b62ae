"""Facts about hosts and volumes in words: a mapping of any depth enters, labelled text leaves."""

from __future__ import annotations

from collections.abc import Mapping

from volbench.present.formatting import printable
from volbench.units import format_duration, format_size

NOT_KNOWN = "not known"


def facts_text(facts: Mapping[str, object]) -> dict[str, str]:
    """Return label to text for each fact, in order; nested facts get a label with both names.

    A size reads ``10g (10737418240 bytes)``, so that it is both readable and exact.

    Args:
        facts: names with their unit in them, such as ``memory_bytes``, to plain values.
    """
    told: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            for label, text in facts_text(value).items():
                told[f"{_label(name)}: {label}"] = text
        else:
            told[_label(name)] = _words(name, value)
    return told


def _label(name: str) -> str:
    """Return a name for people: without underscores and without its unit."""
    for unit in ("_bytes", "_s"):
        name = name.removesuffix(unit)
    return printable(name.replace("_", " "))


def _words(name: str, value: object) -> str:
    """Return one value in words."""
    if value is None or value == "":
        return NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_words(name, value)
    if isinstance(value, list | tuple):
        return "; ".join(_words(name, part) for part in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{label} {text}" for label, text in facts_text(value).items())
    return printable(str(value))


def _number_words(name: str, value: float) -> str:
    """Return a number in the words of the unit in its name."""
    if name.endswith("_bytes"):
        return f"{format_size(value)} ({value} bytes)"
    return format_duration(value) if name.endswith("_s") else str(value)
