"""Targets of several devices or files, such as ``/dev/sdb:/dev/sdc``, as fio writes them."""

from __future__ import annotations

import re

# Names have no colon before a slash; two slashes are those of a URI
_BETWEEN_PATHS = re.compile(r"(?<!\\):(?=\.{0,2}/[^/])")


def paths_of(target: str) -> list[str]:
    """Return the paths of a target; an NBD URI has one."""
    return [target] if "://" in target else _BETWEEN_PATHS.split(target)
