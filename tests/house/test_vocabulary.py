"""Retired words stay out of code and of what users read: the project uses the field's terms."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from runpy import run_path

import pytest

from volbench.model.frames.columns import FRAMES

IDENTIFIER_PARTS = {
    "alike": "comparability",
    "aimed": "profile_overrides",
    "asked": "what is requested, such as workload_spec",
    "athand": "local",
    "beneath": "backing",
    "bought": "billing",
    "clones": "numjobs",
    "complaints": "validation_errors",
    "crowd": "concurrent_load",
    "doubles": "duplicates",
    "doubts": "findings",
    "everyday": "default_charts",
    "lack": "missing",
    "ledger": "run_states",
    "meeting": "barrier",
    "onclock": "align_clocks",
    "pulse": "live_latency",
    "sidebyside": "multi_campaign",
    "stormwords": "storm_captions",
    "surroundings": "run_context",
    "tainted": "exclusions",
    "told": "what the thing is",
    "traced": "plotted_points",
    "typeset": "markup",
    "workplace": "run_directory",
}
"""Parts of identifiers that are retired, with what takes their place."""

IDENTIFIERS = {
    "one": "what the thing is",
    "ones": "what the things are",
    "bound_by": "bottleneck",
    "bound_at": "bottleneck_level",
    "left_bytes": "dirty_remaining_bytes",
    "reached_percent": "device_share_percent",
}
"""Whole identifiers that are retired."""

PHRASES = {
    r"\b(?:two|several|many|\d+) clones\b|\bclones of (?:a|the) job\b": "numjobs",
    r"\bnot told\b": "n/a, or not reported by",
    r"\bnobody (?:told|tells|looked|knows|asked)\b": "not reported, not known",
    r"\btells? (?:no|nothing|how|what|whether|which|why|that)\b": "reports, shows, says",
    r"\bsomebody else\b": "another client, another process",
    r"\bis none of\b": "must be one of",
    r"\bis no whole number\b": "must be an integer",
    r"\bbound by\b": "limited by; bottleneck",
    r"\bputs? (?:its|their|the) numbers in doubt\b": "data-quality warnings",
    r"\bcan't be (?:trusted|had)\b": "is unreliable; cannot be opened",
    r"\bthe way out\b": "hint",
    r"\b(?:enters?|goes in|go in),? [^.:]{1,120}\b(?:leaves?|comes? out)\b": "a noun phrase",
    r"\bof theirs\b|\bof fio's own\b": "its, fio's",
    r"\bmore that only a size bounds\b": "limited by size, not time",
    r"\bwould have seen\b|\bwould ten times have been\b": "minimum detectable",
    r"\ball verdicts hold together\b": "family-wise confidence",
    r"\blet nobody in\b": "authentication failed",
    r"\bbegin without a question\b": "skip the confirmation",
    r"\bmade again\b|\bmade anew\b": "recreated, rebuilt, re-established",
    r"\buris?\b": "URI",
}
"""What users and contributors do not read any more, with what to write; case is ignored."""

SENTENCE_CASE = re.compile(r"(?<=[a-z,;] )(?:Runs?|Findings?)\b(?![`(])")
"""Run and finding in the middle of a sentence; the capital is for the class."""

URI_NAMES = re.compile(r"--?uris?\b|\buri=|`uri`|\"uri\"|'uri'|uri:")
"""Where uri is fio's option, not prose."""

DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md", "profiles/*.yaml")


def public_names(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of a module and its classes, which readers look things up by."""
    yield 1, path.stem
    yield from (
        (node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )


def retired_names(names: Iterable[tuple[int, str]]) -> list[str]:
    """Return a line for each retired word in a name, with what to write."""
    breaches = []
    for line, name in names:
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_")
        instead = IDENTIFIERS.get(words) or next(
            (IDENTIFIER_PARTS[part] for part in words.split("_") if part in IDENTIFIER_PARTS), None
        )
        if instead:
            breaches.append(f"{line}: {name}: {instead}")
    return breaches


def retired_phrases(text: str) -> list[str]:
    """Return each retired phrase in a text, with what to write."""
    prose = URI_NAMES.sub(" ", re.sub(r"\s+", " ", text)).replace("URI", " ")
    found = [
        f"{match[0]!r}: {instead}"
        for pattern, instead in PHRASES.items()
        for match in re.finditer(pattern, prose, re.IGNORECASE)
    ]
    return found + [f"{match[0]!r}: lower case" for match in SENTENCE_CASE.finditer(prose)]


def prose_of(path: Path) -> str:
    """Return the prose of a document, without its code blocks and code words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        return text
    return re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)


@pytest.mark.slow
def test_sentences_use_standard_terms(root: Path) -> None:
    """No sentence that a user can see has a retired phrase."""
    listed = run_path(str(root / "scripts" / "list_sentences.py"))["sentences"]()
    breaches = [
        f"{each.path}:{each.line}: {phrase}"
        for each in listed
        for phrase in retired_phrases(each.text)
    ]
    assert breaches == []


@pytest.mark.slow
def test_names_use_standard_terms(sources: dict[str, ast.Module]) -> None:
    """No module, class or column has a retired word in its name."""
    breaches = [
        f"{name}:{line}"
        for name, tree in sources.items()
        for line in retired_names(public_names(Path(name.rpartition(".")[2]), tree))
    ]
    columns = [(1, column.name) for frame in FRAMES.values() for column in frame]
    assert len(columns) > 100
    assert breaches + retired_names(columns) == []


def test_documents_use_standard_terms(root: Path) -> None:
    """No page of the documentation and no bundled profile uses a retired phrase."""
    pages = sorted(page for pattern in DOCUMENTS for page in root.glob(pattern))
    assert pages
    found = {str(page.relative_to(root)): retired_phrases(prose_of(page)) for page in pages}
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize("name", ["told", "Meeting", "one", "bound_by"])
def test_a_retired_name_is_found(name: str) -> None:
    """Names are taken apart at underscores and capitals."""
    assert retired_names([(1, name)])


@pytest.mark.parametrize(
    "text",
    [
        "a run enters, a verdict leaves",
        "this is none of read, write",
        "two clones",
        "Somebody else measured this",
        "an nbd uri",
    ],
)
def test_a_retired_phrase_is_found(text: str) -> None:
    """Phrases are found whatever their case."""
    assert retired_phrases(text)


def test_standard_terms_pass() -> None:
    """Plain English and fio's own option names are left alone."""
    assert not retired_phrases("Run two jobs in parallel; `--uri` and uri=nbd://x name the export.")
    assert not retired_names([(1, "run_states"), (1, "Barrier"), (1, "numjobs")])
