"""``rounds`` of a profile: a node or a text in, Rounds out, and what speaks against them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from volbench.errors import InputError
from volbench.model.document.yaml_nodes import Node
from volbench.model.profile.fio_option import nearest
from volbench.model.profile.profile_model import Job, Metric, Phase, Rounds, Tool, Track
from volbench.plan.profile.node_reader import Reader

ROUNDS_KEYS = ("most", "until", "track")
LEAST_ROUNDS = 5
"""SNIA's criterion is about five rounds (PTS 2.0.2, 2.1.24)."""
MOST_ROUNDS = 1000
CRITERION = "snia"
_EXAMPLE = "name a job and what of it: r0-4k.iops"


def read_rounds(reader: Reader, node: Node) -> Rounds | None:
    """Return ``rounds`` of a profile; None when nothing in it can be tracked."""
    most, track = Rounds.model_fields["most"].default, list[Track]()
    for entry in reader.entries(node, "rounds"):
        if entry.name == "most":
            most = reader.value(entry.value, "most", _most, most)
        elif entry.name == "until":
            reader.choice(entry.value, "until", {CRITERION: None})
        elif entry.name == "track":
            items = reader.items(entry.value, "track")
            told = [reader.value(item, "track", _track, None) for item in items]
            track = [one for one in told if one is not None]
        else:
            reader.unknown(entry, ROUNDS_KEYS, "rounds")
    if not track:
        reader.complain(node, "rounds need something to track", hint=f"add track; {_EXAMPLE}")
        return None
    return Rounds(most=most, track=tuple(track))


def set_rounds(rounds: Rounds | None, key: str, value: str) -> Rounds | None:
    """Return ``rounds`` of a profile after ``--set``; None when they were taken away.

    Args:
        rounds: what the profile had.
        key: ``rounds``, ``rounds.most`` or ``rounds.track``.
        value: empty, a number, or tracking variables with commas between them.

    Raises:
        InputError: there is no such key, or it can't have that value.
    """
    field = key.partition(".")[2]
    if key == "rounds" and not value:
        return None
    if field == "track":
        track = tuple(_track(text.strip()) for text in value.split(","))
        return Rounds(track=track) if rounds is None else rounds.model_copy(update={"track": track})
    if field != "most":
        raise InputError(
            f"there is no {key}={value}",
            hint="there are rounds.most and rounds.track; rounds= takes them away",
        )
    if rounds is None:
        raise InputError("the profile has no rounds", hint="set rounds.track before")
    return rounds.model_copy(update={"most": _most(value)})


def rounds_problem(
    rounds: Rounds | None, jobs: Sequence[Job], *, repeat: int
) -> tuple[str, str] | None:
    """Return message and hint when jobs can't be repeated until they are steady."""
    if rounds is None:
        return None
    if repeat > 1:
        return "rounds repeat the jobs already", "take repeat away, or rounds"
    measured = {job.name: job for job in jobs if job.phase is Phase.MEASURED}
    for track in rounds.track:
        job = measured.get(track.job)
        if job is None:
            near = nearest(track.job, list(measured))
            hint = f"did you mean `{near}.{track.metric}`?" if near else _EXAMPLE
            return f"track {track.name}: no measured job is called {track.job}", hint
        if job.tool is Tool.DD and track.metric is not Metric.BW:
            return f"track {track.name}: dd tells its bandwidth only", f"track {track.job}.bw"
    if len(set(rounds.track)) < len(rounds.track):
        return "a variable is tracked twice", "name each once"
    return None


def _most(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not LEAST_ROUNDS <= int(text) <= MOST_ROUNDS:
        raise InputError(
            f"{text!r} is no whole number from {LEAST_ROUNDS} to {MOST_ROUNDS}",
            hint="the specification ends after 25 rounds",
        )
    return int(text)


def _track(text: str) -> Track:
    job, dot, metric = text.rpartition(".")
    if not dot or not job or metric not in set(Metric):
        known = ", ".join(one.value for one in Metric)
        raise InputError(f"{text!r} can't be tracked", hint=f"{_EXAMPLE}; there are {known}")
    return Track(job=job, metric=Metric(metric))
