"""Defects of fio that the runs of a plan will meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from volbench.model.campaign.planned_files import bytes_of
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.profile.fio_defects import defects_of, version_in

_MAX_NAMED = 3  # Jobs that a warning names before it counts the others


def met_defects(runs: Sequence[Run], versions: Mapping[str, str]) -> Iterator[str]:
    """Yield each defect of the fio of each host once, with the jobs that meet it."""
    jobs: dict[str, dict[str, None]] = {}
    for run in runs:
        version = version_in(versions.get(run.host, ""))
        for section in run.sections if version else ():
            options = {**run.effective(section), "blocks": _blocks(run, section)}
            for defect in defects_of(version, options):
                jobs.setdefault(defect.sentence(version, options), {})[section.name] = None
    for text, named in jobs.items():
        names = [*named]
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        yield f"{'jobs' if names[1:] else 'job'} {', '.join(names[:_MAX_NAMED])}{more}: {text}"


def _blocks(run: Run, section: Section) -> str:
    """Return the number of blocks in the range of a section; empty if it is not known."""
    options, whole = run.effective(section), run.volume.size_bytes
    size, block = bytes_of(options.get("size", "100%"), whole=whole), options.get("bs", "4096")
    return str(size // int(block)) if size and block.isdecimal() and int(block) else ""
