"""Words for factors and their values, the same in sentences, tables and charts."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from volbench.analyse.frames.design import NAME, Cell, Design
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import FACTS, NOT_SET
from volbench.units import format_size

# Factor to its name; others are named as their column
FACTOR_NAMES = {
    "rw": "pattern",
    "block_bytes": "block size",
    "iodepth": "queue depth",
    "numjobs": "numjobs",
    "rwmixread": "percent of reads",
    "size_bytes": "size",
    "ioengine": "engine",
    "arm": "variant",
    "fio_version": "fio version",
    "volume_bytes": "volume size",
}
# Factors whose values name themselves
_PLAIN = frozenset(
    {"rw", "direction", "block_bytes", "direct", "ioengine", "volume", "host", "arm", NAME}
)
PLURALS = {"read": "reads", "write": "writes", "trim": "trims", "sync": "syncs"}
# Usual values, which a workload is not named by
_USUAL = {"numjobs": 1, "direct": True}


def factor_name(column: str) -> str:
    """Return the name of a factor or fact, such as ``queue depth`` or ``cpu model``."""
    words = column.removesuffix("_bytes").replace("_", " ") if column in FACTS else column
    return FACTOR_NAMES.get(column, words.removeprefix(LABEL_PREFIX))


def value_text(column: str, value: object) -> str:
    """Return a value of a factor or fact: ``4k`` for a block size, ``16`` for a queue depth."""
    if value is None:
        return "unknown"
    if column == "direct":
        return "direct" if value else "buffered"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("_bytes") and isinstance(value, int | float):
        return format_size(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def factor_text(column: str, value: object) -> str:
    """Return a value with its factor, such as ``queue depth 16``, or ``rate_iops=3000``."""
    text = value_text(column, value)
    if value is None:
        return "no other client" if column == "client" else f"{factor_name(column)} unknown"
    if column == "rwmixread":
        return f"{text} % reads"
    if column == "numjobs" and value != NOT_SET:
        return "1 job" if text == "1" else f"{text} jobs"
    if column in _PLAIN or column.startswith(LABEL_PREFIX):
        return text
    if value == NOT_SET:
        return f"{factor_name(column)} {NOT_SET}"
    return f"{factor_name(column)}{' ' if column in FACTOR_NAMES else '='}{text}"


def cell_text(design: Design, cell: Cell) -> str:
    """Return what was done in a cell and where, in words."""
    first = design.rows[cell.places[0]]
    core = {name: first[name] for name in ("rw", "block_bytes") if first.get(name) is not None}
    return workload_text({**core, **cell.values})


def workload_text(values: Mapping[str, object]) -> str:
    """Return a workload in words, such as ``randread 4k, queue depth 16``.

    One job and O_DIRECT, which most workloads have, are not named; a direction is where the pattern
    has several, as in ``randrw 4k writes``.

    Args:
        values: column to value, in the order in which they are named; None for what is unknown.
    """
    core = [value_text(name, values[name]) for name in ("rw", "block_bytes") if name in values]
    pattern = str(values.get("rw")).partition(":")[0].removeprefix("rand")
    if (direction := str(values.get("direction") or pattern)) != pattern:
        core.append(PLURALS.get(direction, direction))
    rest = [
        factor_text(column, value)
        for column, value in values.items()
        if column not in {"rw", "block_bytes", "direction"} and value != _USUAL.get(column, "")
    ]
    return ", ".join(filter(None, [" ".join(core), *rest]))


def first_names(names: Iterable[str], most: int, between: str = ", ") -> str:
    """Return the first of the different names, and the number of the others."""
    named = [*dict.fromkeys(names)]
    parts = [*named[:most], *([f"{len(named) - most} more"] if named[most:] else [])]
    return " and ".join(filter(None, [between.join(parts[:-1]), *parts[-1:]]))


def shared_limit(findings: Sequence[Mapping[str, object]], runs: Collection[object]) -> list[str]:
    """Return which volumes of some runs are on one disk, in a sentence without its full stop."""
    for row in findings:
        if row.get("rule") == "shared-limit" and row["run"] in runs:
            shared = json.loads(str(row["evidence"]))
            most = len(str(shared.get("volumes") or shared.get("hosts")).split(", "))
            words = f": a difference of up to {most} times may come from the load on it"
            return [str(row["message"]).removesuffix(".") + words]  # two have half of it each
    return []
