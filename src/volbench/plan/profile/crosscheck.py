"""Checks across options that `fio --parse-only` does not make: a Job in, problems out."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.model.document.yaml_nodes import Node
from volbench.model.profile.contradictions import contradictions
from volbench.model.profile.profile_model import Job, Options, Tool
from volbench.plan.expansion.extents import warming_problem
from volbench.plan.profile.burst_runtime import outlast_problem
from volbench.plan.profile.node_reader import Reader
from volbench.plan.profile.until_setting import until_problem


def check_job(reader: Reader, job: Job, defaults: Options) -> None:
    """Note what can't work together in a job, at the option or else at the job."""
    fallback = reader.jobs[job.name]
    if problem := until_problem(job, defaults):
        message, hint = problem
        reader.complain(fallback, message, key=f"{fallback.key}.until", hint=hint)
    if problem := warming_problem(job):
        message, hint = problem
        reader.complain(fallback, message, key=f"{fallback.key}.warming", hint=hint)
    if found := outlast_problem(job, defaults):
        key, message, hint = found
        reader.complain(fallback, message, key=f"{fallback.key}.{key}", hint=hint)
    if job.tool is Tool.DD:
        for name, message, hint in dd_problems(job.options):
            _complain(reader, [job.name], name, message, hint, fallback)
        return
    for section, options in effective(job, defaults).items():
        owners = [f"{job.name}.{section}", job.name, ""]
        for name, message, hint in (*contradictions(options), *_careless(options)):
            _complain(reader, owners, name, message, hint, fallback)


def effective(job: Job, defaults: Options) -> dict[str, dict[str, str]]:
    """Return the options that hold in each section; the usual single one is called ``""``."""
    merged = {
        section: {**defaults, **job.options, **own}
        for section, own in (job.sections or {"": {}}).items()
    }
    return {
        section: {name: value for name, value in options.items() if value is not None}
        for section, options in merged.items()
    }


def _complain(
    reader: Reader, owners: list[str], name: str, message: str, hint: str, fallback: Node
) -> None:
    """Note a problem where the option was written last; once, however many jobs share it."""
    found = [reader.places[owner, name] for owner in owners if (owner, name) in reader.places]
    node = found[0] if found else fallback
    known = {(p.line, p.column, p.message) for p in reader.problems.found}
    if (node.line, node.column, message) not in known:
        reader.complain(node, message, key=node.key or name, hint=hint)


def dd_problems(options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield option, message and hint for what can't work together in a dd job."""
    size, block = options.get("size"), options.get("bs") or "512"
    if size is None:
        yield "size", "a dd job needs a size", "write it like size: 64m"
    elif int(size) % int(block):
        yield "size", f"size {size} is no multiple of bs {block}", "use whole blocks"
    flags = f"{options.get('oflag') or ''},{options.get('iflag') or ''}".split(",")
    if "direct" in flags and int(block) % 512:
        yield "bs", "direct needs a bs that is a multiple of 512", "use 4k, or leave out direct"
    if options.get("rw") == "read" and "if" in options:
        yield "if", "a reading dd takes the volume as its input", "leave out if"


def _careless(options: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what fio accepts but hardly anybody means."""
    if options.get("time_based", "0") == "1" and options.get("runtime", "0s") == "0s":
        yield "time_based", "time_based without runtime runs size once", "add runtime: 60s"
    if options.get("direct") == "1" and options.get("buffered") == "1":
        yield "buffered", "direct and buffered exclude each other", "keep one"
    mix = [int(options[name]) for name in ("rwmixread", "rwmixwrite") if name in options]
    if len(mix) == 2 and sum(mix) != 100:
        yield "rwmixwrite", f"rwmixread and rwmixwrite add up to {sum(mix)}", "keep one"
