"""Results of fio embedded in any text.

A result may be alone, after warnings, in a list, inside the report of another tool, or reduced to
its list of jobs. Of several documents of one process (``--status-interval``) the last one
counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from volbench.errors import OutputError
from volbench.fio.results.json_documents import CUT_OFF, DECODER, MAX_BROKEN, Broken, pieces_of
from volbench.fio.results.json_output import read_document
from volbench.fio.results.text_output import read_text_output
from volbench.model.results.result import JobResult, RunOutput

_IS_OF_FIO = re.compile(r'"(?:fio version|jobname)"\s*:')
_JOBNAME = re.compile(r'"jobname"\s*:\s*"([^"\\\n]+)"')
_ANYWHERE = re.compile(r'\{\s*"fio version"')
# fio reports the time of a document and its elapsed time in whole seconds.
# Noticed by: tests/fio/results
_MAX_SAME_START_S = 2.0
_DIRECTIONS = ("read", "write", "trim", "mixed")
_ENTRY = {"jobname", "groupid"}
_LATENCIES = ("lat", "clat", "slat")


@dataclass(frozen=True)
class EmbeddedResults:
    """Results in a text."""

    results: tuple[RunOutput, ...]  # one per fio process
    diagnostics: str = ""  # the text around them


def find_results(text: str, *, path: str = "") -> EmbeddedResults:
    """Return the results in a text; none when it is not output of fio."""
    if not _IS_OF_FIO.search(text):
        return EmbeddedResults(tuple(read_text_output(text, path=path)))
    try:
        documents, outside, broken = _documents(text)
    except RecursionError:
        raise OutputError("its JSON is nested too deeply to be output of fio") from None
    if not documents:
        _refuse(text, broken, path)
        return EmbeddedResults(tuple(read_text_output(text, path=path)))
    remarks = [line for line in re.split(r"[\r\n]+", outside) if line.strip()]
    if broken is not None:
        remarks.append(f"{CUT_OFF} {broken.line}")
    diagnostics = "\n".join(remarks)
    for document in documents:
        if isinstance(document, Mapping):
            _require_names(document, path)
    outputs = _outputs_of(documents, path)
    results = tuple(replace(last, diagnostics=diagnostics) for last in _last_of_each(outputs))
    if not any(result.jobs for result in results):
        raise OutputError("fio's JSON contains no jobs", path=str(path))
    return EmbeddedResults(tuple(result for result in results if result.jobs), diagnostics)


def _outputs_of(
    documents: Sequence[Mapping[str, object] | Broken], path: str
) -> list[RunOutput | Broken]:
    """Return the readable part of each document; damage in one does not affect the others."""
    first = documents[0]
    jobs = first.get("jobs", first.get("client_stats")) if isinstance(first, Mapping) else None
    is_alone = len(documents) == 1 and isinstance(jobs, list) and len(jobs) == 1
    outputs: list[RunOutput | Broken] = []
    for document in documents:
        if isinstance(document, Broken):
            outputs.append(document)
            continue
        try:
            outputs.append(read_document(document, path=path, is_whole=is_alone))
        except OutputError as error:
            if len(documents) == 1:
                raise
            outputs.append(_lost("job", error.message))
    return outputs


def _lost(name: str, reason: str) -> RunOutput:
    """Return the result of a process whose numbers cannot be read."""
    return RunOutput("", (JobResult(name, groupid=0, error=0, directions=(), damage=reason),))


def _require_names(document: Mapping[str, object], path: str) -> None:
    """Reject entries of several clients without host names, as fio up to 3.2 prints them."""
    entries = document.get("client_stats")
    if not isinstance(entries, list):
        return
    unnamed = [entry for entry in entries if isinstance(entry, dict) and "hostname" not in entry]
    keys = [(entry.get("jobname"), entry.get("groupid")) for entry in unnamed]
    if len({*map(str, keys)}) < len(keys):
        raise OutputError(
            "the clients have no host names, so their results cannot be distinguished",
            hint="fio reports host names since 3.3",
            path=str(path),
        )


def _documents(text: str) -> tuple[list[Mapping[str, object] | Broken], str, Broken | None]:
    """Return fio's documents, the text outside, and a truncated document after the last one."""
    start = text.lstrip()[:1]
    if start == "[":
        try:
            return list(_walk(DECODER.decode(text.strip()))), "", None
        except (ValueError, RecursionError):
            pass  # a list that is not JSON may still contain documents
    documents: list[Mapping[str, object] | Broken] = []
    outside: list[str] = []
    broken: Broken | None = None
    for piece in pieces_of(text):
        if isinstance(piece, str):
            outside.append(piece)
        elif isinstance(piece, Broken):
            broken = piece
        else:
            documents += [broken] if broken and _IS_OF_FIO.search(broken.text) else []
            documents += _walk(piece)
            broken = None
    if not any(isinstance(document, Mapping) for document in documents):
        documents = list(_anywhere(text))
        return documents, "", None if documents else broken
    return documents, "".join(outside), broken


def _anywhere(text: str) -> Iterator[Mapping[str, object]]:
    """Yield documents that begin within a line."""
    position = broken = 0
    while broken < MAX_BROKEN and (start := _ANYWHERE.search(text, position)):
        try:
            document, position = DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position, broken = start.end(), broken + 1
        else:
            yield from _walk(document)


def _walk(value: object, *, is_inside: bool = False) -> Iterator[Mapping[str, object]]:
    """Yield fio's documents in a JSON value, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, is_inside=True)
    elif isinstance(value, dict):
        if _is_result(value):
            yield _completed(value) if is_inside or "fio version" not in value else value
        elif _ENTRY & value.keys() and _DIRECTIONS[0] in value:
            yield _completed({"jobs": [value]})
        else:
            for item in value.values():
                yield from _walk(item, is_inside=True)


def _is_result(value: Mapping[str, object]) -> bool:
    """Return whether an object is one of fio's documents."""
    for key in ("jobs", "client_stats"):
        entries = value.get(key)
        if isinstance(entries, list):
            if not entries and "fio version" in value:
                return True
            if entries and isinstance(entries[0], dict) and "jobname" in entries[0]:
                return True
    return False


def _completed(document: Mapping[str, object]) -> Mapping[str, object]:
    """Return a document with the zeros that other tools leave out."""
    whole = dict(document)
    for key in ("jobs", "client_stats"):
        entries = whole.get(key)
        if isinstance(entries, list):
            whole[key] = [_entry(item) if isinstance(item, dict) else item for item in entries]
    return whole


def _entry(entry: Mapping[str, object]) -> Mapping[str, object]:
    whole = {"groupid": 0, "error": 0, **entry}
    for name in _DIRECTIONS:
        block = whole.get(name)
        if isinstance(block, dict):
            filled = {"io_bytes": 0, "total_ios": 0, "runtime": 0, **block}
            for key, value in block.items():
                if key.removesuffix("_ns") in _LATENCIES and isinstance(value, dict):
                    filled[key] = {"min": 0, "max": 0, "mean": 0, "stddev": 0, **value}
            whole[name] = filled
    return whole


def _last_of_each(outputs: Sequence[RunOutput | Broken]) -> list[RunOutput]:
    """Return the last document of each process, with their number.

    A broken document between two of one process is a status of it, else that of another process.
    """
    kept: list[RunOutput] = []
    broken: Broken | None = None
    for output in outputs:
        if isinstance(output, Broken):
            broken = output
            continue
        if kept and _is_same_process(kept[-1], output):
            kept[-1] = replace(output, documents=kept[-1].documents + 1)
        else:
            if broken is not None:
                name = _JOBNAME.search(broken.text)
                reason = f"its JSON cannot be parsed at line {broken.line}: {broken.reason}"
                kept.append(_lost(name[1] if name else "job", reason))
            kept.append(output)
        broken = None
    return kept


def _is_same_process(earlier: RunOutput, later: RunOutput) -> bool:
    """Return whether two documents are of one process: same jobs and start, no less I/O."""
    if [_key(job) for job in earlier.jobs] != [_key(job) for job in later.jobs]:
        return False
    pairs = zip(earlier.jobs, later.jobs, strict=True)
    if not earlier.jobs or any(_done(before) > _done(after) for before, after in pairs):
        return False
    starts = [started_utc_s(output) or _begun_utc_s(output) for output in (earlier, later)]
    if None in starts:
        return False
    first_s, second_s = (start_s or 0.0 for start_s in starts)
    return math.isclose(first_s, second_s, abs_tol=_MAX_SAME_START_S)


def _begun_utc_s(output: RunOutput) -> float | None:
    """Return the start of a document's longest I/O; documents of clients have nothing better."""
    runtimes = [direction.runtime_s for job in output.jobs for direction in job.directions]
    return output.ended_utc_s - max(runtimes) if output.ended_utc_s and runtimes else None


def _key(job: JobResult) -> tuple[str, int, str, int | None]:
    return job.name, job.groupid, job.hostname, job.port


def _done(job: JobResult) -> int:
    return sum(direction.total_ios or 0 for direction in job.directions)


def started_utc_s(output: RunOutput) -> float | None:
    """Return the start of fio in seconds since the epoch; None when not reported.

    It is the time of the document less the elapsed time, which is in whole seconds.
    """
    elapsed = [job.elapsed_s for job in output.jobs if job.elapsed_s is not None]
    return output.ended_utc_s - max(elapsed) if output.ended_utc_s and elapsed else None


def _refuse(text: str, broken: Broken | None, path: str) -> None:
    """Raise an error for JSON of fio without a usable result; return for any other text."""
    if broken is not None and ('"fio version"' in text or '"jobname"' in text):
        raise OutputError(
            f"fio's JSON cannot be parsed: {broken.reason}",
            hint="fio was killed, the disk that holds its output was full, or the file was edited",
            path=str(path),
            line=broken.line,
            column=broken.column,
        )
    if '"fio version"' in text:
        raise OutputError("fio's JSON is damaged", path=str(path))
