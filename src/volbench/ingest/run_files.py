"""Readers of the raw files in a run's folder: output, facts, status, standard error.

An imported result may hold many runs, with a copy in the folder of each: it is parsed once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from volbench.errors import OutputError
from volbench.fio.dd import parse_dd
from volbench.fio.results.embedded_results import find_results
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.result_parts import select_part
from volbench.model.campaign.planned_run import Imported, Run
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.model.results.result import RunOutput
from volbench.store.compressed_text import decode, unpack
from volbench.store.layout import RunFolder
from volbench.store.small_files import read_model, read_text

STATUS_FORMAT = 1
"""Version of status.json."""


def read_run_output(run: Run, folder: RunFolder) -> RunOutput:
    """Read the result of a run.

    Raises:
        OutputError: the raw file is missing or malformed.
    """
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
    """Return the facts of the volume right before a run; None if not recorded.

    Raises:
        OutputError: facts.json is damaged.
    """
    return read_model(folder.facts, VolumeFacts)


def read_status(folder: RunFolder) -> Mapping[str, object]:
    """Return status.json of a run, empty when it has not ended yet.

    Raises:
        OutputError: it is damaged.
    """
    text = read_text(folder.status)
    if not text:
        return {}
    try:
        content = json.loads(text)
    except ValueError as error:
        raise OutputError(f"{folder.status} is damaged: {error}", hint="restore a copy") from error
    return content if isinstance(content, dict) else {}


def read_imported(imported: Imported, folder: RunFolder) -> RunOutput:
    """Return the result of an imported run; of logs without a result, only their version.

    Raises:
        OutputError: the file is missing, was changed, or cannot be read.
    """
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
            context={"path": str(path)},
        )
    results = _results(content, source.sha256)
    if imported.document >= len(results):
        raise OutputError(f"{path} lacks a result that it had", hint="import it anew")
    return select_part(results[imported.document], imported)


class _Content:
    """Bytes that compare by their digest, so that each content is parsed once."""

    def __init__(self, content: bytes, digest: str) -> None:
        self.content = content
        self._digest = digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and other._digest == self._digest


def _results(content: bytes, digest: str) -> tuple[RunOutput, ...]:
    return _parsed(_Content(content, digest))


@lru_cache(maxsize=2)
def _parsed(content: _Content) -> tuple[RunOutput, ...]:
    return find_results(decode(unpack(content.content))).results
