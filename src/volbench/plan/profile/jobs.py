"""The jobs, phases and matrix of a profile: nodes in, Jobs out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.profile_model import Job, Options, Phase, Tool
from volbench.plan.profile.burst_runtime import read_outlast
from volbench.plan.profile.node_reader import Reader
from volbench.plan.profile.until_setting import read_until
from volbench.plan.profile.volume_type_limits import read_limits
from volbench.plan.profile.warming_setting import read_warming
from volbench.units import parse_duration

JOB_KEYS = (
    "role",
    "note",
    "tool",
    "limits",
    "sections",
    "until",
    "pause_before",
    "outlast",
    "warming",
)
MATRIX_KEYS = ("role", "note", "name", "exclude", "include")
_COMBINATIONS_LIMIT = 10_000


def read_jobs(reader: Reader, node: Node, phase: Phase) -> list[Job]:
    """Return the jobs of a ``jobs`` or phase mapping."""
    entries = reader.entries(node, "jobs")
    if node.entries is not None and not entries:
        reader.complain(node, "there is no job in it", hint="name at least one")
    return [_job(reader, entry, phase) for entry in entries]


def _job(reader: Reader, entry: Entry, phase: Phase) -> Job:
    name = reader.name(entry, entry.name, "a job")
    reader.job(name, Node(entry.line, entry.column, entry.value.key))
    content = _content(reader, entry, f"job {name}")
    special = {item.name: item for item in content if item.name in JOB_KEYS}
    tool = Tool.FIO
    if "tool" in special:
        choices = {tool.value: tool for tool in Tool}
        tool = Tool(reader.choice(special["tool"].value, "tool", choices))
    options = reader.options(
        (item for item in content if item.name not in JOB_KEYS), owner=name, dd=tool is Tool.DD
    )
    sections = _sections(reader, special.get("sections"), name) if "sections" in special else {}
    if tool is Tool.DD and sections:
        reader.complain(special["sections"], "a dd job has no sections")
    job = Job(
        name=name,
        role=_role(reader, special),
        tool=tool,
        phase=phase,
        note=reader.text(special["note"].value, "note") if "note" in special else "",
        options=options,
        sections=sections,
        limits=read_limits(reader, special["limits"].value) if "limits" in special else None,
        until=read_until(reader, special["until"].value) if "until" in special else None,
    )
    more: dict[str, object] = {}
    if "pause_before" in special:
        node = special["pause_before"].value
        more["pause_before_s"] = reader.value(node, "pause_before", parse_duration, 0.0)
    if "outlast" in special:
        more["outlast"] = read_outlast(reader, special["outlast"].value)
    if "warming" in special:
        more |= read_warming(reader, special["warming"].value)
    return job.model_copy(update=more)


def _content(reader: Reader, entry: Entry, what: str) -> tuple[Entry, ...]:
    """Return the options of a job or section; one may say nothing."""
    says_nothing = entry.value.is_scalar and entry.value.raw is None
    return () if says_nothing else reader.entries(entry.value, what)


def _role(reader: Reader, special: dict[str, Entry]) -> str:
    if "role" not in special:
        return "data"
    node = special["role"].value
    return reader.name(node, reader.text(node, "role"), "a role")


def _sections(reader: Reader, entry: Entry | None, job: str) -> dict[str, Options]:
    if entry is None:
        return {}
    found = {}
    for section in reader.entries(entry.value, "sections"):
        name = reader.name(section, section.name, "a section")
        content = _content(reader, section, f"section {name}")
        found[name] = reader.options(content, owner=f"{job}.{name}")
    if not found:
        reader.complain(entry, "there is no section in it", hint="name at least one")
    return found


@dataclass
class _Matrix:
    """The parts of a matrix while it is read."""

    role: str = "data"
    note: str = ""
    template: str = ""
    axes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    places: dict[str, Entry] = field(default_factory=dict)
    exclude: list[tuple[Node, Options]] = field(default_factory=list)
    include: list[tuple[Node, Options, dict[str, str]]] = field(default_factory=list)


def read_matrix(reader: Reader, node: Node) -> list[Job]:
    """Return a job for each combination of a ``matrix``, less ``exclude``, plus ``include``."""
    before = len(reader.problems.found)
    matrix = _read_matrix(reader, node)
    if len(reader.problems.found) > before:
        return []
    total = 1
    for values in matrix.axes.values():
        total *= len(values)
    if total > _COMBINATIONS_LIMIT:
        reader.complain(node, f"{total} combinations; at most {_COMBINATIONS_LIMIT} make sense")
        return []
    cells = list(_cells(reader, matrix)) if matrix.axes else []
    if not cells and not matrix.include:
        reader.complain(node, "nothing is left in the matrix", hint="give it lists of values")
    jobs = [_cell_job(reader, node, matrix, labels, options) for labels, options in cells]
    for job in jobs:
        for option, entry in matrix.places.items():
            reader.place(job.name, option, entry)
    for item, options, labels in matrix.include:
        jobs.append(_cell_job(reader, item, matrix, labels, options))
        for option in options:
            reader.places[jobs[-1].name, option] = reader.places[item.key, option]
    return jobs


def _read_matrix(reader: Reader, node: Node) -> _Matrix:
    matrix = _Matrix()
    entries = reader.entries(node, "matrix")
    special = {entry.name: entry for entry in entries if entry.name in MATRIX_KEYS}
    matrix.role = _role(reader, special)
    if "note" in special:
        matrix.note = reader.text(special["note"].value, "note")
    for entry in entries:
        if entry.name not in MATRIX_KEYS:
            _read_axis(reader, matrix, entry)
    if "name" in special:
        matrix.template = reader.text(special["name"].value, "name")
        matrix.template = _read_template(reader, special["name"].value, matrix)
    if "exclude" in special:
        for item in reader.items(special["exclude"].value, "exclude"):
            content = reader.entries(item, "an exclusion")
            matrix.exclude.append((item, reader.options(content, owner=_EXCLUDED)))
    if "include" in special:
        for item in reader.items(special["include"].value, "include"):
            _read_inclusion(reader, matrix, item)
    return matrix


_EXCLUDED = ".exclude"
"""Owner of options that are in no job; no job can be called so."""


def _read_inclusion(reader: Reader, matrix: _Matrix, item: Node) -> None:
    content = reader.entries(item, "an inclusion")
    labels = {_known_as(reader, entry.name): _written(entry.value) for entry in content}
    matrix.include.append((item, reader.options(content, owner=item.key), labels))


def _known_as(reader: Reader, name: str) -> str:
    """Return fio's own name of an option that may be an alias."""
    option = reader.table.find(name)
    return option.name if option else name


def _written(node: Node) -> str:
    """Return a value as it goes into a job's name."""
    return str(int(node.raw)) if isinstance(node.raw, bool) else str(node.raw or "none")


def _read_axis(reader: Reader, matrix: _Matrix, entry: Entry) -> None:
    if entry.name in JOB_KEYS:
        reader.complain(entry, f"a matrix has no {entry.name}", hint="write such jobs in `jobs`")
        return
    items = reader.items(entry.value, f"matrix option {entry.name}")
    if entry.value.items is not None and not items:
        reader.complain(entry, f"{entry.name} has no values")
    canonical = _known_as(reader, entry.name)
    if canonical in matrix.axes:
        reader.complain(entry, f"{entry.name} is given twice, once under another name")
        return
    values: list[tuple[str, str]] = []
    for item in items:
        pair = reader.option(Entry(entry.name, item.line, item.column, item))
        if pair is None:
            continue
        name, value = pair
        if value is None:
            reader.complain(
                item, f"{entry.name} has no value here", hint="write one, or leave it out"
            )
            continue
        if value in {known for _, known in values}:
            first = next(label for label, known in values if known == value)
            reader.complain(
                item,
                f"{entry.name} has the value {_written(item)} twice, first as {first}",
                hint="keep one of them",
            )
            continue
        values.append((_written(item), value))
        matrix.axes[name] = values
        matrix.places[name] = entry


_WORD = re.compile(r"\{(.*?)\}")


def _read_template(reader: Reader, node: Node, matrix: _Matrix) -> str:
    """Return a template of names with fio's own names of options."""
    template = reader.given(node, "name")
    for word in _WORD.findall(template):
        if _known_as(reader, word) not in matrix.axes:
            reader.complain(
                node,
                f"name uses {{{word}}}, which is no option of the matrix",
                hint=f"it has {', '.join(matrix.axes)}",
            )
    return _WORD.sub(lambda match: f"{{{_known_as(reader, match.group(1))}}}", template)


def _cells(reader: Reader, matrix: _Matrix) -> Iterator[tuple[dict[str, str], Options]]:
    used: set[int] = set()
    for combination in itertools.product(*matrix.axes.values()):
        pairs = list(zip(matrix.axes, combination, strict=True))
        options: Options = {name: value for name, (_, value) in pairs}
        hits = [
            number
            for number, (_, wanted) in enumerate(matrix.exclude)
            if wanted and wanted.items() <= options.items()
        ]
        used.update(hits)
        if not hits:
            yield {name: label for name, (label, _) in pairs}, options
    for number, (node, _) in enumerate(matrix.exclude):
        if number not in used:
            reader.complain(node, "this exclusion fits no combination", hint="check its values")


def _cell_job(
    reader: Reader, node: Node, matrix: _Matrix, labels: dict[str, str], options: Options
) -> Job:
    if matrix.template and set(labels) >= set(_WORD.findall(matrix.template)):
        name = _WORD.sub(lambda match: labels[match.group(1)], matrix.template)
    else:
        name = "-".join(_label(option, label) for option, label in labels.items())
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    reader.name(node, name, "a job of the matrix")
    reader.job(name, node)
    return Job(name=name, role=matrix.role, note=matrix.note, options=dict(options))


def _label(option: str, label: str) -> str:
    """Return how one option shows in a job's name: patterns speak for themselves."""
    return label if option in {"rw", "ioengine"} else f"{option}{label}"


def read_phases(reader: Reader, node: Node) -> list[Job]:
    """Return the jobs of ``phases``, precondition first."""
    known = {phase.value: phase for phase in Phase}
    jobs: dict[Phase, list[Job]] = {}
    for entry in reader.entries(node, "phases"):
        if entry.name not in known:
            reader.unknown(entry, known, "phases")
            continue
        jobs[known[entry.name]] = read_jobs(reader, entry.value, known[entry.name])
    return [job for phase in Phase for job in jobs.get(phase, [])]
