"""The files of an imported Run in, what it measured out.

A result may hold many Runs, and its file lies in the folder of each: it is parsed once.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

from volbench.errors import OutputError
from volbench.fio.foreign import find_results
from volbench.fio.parts import select_part
from volbench.model.result import RunOutput
from volbench.model.run import Imported
from volbench.store.layout import RunFolder
from volbench.store.packed import decode, unpack


def read_imported(imported: Imported, folder: RunFolder) -> RunOutput:
    """Return what one imported Run measured; of logs without a result, their form alone.

    Raises:
        OutputError: the file is missing, was changed, or can't be read.
    """
    if imported.read_as:
        return RunOutput(imported.read_as, ())
    told = imported.files[0]
    path = folder.path / told.name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path} can't be read: {error}", hint="restore a copy") from error
    if sha256(content).hexdigest() != told.sha256:
        raise OutputError(
            f"{path} is not as it was imported",
            hint="restore a copy, or import it anew",
            context={"path": str(path)},
        )
    results = _results(content, told.sha256)
    if imported.document >= len(results):
        raise OutputError(f"{path} lacks a result that it had", hint="import it anew")
    return select_part(results[imported.document], imported)


class _Content:
    """Bytes that are told apart by their digest, so that each are parsed once."""

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
