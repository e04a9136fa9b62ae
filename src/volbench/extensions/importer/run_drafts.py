"""Drafts of imported runs: one for each part of a result, with its options, labels and logs.

Nothing is guessed: an option that cannot be parsed is omitted and listed, and a volume that is not
reported is unknown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import PurePosixPath

from volbench.errors import InputError, OutputError
from volbench.extensions.importer.log_matching import FioProcess, log_paths
from volbench.extensions.importer.run_names import (
    HOST,
    JOB,
    REPEAT,
    RESERVED,
    LabelPattern,
    Naming,
    assign_host_names,
    assign_job_names,
    pattern_mismatch,
    plain,
    split_repeat,
)
from volbench.extensions.importer.scan_folders import ResultFile
from volbench.extensions.importer.unlike_jobs import differing_options, is_unlike_group, merge_note
from volbench.fio.jobs.job_syntax import is_device, read_value
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.results.embedded_results import started_utc_s
from volbench.fio.results.json_output import parse_version
from volbench.fio.results.merge_jobs import Part, plain_name, sections_of, split_result
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.profile.fio_options import OptionKind
from volbench.model.results.result import SUM_OF_CLIENTS, JobResult, RunOutput
from volbench.units import natural_order

ROLE = "data"
UNKNOWN = "unknown"
# A job with hundreds of files would make tables thousands of columns wide. Noticed by:
# tests/extensions/importer/test_reported_options.py::test_many_files_get_one_short_name
_MAX_PATH = 255  # Longest name of a file on most file systems
_MAX_TARGET = 120
_PLACES = frozenset({"filename", "directory", "read_iolog", "uri"})
_BLOCKS = frozenset({"bsrange", "bssplit"})
_NOT_OPTIONS = frozenset({"name", "description"})
# Version from which results hold options without a value; 3.36 is known to omit them. Noticed by:
# tests/extensions/importer/test_reported_options.py::test_an_unreported_option_is_not_a_difference
_WRITES_VALUELESS_SINCE = (3, 42)
# Engine to the name of its volume, of its own options (fio HOWTO, "I/O engine specific parameters")
_TARGETS = {
    "rbd": "rbd:{pool}/{rbdname}",
    "rados": "rados:{pool}",
    "gfapi": "gluster://{brick}/{volume}",
    "gfapi_async": "gluster://{brick}/{volume}",
    "dfs": "daos:{pool}/{cont}",
    "nfs": "{nfs_url}",
    "http": "http://{http_host}{filename}",
    "libhdfs": "hdfs://{namenode}{hdfsdirectory}",
    "libblkio": "{libblkio_path}",
    "net": "{hostname}:{port}",
    "netsplice": "{hostname}:{port}",
    "rdma": "{hostname}:{port}",
}
# Engines whose `filename` may be an address instead of a path
_ADDRESSED = frozenset({"spdk", "spdk_nvme", "spdk_bdev", "xnvme", "nvmefs", "libiscsi"})
_OPTION_IN_TARGET = re.compile(r"\{(\w+)\}")
_BETWEEN_FILES = re.compile(r"(?<!\\):")  # In `filename`; part of a name is written \:
_LOG_OPTIONS = re.compile(r"write_.*_log|log_.*|per_job_logs")


@dataclass(frozen=True)
class ReportedOptions:
    """Options of one section."""

    options: dict[str, str]  # canonical
    # as reported: options of engines that are not in the shipped table too
    texts: Mapping[str, str] = field(default_factory=dict)
    note: str = ""  # its description
    is_whole: bool = True  # whether options that are not listed have fio's defaults
    left_out: tuple[str, ...] = ()  # options that cannot be parsed, as reported
    is_merged: bool = False  # whether fio merged unlike sections into it
    merged: tuple[str, ...] = ()  # words of their names, as far as they are known


def reported_options(output: RunOutput, job: JobResult) -> ReportedOptions:
    """Return the options of an entry: fio's global ones, and its own over them.

    fio 2.2 reports none at all, and later versions omit those of some clients' jobs.
    """
    shared = output.shared_options(job)
    texts = {**shared, **job.options}
    is_of_client = bool(job.hostname) or job.name == SUM_OF_CLIENTS
    has_own = bool(job.options) or (bool(shared) and not is_of_client)
    has_own = has_own and output.disputed <= job.options.keys()
    options: dict[str, str] = {}
    left_out: list[str] = []
    unknown: set[str] = set()
    kb_base = 1000 if texts.get("kb_base") == "1000" else 1024
    for name, text in texts.items():
        option = shipped_table().find(name)
        if option is None or option.name in _NOT_OPTIONS:
            continue
        try:
            options[option.name] = _canonical_value(option.name, text, kb_base)
        except (InputError, ValueError):
            left_out.append(f"{name}={text}")
            unknown.add(option.name)
    if "bs_is_seq_rand" in texts:  # It gives the parts of bs another meaning
        left_out.append("bs_is_seq_rand")
    if unknown & _BLOCKS or "bs_is_seq_rand" in texts:
        options = {name: value for name, value in options.items() if name not in {"bs", *_BLOCKS}}
    is_whole = has_own and not left_out and output.form == "json"
    may_merge = (is_whole or job.merged) and _is_grouped(output, job, texts)
    if may_merge and is_unlike_group(job, options):
        return _of_unlike_jobs(job, shared, options)
    if is_device(name := plain_name(job)) and not texts.keys() & _PLACES:
        texts["filename"] = name  # fio takes it for the device that it names
    note = texts.get("description", "")
    return ReportedOptions(options, texts, note, is_whole, tuple(left_out))


def _is_grouped(output: RunOutput, job: JobResult, texts: Mapping[str, str]) -> bool:
    """Return whether an entry may be of several sections."""
    key = job.name, job.groupid, job.port
    is_alone = sum((other.name, other.groupid, other.port) == key for other in output.jobs) == 1
    return is_alone and (
        "group_reporting" in texts or "group_reporting" in unreported_flags(output)
    )


def _of_unlike_jobs(
    job: JobResult, shared: Mapping[str, str], options: Mapping[str, str]
) -> ReportedOptions:
    """Return the options that all jobs of a group have: global ones that the last did not set."""
    mine = {name: text for name, text in shared.items() if name not in job.options}
    names = {option.name for name in mine if (option := shipped_table().find(name))}
    names -= differing_options(job, options)
    kept = {name: value for name, value in options.items() if name in names}
    merged = tuple(job.merged) or (plain_name(job), "and", "others")
    return ReportedOptions(
        kept, mine, merge_note(job), is_whole=False, is_merged=True, merged=merged
    )


def unreported_flags(output: RunOutput) -> tuple[str, ...]:
    """Return the options that a result omits although they may have been set.

    Up to fio 3.36 those without a value, such as a bare ``time_based``, are omitted; 3.42 writes
    them with an empty text.
    """
    texts = [output.global_options, *(job.options for job in output.jobs)]
    if _writes_valueless(output.tool_version) or any("" in options.values() for options in texts):
        return ()
    flags = (
        option.name for option in shipped_table().options.values() if option.kind is OptionKind.FLAG
    )
    return tuple(flags)


def _writes_valueless(version: str) -> bool:
    """Return whether a version writes options without a value; False for an unknown version."""
    try:
        return parse_version(version) >= _WRITES_VALUELESS_SINCE
    except OutputError:
        return False


@lru_cache(maxsize=4096)
def _canonical_value(name: str, text: str, kb_base: int) -> str:
    """Return the value of an option of the shipped table; the results of a campaign repeat many."""
    option = shipped_table().options[name]
    is_bare = text == "" and option.kind is OptionKind.FLAG
    return read_value(option, None if is_bare else text, kb_base=kb_base).value


def volume_of(sections: Mapping[str, ReportedOptions]) -> Volume:
    """Return the volume of a run, as far as it is reported."""
    places = list(
        dict.fromkeys(
            _volume_from_options({**section.texts, **section.options})
            for section in sections.values()
        )
    )
    if len(places) == 1:
        kind, target = places[0]
        return Volume(role=ROLE, kind=kind, target=_short_target(target))
    target = ", ".join(target for _, target in places)
    return Volume(role=ROLE, kind=VolumeKind.UNKNOWN, target=_short_target(target))


def _short_target(target: str) -> str:
    """Return the name of many files in a length that fits a table; a digest keeps it unique.

    One path stays whole: volumes of a cluster often differ in its end alone.
    """
    is_list = ":" in target or "," in target
    if len(target) <= (_MAX_TARGET if is_list else _MAX_PATH):
        return target
    digest = sha256(target.encode()).hexdigest()[:8]
    return f"{target[:_MAX_TARGET]}... ({len(target)} characters, {digest})"


def _engine_target(options: Mapping[str, str]) -> str:
    """Return the name of a volume that its engine does not reach by a path; "" for others."""
    engine = PurePosixPath(options.get("ioengine", "").removeprefix("external:")).stem
    target, filename = _TARGETS.get(engine, ""), options.get("filename", "")
    if target and all(options.get(name) for name in _OPTION_IN_TARGET.findall(target)):
        return target.format_map(options)
    is_address = engine in _ADDRESSED and not filename.startswith("/")
    return filename.replace("\\:", ":") if is_address else ""


def _volume_from_options(options: Mapping[str, str]) -> tuple[VolumeKind, str]:
    if options.get("ioengine") == "nbd" and "uri" in options:
        return VolumeKind.NBD, options["uri"]
    if target := _engine_target(options):
        return VolumeKind.UNKNOWN, target
    folder, name = options.get("directory", ""), options.get("filename", "")
    if _BETWEEN_FILES.search(folder):
        return VolumeKind.UNKNOWN, name or folder
    if name:
        return _volume_of_files(folder, name)
    return (VolumeKind.DIRECTORY, folder) if folder else (VolumeKind.UNKNOWN, UNKNOWN)


def files_in(filename: str) -> list[str]:
    """Return the paths in fio's option ``filename``."""
    return [part.replace("\\:", ":") for part in _BETWEEN_FILES.split(filename) if part]


def _volume_of_files(folder: str, name: str) -> tuple[VolumeKind, str]:
    """Return a device, or the folder of regular files, which may be unknown."""
    names = files_in(name)
    in_folder = folder and not any(map(is_device, names))
    files = [str(PurePosixPath(folder, part.lstrip("/"))) if in_folder else part for part in names]
    if len(files) == 1 and is_device(files[0]):
        return VolumeKind.DEVICE, files[0]
    if len(files) == 1 and "\\" in files[0]:  # of Windows
        return VolumeKind.FILE, files[0]
    folders = {str(PurePosixPath(file).parent) for file in files}
    if len(folders) != 1 or any(is_device(file) or "\\" in file for file in files):
        return VolumeKind.UNKNOWN, name
    [place] = folders
    return VolumeKind.DIRECTORY, UNKNOWN if place == "." else place


@dataclass
class Draft:
    """Run under construction."""

    file: ResultFile  # with its result
    document: int  # number of the result in the file, from 0
    output: RunOutput  # that result
    part: Part  # its entries in the result
    # options by section; the key is fio's name and group
    reported: Mapping[tuple[str, int], ReportedOptions]
    process: FioProcess  # the process that wrote its logs
    labels: Mapping[str, str] = field(default_factory=dict)  # of its result
    # candidates for its name
    naming: Naming = field(
        default_factory=lambda: Naming("", 0, (), "", among_others=False, settings=None)
    )
    splits_otherwise: bool = False  # whether its path can be split into other labels
    step: int = 0  # number of the step that it shares with other clients; 0 for none
    client: int = 0  # number among the results of its host at the same time; 0 for the only one
    beside: int = 0  # number of other results at the same time
    leader: Draft | None = None  # first of the results at the same time with its workload
    read_as: str = ""  # version of fio assumed for logs without a result; empty otherwise

    @property
    def sections(self) -> list[tuple[JobResult, int]]:
        """First entry of each section, with the number of its jobs."""
        return sections_of(self.part.jobs)

    @property
    def started_utc_s(self) -> float | None:
        """Start of its I/O, or else of fio; None if neither is reported."""
        starts = [job.start_utc_s for job in self.part.jobs if job.start_utc_s]
        return min(starts) if starts else started_utc_s(self.output)


def draft_runs(files: Sequence[ResultFile]) -> list[Draft]:
    """Return a draft for each part of each result, with the process that may have written logs."""
    drafts: list[Draft] = []
    step = 0
    for file in files:
        for document, output in enumerate(file.results):
            parts = split_result(output)
            clients = {(part.hostname, part.port) for part in parts}
            processes: dict[tuple[str, int | None], FioProcess] = {}
            for part in parts:
                client = (part.hostname, part.port)
                reported = {
                    (job.name, job.groupid): reported_options(output, job) for job in part.jobs
                }
                if client not in processes:
                    processes[client] = _process_of(
                        file, output, parts, part, next(iter(reported.values()))
                    )
                draft = Draft(file, document, output, part, reported, processes[client])
                if len(clients) > 1:
                    draft.step = step + 1 + part.place
                drafts.append(draft)
            if len(clients) > 1:
                step += 1 + max(part.place for part in parts)
    return drafts


def _process_of(
    file: ResultFile,
    output: RunOutput,
    parts: Sequence[Part],
    part: Part,
    reported: ReportedOptions,
) -> FioProcess:
    of_client = [
        other for other in parts if (other.hostname, other.port) == (part.hostname, part.port)
    ]
    jobs = [job for other in of_client for job in other.jobs]
    paths = [
        log_paths({**output.shared_options(job), **job.options}, jobname=plain_name(job))
        for job in jobs
    ]
    return FioProcess(
        source=file.source,
        hostname=part.hostname,
        prefixes=frozenset(path.name for path in frozenset().union(*paths)),
        paths=frozenset().union(*paths),
        ranges=_log_ranges(of_client),
        runtime_s=max((done.runtime_s for job in jobs for done in job.directions), default=0.0),
        fio_version=output.tool_version,
        has_options=any(reported_options(output, job).is_whole for job in jobs),
        options=reported.options,
    )


def _log_ranges(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    """Return the number of the first log of each section of a process, and their count."""
    ranges, first = [], 1
    for part in parts:
        for _, count in sections_of(part.jobs):
            ranges.append((first, count))
            first += count
    return tuple(ranges)


def order_runs(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in the order in which they ran, or by path if that is not reported."""
    by_path = sorted(drafts, key=lambda draft: natural_order(draft.file.source.shown))
    starts = [draft.started_utc_s for draft in by_path]
    if any(start is None for start in starts):
        return by_path
    return sorted(by_path, key=lambda draft: (draft.started_utc_s or 0.0, draft.part.place))


def campaign_hosts(drafts: Sequence[Draft]) -> tuple[Host, ...]:
    """Return the hosts of a campaign in the order of its runs, with labels of all their results."""
    by_host: dict[str, dict[str, str]] = {}
    for draft in drafts:
        labels = by_host.setdefault(draft.naming.host, dict(draft.labels))
        by_host[draft.naming.host] = dict(labels.items() & draft.labels.items())
    first = {draft.naming.host: draft.labels for draft in reversed(drafts)}
    return tuple(
        Host(name=name, labels={key: value for key, value in first[name].items() if key in labels})
        for name, labels in by_host.items()
    )


def name_runs(
    drafts: Sequence[Draft],
    *,
    patterns: Sequence[LabelPattern],
    labels: Mapping[str, str],
    host: str,
) -> list[Draft]:
    """Set the labels, host, job and repeat of each draft.

    Args:
        patterns: of labels in paths; the first that matches a path applies to it.

    Returns:
        The drafts whose path matches none of the patterns.
    """
    unmatched, hosts, paths = [], [], []
    appended: Counter[str] = Counter()
    used: set[str] = set()
    for draft in drafts:
        source = draft.file.source
        given: dict[str, str] = {}
        path = (source.root, *source.inside.parts[:-1], source.stem)
        for pattern in patterns:
            read = pattern.read(source.inside, stem=source.stem)
            if read is not None:
                used.add(pattern.text)
                draft.splits_otherwise = pattern.splits_otherwise(read)
                given = read
                kept = (value for name, value in read.items() if name not in RESERVED)
                path = (*kept, *pattern.rest(source.inside, stem=source.stem))
                break
        else:
            unmatched.append(draft)
        draft.labels = {**labels, **{k: v for k, v in given.items() if k not in RESERVED}}
        hosts.append(draft.part.hostname or given.get(HOST, "") or host)
        paths.append((path, given))
    for pattern in patterns:
        if pattern.text not in used:
            source = unmatched[0].file.source if unmatched else drafts[0].file.source
            raise pattern_mismatch(pattern, "/".join((*source.inside.parts[:-1], source.stem)))
    clients = _client_numbers(drafts)
    names = assign_host_names(hosts)
    differing = _differing_labels(drafts, names)
    for draft, name, (path, given) in zip(drafts, names, paths, strict=True):
        short, number = split_repeat(path)
        settings = (draft.labels, _repeat_settings(draft))
        if number is None and len(draft.file.results) > 1:
            key = f"{draft.file.source.shown} {draft.part.hostname} {draft.part.port} {settings}"
            appended[key] += 1
            number = appended[key]
        distinct = {key: draft.labels[key] for key in differing[name] if key in draft.labels}
        draft.naming = Naming(
            host=name,
            client=draft.client or clients[id(draft)],
            path=short,
            jobname=_given_job(draft, given) or _jobname(draft),
            among_others=_has_siblings(draft),
            settings=settings,
            labels=distinct,
            folder="/".join(split_repeat(path[:-1])[0]),
            repeat=_repeat_number(given[REPEAT], draft) if REPEAT in given else number,
            source=draft.file.source.shown,
            is_job_given=JOB in given,
            is_repeat_given=REPEAT in given,
            variant=plain("-".join(distinct.values())) if distinct and JOB in given else "",
        )
    for draft in drafts:
        if draft.leader is not None and draft.leader is not draft:
            shown = draft.naming.source
            draft.naming = replace(draft.leader.naming, client=draft.client, source=shown)
    assign_job_names([draft.naming for draft in drafts])
    return unmatched


def _given_job(draft: Draft, given: Mapping[str, str]) -> str:
    """Return the job that a pattern names; of a file with several, with fio's jobname."""
    if JOB in given and _has_siblings(draft):
        return f"{given[JOB]}-{_jobname(draft)}"
    return given.get(JOB, "")


def _differing_labels(
    drafts: Sequence[Draft], hosts: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return for each host the labels in which its results differ."""
    by_host: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for draft, host in zip(drafts, hosts, strict=True):
        by_host[host].append(draft.labels)
    return {
        host: tuple(
            name
            for name in dict.fromkeys(name for labels in sets for name in labels)
            if len({labels.get(name) for labels in sets}) > 1
        )
        for host, sets in by_host.items()
    }


def _client_numbers(drafts: Sequence[Draft]) -> dict[int, int]:
    """Return the number of each draft's client among those of the same name in its result."""
    ports: dict[tuple[str, int, str], list[int | None]] = defaultdict(list)
    for draft in drafts:
        key = draft.file.source.shown, draft.document, draft.part.hostname
        if draft.part.port not in ports[key]:
            ports[key].append(draft.part.port)
    numbers = {}
    for draft in drafts:
        mine = ports[draft.file.source.shown, draft.document, draft.part.hostname]
        numbers[id(draft)] = mine.index(draft.part.port) + 1 if len(mine) > 1 else 0
    return numbers


def _jobname(draft: Draft) -> str:
    names: dict[str, None] = {}
    for job, _ in draft.sections:
        merged = draft.reported[job.name, job.groupid].merged
        names |= dict.fromkeys(merged or (plain_name(job),))
    return "_".join(names) or "job"


def _has_siblings(draft: Draft) -> bool:
    client = (draft.part.hostname, draft.part.port)
    parts = [part for part in split_result(draft.output) if (part.hostname, part.port) == client]
    names = {tuple(job.name for job in output.jobs) for output in draft.file.results}
    return len(parts) > 1 or len(names) > 1


def _repeat_number(text: str, draft: Draft) -> int:
    """Return the number of a repeat, of which a letter may stand at the end: a is the first."""
    digits, letter = re.search(r"\d{1,9}", text), re.search(r"(?<![a-z])[a-z]$", text.lower())
    if digits is None and letter is not None:
        return ord(letter.group()) - ord("a") + 1
    if digits is None:
        given = f"--labels: {{repeat}} is {text!r} in {draft.file.source.shown}"
        hint = "name this folder with another label, or {job}"
        raise InputError(f"{given}, which has no number", hint=hint)
    return int(digits.group())


def _repeat_settings(draft: Draft) -> object:
    """Return what makes results comparable as repeats: jobs, and all options but those of logs."""
    return [
        (
            plain_name(job),
            tuple(direction.direction for direction in job.directions),
            {
                name: value
                for name, value in draft.reported[job.name, job.groupid].options.items()
                if not _LOG_OPTIONS.fullmatch(name)
            },
        )
        for job, _ in draft.sections
    ]
