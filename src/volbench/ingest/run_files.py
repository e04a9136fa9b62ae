"""Readers of the raw files in a run's folder: output, facts, status, standard error.

An imported result may hold many runs, with a copy in the folder of each: it is parsed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from volbench.errors import OutputError
from volbench.fio.dd import parse_dd
from volbench.fio.results.embedded_results import find_results
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.result_parts import select_part
from volbench.model.campaign.planned_run import Imported, Run, RunState
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.compressed_text import decode, unpack
from volbench.store.layout import RunFolder
from volbench.store.small_files import (
    damaged_file,
    first_error,
    parse_json,
    read_bytes,
    read_model,
    read_text,
)

STATUS_FORMAT = 1  # Version of status.json


def _instant(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("must be a time with its time zone")
    return text


_Instant = Annotated[str, AfterValidator(_instant)]
_Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e12, le=1e12)]


class _Start(BaseModel):
    """Synchronised start of a run; in seconds."""

    start_s: _Finite | None = None
    late_s: _Finite | None = None
    clock_offset_s: _Finite | None = None
    clock_bound_s: _Finite | None = None


class _Status(BaseModel):
    """What is read of status.json; other keys are for people."""

    model_config = ConfigDict(strict=True, extra="allow")

    format: int = STATUS_FORMAT
    state: Annotated[RunState | None, Field(strict=False)] = None
    reason: str = ""
    started_utc: _Instant | None = None
    ended_utc: _Instant | None = None
    elapsed_s: Annotated[_Finite, Field(ge=0)] = 0.0
    tool_version: str = ""
    start: _Start | None = None
    files: dict[str, str] = Field(default_factory=dict)


def read_run_output(run: Run, folder: RunFolder) -> RunOutput:
    """Read the result of a run."""
    if run.imported is not None:
        return read_imported(run.imported, folder)
    if run.tool is Tool.DD:
        status = read_status(folder)
        return parse_dd(
            read_text(folder.dd_output),
            run=run,
            elapsed_s=float(str(status.get("elapsed_s", "nan"))),
            version=str(status.get("tool_version", "dd")),
        )
    return parse_output(read_text(folder.fio_output), path=str(folder.fio_output))


def read_stderr(run: Run, folder: RunFolder) -> str:
    """Return the tool's standard error."""
    return read_text(folder.dd_output if run.tool is Tool.DD else folder.stderr)


def read_facts(folder: RunFolder) -> VolumeFacts | None:
    """Return the facts of the volume right before a run; None if not recorded."""
    return read_model(folder.facts, VolumeFacts)


def read_status(folder: RunFolder) -> Mapping[str, object]:
    """Return status.json of a run, empty when it has not ended yet."""
    content = read_bytes(folder.status)
    if not content and not folder.status.exists():
        return {}
    try:
        status = parse_json(content)
        checked = _Status.model_validate(status)
    except ValidationError as error:
        raise damaged_file(folder.status, first_error(error)) from error
    except ValueError as error:
        raise damaged_file(folder.status, error) from error
    if checked.format > STATUS_FORMAT:
        raise OutputError(
            f"{folder.status} has format {checked.format}; this volbench reads up to"
            f" {STATUS_FORMAT}",
            hint="update volbench",
            path=str(folder.status),
        )
    return status if isinstance(status, dict) else {}


def read_imported(imported: Imported, folder: RunFolder) -> RunOutput:
    """Return the result of an imported run; of logs without a result, only their version."""
    if imported.read_as:
        return RunOutput(imported.read_as, ())
    source = imported.files[0]
    path = folder.path / source.name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error}", hint="restore a copy") from error
    if sha256(content).hexdigest() != source.sha256:
        raise OutputError(
            f"{path} is not as it was imported",
            hint="restore a copy, or import it anew",
            path=str(path),
        )
    results = _KNOWN.get().get(source.sha256) or _parsed(
        _Content(content, source.sha256, source.name)
    )
    if imported.document >= len(results):
        raise OutputError(f"{path} lacks a result that it had", hint="import it anew")
    return select_part(results[imported.document], imported)


_KNOWN: ContextVar[Mapping[str, tuple[RunOutput, ...]]] = ContextVar(
    "known",
    default=MappingProxyType({}),
)


@contextmanager
def parsed_results(known: dict[str, tuple[RunOutput, ...]]) -> Iterator[None]:
    """Read no result again that an import has just parsed.

    Args:
        known: SHA-256 of a file to the results in it; emptied by `forget_parsed`.
    """
    token = _KNOWN.set(known)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def forget_parsed() -> None:
    """Let go the results that an import has parsed, once the runs are read: 60 KB each."""
    if isinstance(known := _KNOWN.get(), dict):
        known.clear()


class _Content:
    """Bytes that compare by their digest, so that each content is parsed once."""

    def __init__(self, content: bytes, digest: str, name: str) -> None:
        self.content = content
        self.name = name
        self._digest = digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and other._digest == self._digest


@lru_cache(maxsize=2)
def _parsed(content: _Content) -> tuple[RunOutput, ...]:
    return find_results(decode(unpack(content.content)), path=content.name).results
