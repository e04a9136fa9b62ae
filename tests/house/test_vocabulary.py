"""Retired words stay out of code and of what users read: the project uses the field's terms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    "outlast": "burst_runtime",
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
    r"\bclones?\b": "numjobs, or jobs in parallel",
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

APART = " .:. "
"""Between texts that are searched at once: no phrase goes on behind it."""

DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md", "profiles/*.yaml")


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that a module names itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def retired_identifiers(tree: ast.AST) -> list[str]:
    """Return a line for each retired identifier of a module."""
    found = []
    for line, name in identifiers(tree):
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_")
        instead = IDENTIFIERS.get(words) or next(
            (IDENTIFIER_PARTS[part] for part in words.split("_") if part in IDENTIFIER_PARTS), None
        )
        if instead:
            found.append(f"{line}: {name}: {instead}")
    return found


def retired_phrases(text: str) -> list[str]:
    """Return each retired phrase in a text, with what to write."""
    prose = URI_NAMES.sub(" ", re.sub(r"\s+", " ", text)).replace("URI", " ")
    found = [
        f"{match[0]!r}: {instead}"
        for pattern, instead in PHRASES.items()
        for match in re.finditer(pattern, prose, re.IGNORECASE)
    ]
    return found + [f"{match[0]!r}: lower case" for match in SENTENCE_CASE.finditer(prose)]


def module_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every string with a blank in it: messages, help, docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "x" for v in node.values)
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def breaches_in_module(path: Path) -> list[str]:
    """Return every retired word of a Python module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = list(module_texts(tree))
    if not retired_phrases(APART.join(text for _, text in texts)):
        return retired_identifiers(tree)
    phrases = [f"{line}: {found}" for line, text in texts for found in retired_phrases(text)]
    return retired_identifiers(tree) + phrases


def prose_of(path: Path) -> str:
    """Return the prose of a document, without its code blocks and code words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        return text
    return re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)


def test_modules_use_standard_terms(root: Path) -> None:
    """No module of the package or its tests names or says a thing by a retired word."""
    modules = sorted((root / "src").rglob("*.py")) + sorted((root / "tests").rglob("*.py"))
    modules.remove(root / "tests" / "house" / "test_vocabulary.py")  # it has to name them
    found = {str(path.relative_to(root)): breaches_in_module(path) for path in modules}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_documents_use_standard_terms(root: Path) -> None:
    """No page of the documentation and no bundled profile uses a retired phrase."""
    pages = sorted(page for pattern in DOCUMENTS for page in root.glob(pattern))
    assert pages
    found = {str(page.relative_to(root)): retired_phrases(prose_of(page)) for page in pages}
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize("source", ["told = 1", "class Meeting: ...", "def f(one): ..."])
def test_a_retired_identifier_is_found(source: str) -> None:
    """Variables, classes and arguments are looked at."""
    assert retired_identifiers(ast.parse(source))


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
    assert not retired_identifiers(ast.parse("run_states = {}\ndef barrier(numjobs): ..."))


def test_a_module_is_searched_text_by_text(tmp_path: Path) -> None:
    """A phrase is found in its line, and not across two texts."""
    path = tmp_path / "module.py"
    path.write_text('A = "it is fine"\nB = "two clones"\nC = "this is none"\nD = "of a kind"\n')
    assert breaches_in_module(path) == ["2: 'clones': numjobs, or jobs in parallel"]
