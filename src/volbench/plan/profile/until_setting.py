"""``until: steady`` in a profile: a node or a text in, Until out, and what speaks against it."""

from __future__ import annotations

from volbench.errors import InputError
from volbench.model.document.yaml_nodes import Node
from volbench.model.profile.profile_model import Job, Options, Tool, Until
from volbench.plan.profile.node_reader import Reader
from volbench.units import parse_duration

UNTIL_KEYS = ("state", "window", "block")
_FIELDS = {"window": "window_s", "block": "block_s"}
LEAST_BLOCK_S = 1.0
"""fio tells its rate twice a second while it runs; a block needs two of these."""
LEAST_BLOCKS = 8


def set_until(until: Until | None, key: str, value: str) -> Until | None:
    """Return ``until`` of a job after ``--set``; None when it was taken away.

    Args:
        until: what the job had.
        key: ``until``, ``until.window`` or ``until.block``.
        value: ``steady``, a duration, or empty.

    Raises:
        InputError: there is no such key, or it can't have that value.
    """
    if key == "until":
        if value not in {"", "steady"}:
            raise InputError(
                f"until can't be {value!r}", hint="write until=steady, or until= for none"
            )
        return (until or Until()) if value else None
    field = _FIELDS.get(key.partition(".")[2])
    if field is None:
        raise InputError(f"there is no {key}", hint="there are until.window and until.block")
    if until is None:
        raise InputError("the job has no until", hint="set until=steady before")
    return until.model_copy(update={field: parse_duration(value)})


def read_until(reader: Reader, node: Node) -> Until:
    """Return ``until`` of a job: ``steady``, or a mapping with window and block."""
    if node.is_scalar:
        reader.choice(node, "until", {"steady": None})
        return Until()
    found: dict[str, float] = {}
    usual = Until()
    for entry in reader.entries(node, "until"):
        if entry.name == "state":
            reader.choice(entry.value, "state", {"steady": None})
        elif field := _FIELDS.get(entry.name):
            found[field] = reader.value(
                entry.value, entry.name, parse_duration, getattr(usual, field)
            )
        else:
            reader.unknown(entry, UNTIL_KEYS, "until")
    until = Until(**found)
    if problem := window_problem(until):
        message, hint = problem
        reader.complain(node, message, hint=hint)
    return until


def window_problem(until: Until) -> tuple[str, str] | None:
    """Return message and hint when a window can't be judged; None when it can."""
    if until.block_s < LEAST_BLOCK_S:
        return f"a block of until has {LEAST_BLOCK_S:g} s at least", "make the blocks longer"
    if until.window_s < LEAST_BLOCKS * until.block_s:
        window, block = f"{until.window_s:g} s", f"{until.block_s:g} s"
        return (
            f"a window of {window} has fewer than {LEAST_BLOCKS} blocks of {block}",
            "make the window longer, or the blocks shorter",
        )
    return None


def until_problem(job: Job, defaults: Options) -> tuple[str, str] | None:
    """Return message and hint when a job can't run until it is steady; None when it can."""
    if job.until is None:
        return None
    if job.tool is not Tool.FIO:
        return "only fio can run until it is steady", "take until away, or use tool: fio"
    if job.warming is not None:
        return "a warm-up ends when every block was touched", "take until away"
    shared = {**defaults, **job.options}
    for own in job.sections.values() or ({},):
        options = {**shared, **own}
        runtime_s = parse_duration(options.get("runtime") or "0")
        if not runtime_s or (options.get("time_based") or "0") == "0":
            return (
                "until: steady needs a runtime, which is its deadline, and time_based",
                "add runtime: 30m and time_based: 1",
            )
        if runtime_s < job.until.window_s:
            window, runtime = f"{job.until.window_s:g} s", f"{runtime_s:g} s"
            return (
                f"it can't be steady for {window} within a runtime of {runtime}",
                "make the runtime longer, or the window of until shorter",
            )
    return None
