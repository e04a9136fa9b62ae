"""A profile's YAML in, a Profile out, or every problem in it with file, line and column."""

from __future__ import annotations

import re
from collections.abc import Callable

from volbench.errors import Problems
from volbench.model.document.yaml_nodes import Entry, Node, parse_document
from volbench.model.profile.fio_option import OptionTable, nearest
from volbench.model.profile.profile_model import Job, Order, Phase, Profile, Rounds, Source, Start
from volbench.plan.profile.crosscheck import check_job
from volbench.plan.profile.jobs import read_jobs, read_matrix, read_phases
from volbench.plan.profile.node_reader import Reader
from volbench.plan.profile.rounds_setting import read_rounds, rounds_problem
from volbench.plan.profile.start_policy import MOST_CLIENTS, read_stagger, start_problem
from volbench.plan.profile.volume_type_limits import names_roles, read_role_limits
from volbench.units import parse_duration

PROFILE_KEYS = (
    "name",
    "description",
    "source",
    "defaults",
    "volumes",
    "repeat",
    "rounds",
    "order",
    "seed",
    "sample",
    "device_sample",
    "latency_log",
    "cold_probe",
    "start",
    "stagger",
    "clients",
    "limits",
    "jobs",
    "matrix",
    "phases",
)
LEAST_SAMPLE_S = 0.1
UNSAMPLED = "latencies are logged at every sample, and sample is 0"
MOST_REPEATS = 10_000
MOST_SEED = 2**31 - 1


def load_profile(text: str, *, path: str, table: OptionTable, allow_exec: bool = False) -> Profile:
    """Read a profile.

    Args:
        text: YAML 1.2.
        path: for messages.
        table: the options of the fio that will run it.
        allow_exec: accept options that run programs or leave the Run's folder.

    Raises:
        ProfileError: everything that is wrong in it, in file order.
    """
    problems = Problems(path)
    top = parse_document(text, problems, what="a profile", needs="a name and jobs")
    if top is None or top.entries is None:
        problems.raise_if_any()
        raise AssertionError("a document without a mapping has a problem")
    profile = _profile(Reader(problems, table, allow_exec=allow_exec), top)
    problems.raise_if_any()
    return profile


def _profile(reader: Reader, top: Node) -> Profile:
    entries = {entry.name: entry for entry in reader.entries(top, "a profile")}
    for entry in entries.values():
        if entry.name not in PROFILE_KEYS:
            reader.unknown(entry, PROFILE_KEYS, "a profile")
    values: dict[str, object] = {}
    for name, read in _READERS.items():
        if name in entries and (name in _MAY_BE_EMPTY or _is_given(reader, entries[name])):
            values[_FIELDS.get(name, name)] = read(reader, entries[name].value)
    if "name" not in entries:
        reader.complain(top, "a profile needs a name", key="name", hint="add name: my-profile")
    values.setdefault("name", "unnamed")
    _check_start(reader, entries, values)
    if values.get("latency_log") and values.get("sample_s", 1.0) == 0:
        reader.complain(entries["latency_log"], UNSAMPLED, hint="set sample, such as 1s")
    jobs = _jobs(reader, top, entries)
    defaults = values.get("defaults")
    for job in jobs:
        check_job(reader, job, defaults if isinstance(defaults, dict) else {})
    if jobs and "limits" in entries:
        _check_roles(reader, entries["limits"].value, sorted({job.role for job in jobs}))
    if jobs and "rounds" in entries:
        _check_rounds(reader, entries["rounds"], values, jobs)
    return Profile.model_validate({**values, "jobs": tuple(jobs)})


_MAY_BE_EMPTY = frozenset({"seed"})
_FIELDS = {"sample": "sample_s", "device_sample": "device_sample_s", "stagger": "stagger_s"}


def _is_given(reader: Reader, entry: Entry) -> bool:
    if entry.value.is_scalar and entry.value.raw is None:
        reader.complain(entry, f"{entry.name} has no value", hint="write one, or leave it out")
        return False
    return True


def _check_rounds(reader: Reader, entry: Entry, values: dict[str, object], jobs: list[Job]) -> None:
    """Note rounds that track what is not measured, or that stand beside a repeat."""
    rounds, repeat = values.get("rounds"), values.get("repeat", 1)
    if not isinstance(rounds, Rounds) or not isinstance(repeat, int):
        return
    if problem := rounds_problem(rounds, jobs, repeat=repeat):
        message, hint = problem
        reader.complain(entry, message, hint=hint)


def _check_start(reader: Reader, entries: dict[str, Entry], values: dict[str, object]) -> None:
    """Note a stagger without staggered starts, and the other way round."""
    start, stagger_s = values.get("start", Start.TOGETHER), values.get("stagger_s", 0.0)
    unread = "start" in entries and entries["start"].value.raw not in set(Start)
    unread |= "stagger" in entries and not stagger_s
    if unread or not isinstance(start, Start) or not isinstance(stagger_s, float):
        return
    if problem := start_problem(start, stagger_s):
        key, message, hint = problem
        reader.complain(entries[key], message, hint=hint)


def _jobs(reader: Reader, top: Node, entries: dict[str, Entry]) -> list[Job]:
    given = {name: entries[name] for name in ("phases", "jobs", "matrix") if name in entries}
    if not given:
        reader.complain(top, "a profile needs jobs, a matrix or phases", key="jobs")
    jobs = [job for entry in given.values() for job in _read_group(reader, entry)]
    if given and jobs and not any(job.phase is Phase.MEASURED for job in jobs):
        reader.complain(top, "nothing in it is measured", key="jobs", hint="add jobs")
    order = list(Phase)
    return sorted(jobs, key=lambda job: order.index(job.phase))


def _read_group(reader: Reader, entry: Entry) -> list[Job]:
    if entry.name == "phases":
        return read_phases(reader, entry.value)
    if entry.name == "matrix":
        return read_matrix(reader, entry.value)
    return read_jobs(reader, entry.value, Phase.MEASURED)


def _source(reader: Reader, node: Node) -> Source:
    if node.entries is None:
        return Source(title=reader.text(node, "source"))
    values: dict[str, str] = {}
    for entry in node.entries:
        if entry.name not in Source.model_fields:
            reader.unknown(entry, Source.model_fields, "source")
            continue
        values[entry.name] = reader.text(entry.value, entry.name)
    if "title" not in values:
        reader.complain(node, "source needs a title")
    if not re.fullmatch(r"[0-9]{4}", values.get("year", "2000")):
        reader.complain(node, f"year {values['year']!r} is no year", hint="write it like 2019")
        del values["year"]
    values.setdefault("title", "")
    return Source.model_validate(values)


def _check_roles(reader: Reader, node: Node, roles: list[str]) -> None:
    """Note limits for a role that no job has: they would be drawn and judged nowhere."""
    for entry in node.entries or () if names_roles(node) else ():
        if entry.name not in {"*", *roles}:
            near = nearest(entry.name, roles)
            reader.complain(
                entry,
                f"no job works on the role {entry.name!r}",
                hint=f"did you mean `{near}`?" if near else f"jobs work on {', '.join(roles)}",
            )


def _volumes(reader: Reader, node: Node) -> dict[str, str]:
    return {
        reader.name(entry, entry.name, "a role"): reader.given(entry.value, "a volume")
        for entry in reader.entries(node, "volumes")
    }


def _whole(what: str, least: int, most: int) -> Callable[[Reader, Node], int]:
    def read(reader: Reader, node: Node) -> int:
        number = reader.value(node, what, int, least)
        if not least <= number <= most:
            reader.complain(node, f"{what} goes from {least} to {most}, this is {number}")
            return least
        return number

    return read


def _seed(reader: Reader, node: Node) -> int | None:
    return (
        None if node.raw is None and node.is_scalar else _whole("seed", 0, MOST_SEED)(reader, node)
    )


def _sample(what: str, why: str) -> Callable[[Reader, Node], float]:
    def read(reader: Reader, node: Node) -> float:
        sample_s = reader.value(node, what, parse_duration, 1.0)
        if 0 < sample_s < LEAST_SAMPLE_S:
            reader.complain(node, f"{what} must be 0 or at least 100ms", hint=why)
        return sample_s

    return read


def _yes_or_no(what: str) -> Callable[[Reader, Node], bool]:
    def read(reader: Reader, node: Node) -> bool:
        return reader.choice(node, what, _ANSWERS) in {"true", "yes", "1", "on"}

    return read


_ANSWERS = dict.fromkeys(("false", "true", "no", "yes", "0", "1", "off", "on"))


_READERS: dict[str, Callable[[Reader, Node], object]] = {
    "name": lambda reader, node: reader.name(node, reader.text(node, "name"), "a profile"),
    "description": lambda reader, node: reader.text(node, "description"),
    "source": _source,
    "defaults": lambda reader, node: reader.options(reader.entries(node, "defaults"), owner=""),
    "volumes": _volumes,
    "repeat": _whole("repeat", 1, MOST_REPEATS),
    "rounds": read_rounds,
    "order": lambda reader, node: reader.choice(
        node, "order", {order.value: order for order in Order}
    ),
    "seed": _seed,
    "sample": _sample("sample", "fio's shorter windows are distorted"),
    "device_sample": _sample("device_sample", "looking more often would disturb the Run"),
    "latency_log": _yes_or_no("latency_log"),
    "cold_probe": _yes_or_no("cold_probe"),
    "start": lambda reader, node: Start(
        reader.choice(node, "start", {start.value: start for start in Start})
    ),
    "stagger": lambda reader, node: reader.value(node, "stagger", read_stagger, 0.0),
    "clients": _whole("clients", 1, MOST_CLIENTS),
    "limits": read_role_limits,
}
