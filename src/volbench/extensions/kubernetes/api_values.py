"""Names, labels, quantities and taints of the Kubernetes API, checked as its server does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from volbench.errors import InputError

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(m|k|Ki|[MGTPE]i?|)")
_ZERO = re.compile(r"[0.]+\D*")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

# Lengths and ranges of the Kubernetes API. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py::test_values_that_the_cluster_rejects_are_refused
MAX_LABEL = 63
MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A taint that pods accept."""

    key: str
    value: str | None = None  # None accepts every value
    effect: str = ""  # empty accepts every effect


def parse_toleration(text: str) -> Toleration:
    """Return the toleration of ``KEY[=VALUE][:EFFECT]``, as kubectl taint writes taints."""
    taint, colon, effect = text.rpartition(":") if ":" in text else (text, "", "")
    key, equals, value = taint.partition("=")
    if not key or (colon and not effect):
        raise InputError(
            f"toleration {text!r} is not a taint",
            hint="write it like dedicated=disktest:NoSchedule",
        )
    if effect and effect not in _EFFECTS:
        raise InputError(
            f"toleration: unknown effect {effect!r}", hint=f"must be one of {', '.join(_EFFECTS)}"
        )
    return Toleration(key=key, value=value if equals else None, effect=effect)


def quantity_bytes(text: str) -> int:
    """Return the bytes of a Kubernetes quantity, such as ``250Gi`` or ``1.5G``; 0 if invalid."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0
    number, unit = match.groups()
    power = " kMGTPE".find(unit[:1].lower() if unit == "Ki" else unit[:1] or " ")
    return int(float(number) * (1024 if unit.endswith("i") else 1000) ** power) if power >= 0 else 0


def require_label(text: str, *, what: str, longest: int = MAX_LABEL) -> None:
    """Refuse a text that is not a DNS label, such as the name of a namespace."""
    if len(text) > longest or not _LABEL.fullmatch(text):
        raise InputError(
            f"{what} {text!r} is not a valid Kubernetes name",
            hint=f"use lower-case letters, digits and -, at most {longest} characters",
        )


def require_quantity(text: str, *, what: str) -> None:
    """Refuse a text that is not a positive quantity, such as the size of a volume."""
    if not _QUANTITY.fullmatch(text) or _ZERO.fullmatch(text):
        raise InputError(
            f"{what}: {text!r} is not a positive quantity",
            hint="write it as Kubernetes does, like 250Gi, 500m or 2",
        )
