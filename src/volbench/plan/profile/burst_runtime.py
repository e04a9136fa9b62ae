"""``outlast`` and ``pause_before`` of a job: texts in, values out, and runtimes that follow."""

from __future__ import annotations

import math

from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.document.yaml_nodes import Node
from volbench.model.profile.profile_model import Job, Limits, Options, Outlast, Tool
from volbench.plan.profile.node_reader import Reader
from volbench.units import parse_duration

OUTLAST_KEYS = ("what", "margin", "most")
_WHAT = "credits"


def read_outlast(reader: Reader, node: Node) -> Outlast:
    """Return ``outlast`` of a job: ``credits``, or a mapping with margin and most."""
    usual = Outlast()
    if node.is_scalar:
        reader.choice(node, "outlast", {_WHAT: None})
        return usual
    found: dict[str, float] = {}
    for entry in reader.entries(node, "outlast"):
        if entry.name == "what":
            reader.choice(entry.value, "what", {_WHAT: None})
        elif entry.name == "margin":
            found["margin"] = reader.value(entry.value, "margin", _margin, usual.margin)
        elif entry.name == "most":
            found["most_s"] = reader.value(entry.value, "most", parse_duration, usual.most_s)
        else:
            reader.unknown(entry, OUTLAST_KEYS, "outlast")
    return usual.model_copy(update=found)


def set_outlast(outlast: Outlast | None, key: str, value: str) -> Outlast | None:
    """Return ``outlast`` of a job after ``--set``; None when it was taken away.

    Args:
        outlast: what the job had.
        key: ``outlast``, ``outlast.margin`` or ``outlast.most``.
        value: ``credits``, a number, a duration, or empty.

    Raises:
        InputError: there is no such key, or it can't have that value.
    """
    if key == "outlast":
        if value not in {"", _WHAT}:
            raise InputError(
                f"outlast can't be {value!r}", hint=f"write outlast={_WHAT}, or outlast= for none"
            )
        return (outlast or Outlast()) if value else None
    if outlast is None:
        raise InputError("the job has no outlast", hint=f"set outlast={_WHAT} before")
    match key:
        case "outlast.margin":
            return outlast.model_copy(update={"margin": _margin(value)})
        case "outlast.most":
            return outlast.model_copy(update={"most_s": parse_duration(value)})
    raise InputError(f"there is no {key}", hint="there are outlast.margin and outlast.most")


def outlast_problem(job: Job, defaults: Options) -> tuple[str, str, str] | None:
    """Return key, message and hint when a job can't outlast credits or wait; None when it can."""
    if job.pause_before_s and job.warming is not None:
        return "pause_before", "a warm-up does not wait", "take pause_before away"
    if job.outlast is None:
        return None
    options = {**defaults, **job.options}
    timed = options.get("runtime") and (options.get("time_based") or "0") != "0"
    if job.tool is not Tool.FIO or job.warming is not None or job.sections or not timed:
        return (
            "outlast",
            "outlast makes the runtime of one section longer, so it needs one, and time_based",
            "add runtime: 45m and time_based: 1, and no sections",
        )
    return None


def credits_last_s(limits: Limits) -> float | None:
    """Return how long the declared credits last at full speed; None when that is not declared.

    A full bucket is drained at the burst rate while it refills at the base rate. Of two buckets,
    the one that lasts longer counts.
    """
    buckets = (
        (limits.burst_ios, limits.burst_iops, limits.iops),
        (limits.burst_bytes, limits.burst_bandwidth_bytes_per_s, limits.bandwidth_bytes_per_s),
    )
    return max(
        (full / (burst - base) for full, burst, base in buckets if full and burst and base),
        default=None,
    )


def outlasting(run: Run, outlast: Outlast | None) -> Run:
    """Return a Run whose runtime outlasts the credits of its volume."""
    lasts_s = credits_last_s(run.limits)
    if outlast is None or lasts_s is None:
        return run
    (section,) = run.sections
    least_s = parse_duration(run.effective(section)["runtime"])
    wanted_s = min(outlast.margin * lasts_s, outlast.most_s)
    if wanted_s <= least_s:
        return run
    options = section.options | {"runtime": f"{math.ceil(wanted_s)}s"}
    return run.model_copy(update={"sections": (section.model_copy(update={"options": options}),)})


def _margin(text: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = math.nan
    if not 1 <= margin <= 100:
        raise InputError(f"{text!r} is no margin from 1 to 100", hint="write it like 1.3")
    return margin
