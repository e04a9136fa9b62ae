"""Campaigns in words: states of runs, the estimate of a plan, sources of imported results."""

from __future__ import annotations

from collections.abc import Iterable

from volbench.analyse.frames.workload_words import first_names
from volbench.model.campaign.planned_run import Campaign, SourceFile
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.expansion.estimate import FILL_BYTES_PER_S, Estimate
from volbench.present.formatting import instant
from volbench.units import counted_noun, format_capacity, format_duration, format_rate

NAMED_FILES = 4  # Files that a sentence names before it counts the rest


def estimate_words(estimate: Estimate) -> str:
    """Return time and bytes, a line each."""
    return f"Estimated time: {_time(estimate)}.\nWrites: {_written(estimate)}."


def memory_words(volumes: Iterable[VolumeFacts]) -> str:
    """Return a line for each volume that is memory of its host; empty for none."""
    return "\n".join(
        f"warning: {facts.target} is in the memory of the host ({facts.in_memory}): its rates are"
        " not those of a disk, and every result will be marked invalid"
        for facts in volumes
        if facts.in_memory
    )


def _time(estimate: Estimate) -> str:
    if estimate.total_s is None:
        return "unknown, limited only by size"
    longest, shortest_s = _spoken(estimate.total_s), estimate.min_s
    text = f"up to about {longest}" if estimate.is_most else longest
    if estimate.is_most and shortest_s is not None and _spoken(shortest_s) != longest:
        text = f"{_spoken(shortest_s)} to {longest}"
    if estimate.min_runs < estimate.runs:
        text += f" ({estimate.min_runs} to {estimate.runs} runs)"
    if round(estimate.fill_s):
        rate, filling = format_rate(FILL_BYTES_PER_S), _spoken(estimate.fill_s)
        text += f", of which {filling} for files and volumes to be filled, or read whole, at {rate}"
    further = ["write-back of cached data"] * estimate.is_cached
    if estimate.untimed:
        further.append(f"{counted_noun(estimate.untimed, 'run')} of unknown duration")
    *others, last = further or [""]
    ending = f"{', '.join(others)} and {last}" if others else last
    return f"{text}, plus {ending}" if ending else text


def _spoken(seconds: float) -> str:
    return format_duration(round(seconds / 60) * 60 if seconds >= 3600 else round(seconds))


def _written(estimate: Estimate) -> str:
    most, least = estimate.bytes_written, estimate.min_bytes
    if most is None and not estimate.bounded_bytes:
        return "limited only by time"
    if most == 0:
        return "none"
    text = f"at most {format_capacity(estimate.bounded_bytes)}{' of new files' * estimate.lays_out}"
    if most is not None and least is not None and least < most:
        text += f", or {format_capacity(least)} if everything is steady at once"
    if estimate.times_capacity >= 1:
        text += f" ({estimate.times_capacity:.1f} times the capacity)"
    if estimate.unbounded:
        text += f", plus {counted_noun(estimate.unbounded, 'run')} of unknown size"
    return text


def came_from(campaign: Campaign) -> str:
    """Return one sentence on an imported campaign, without names of files; "" for any other."""
    if not campaign.is_imported:
        return ""
    results, logs = _files(campaign)
    parts = (results, "result file"), (logs, "log")
    counts = [counted_noun(len(files), noun) for files, noun in parts if files]
    return (
        f"Imported results: measured outside volbench, imported at"
        f" {instant(campaign.created_utc)} from {' and '.join(counts)}."
    )


def sources(campaign: Campaign) -> str:
    """Return a sentence that names the files; "" for a campaign that volbench ran itself."""
    results, logs = _files(campaign)
    names = results or logs
    return f"Files: {first_names(names, NAMED_FILES)}." if names else ""


def _files(campaign: Campaign) -> tuple[list[str], list[str]]:
    results: list[SourceFile] = []
    logs: list[SourceFile] = []
    for run in campaign.runs:
        if run.imported is not None:
            first = 0 if run.imported.read_as else 1
            results += run.imported.files[:first]
            logs += run.imported.files[first:]
    places, of_logs = (dict.fromkeys(file.source for file in files) for files in (results, logs))
    return [*places], [*of_logs]
