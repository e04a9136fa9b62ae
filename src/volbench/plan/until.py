"""``until: steady`` in a profile: a node or a text in, Until out, and what speaks against it."""

from __future__ import annotations

from volbench.errors import InputError
from volbench.model.profile import Job, Options, Phase, Tool, Until
from volbench.plan.document import Node
from volbench.plan.reader import Reader
from volbench.units import parse_duration

UNTIL_KEYS = ("state", "window", "block")
LEAST_BLOCK_S = 1.0
"""fio tells its rate twice a second while it runs; a block needs two of these."""
LEAST_BLOCKS = 8


def parse_until(text: str) -> Until | None:
    """Return what ``--set JOB.until=steady`` means; None for an empty value.

    Raises:
        InputError: it is not ``steady``.
    """
    if text and text != "steady":
        raise InputError(f"until can't be {text!r}", hint="write until=steady, or until= for none")
    return Until() if text else None


def read_until(reader: Reader, node: Node) -> Until:
    """Return ``until`` of a job: ``steady``, or a mapping with window and block."""
    if node.is_scalar:
        reader.choice(node, "until", {"steady": None})
        return Until()
    found = Until()
    values: dict[str, float] = {}
    for entry in reader.entries(node, "until"):
        if entry.name == "state":
            reader.choice(entry.value, "state", {"steady": None})
        elif entry.name in UNTIL_KEYS:
            default = found.window_s if entry.name == "window" else found.block_s
            values[f"{entry.name}_s"] = reader.value(
                entry.value, entry.name, parse_duration, default
            )
        else:
            reader.unknown(entry, UNTIL_KEYS, "until")
    found = Until(**values)
    if found.block_s < LEAST_BLOCK_S:
        reader.complain(node, f"a block of until has {LEAST_BLOCK_S:g} s at least")
    elif found.window_s < LEAST_BLOCKS * found.block_s:
        reader.complain(
            node,
            f"a window of {found.window_s:g} s has fewer than {LEAST_BLOCKS} blocks of "
            f"{found.block_s:g} s",
            hint="make the window longer, or the blocks shorter",
        )
    return found


def until_problem(job: Job, defaults: Options) -> tuple[str, str] | None:
    """Return message and hint when a job can't run until it is steady; None when it can."""
    if job.until is None:
        return None
    if job.tool is not Tool.FIO:
        return "only fio can run until it is steady", "take until away, or use tool: fio"
    if job.phase is Phase.WARMUP and job.warming is not None:
        return "a warm-up ends when every block was touched", "take until away"
    options = {**defaults, **job.options}
    if not options.get("runtime") or (options.get("time_based") or "0") == "0":
        return (
            "until: steady needs a runtime, which is its deadline, and time_based",
            "add runtime: 30m and time_based: 1",
        )
    return None
