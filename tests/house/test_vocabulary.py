"""Names, sentences and their order: the project uses the field's terms."""

import ast
import re
from collections import Counter
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


CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*$")
MAX_DEFINITIONS = 3
"""Private functions of one name: with more, the name says too little."""
PRONOUN = re.compile(r"(?:Return |Yield )?(?:those|these|it|so many)\b|That\b", re.IGNORECASE)
"""First words of a docstring that only its author can read: repeat the noun."""
Sources = dict[str, ast.Module]


def late_constants(tree: ast.Module) -> Iterator[str]:
    """Yield constants behind the first function that no definition of the module needs."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        return
    first = tree.body.index(functions[0])
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body[first:]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - {name}
                if used & defined:
                    defined.add(name)
                elif CONSTANT.match(name):
                    yield name


def test_constants_come_first(sources: Sources) -> None:
    """A constant stands before the first function of its module."""
    late = {module: list(late_constants(tree)) for module, tree in sources.items()}
    assert {module: names for module, names in late.items() if names} == {}


def test_private_names_tell_functions_apart(sources: Sources) -> None:
    """No private function has a name that many others have."""
    names = Counter(
        node.name
        for tree in sources.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and re.match(r"_[a-z]", node.name)
    )
    assert {name: count for name, count in names.items() if count > MAX_DEFINITIONS} == {}


def test_docstrings_repeat_the_noun(sources: Sources) -> None:
    """No docstring begins with a pronoun that stands for something named elsewhere."""
    vague = []
    for module, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                if PRONOUN.match(text):
                    vague.append(f"{module}.{getattr(node, 'name', '')}: {text.splitlines()[0]}")
    assert vague == []


def is_text(node: ast.expr) -> bool:
    """Return whether an expression is a text or a list."""
    return isinstance(node, ast.JoinedStr | ast.List) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_condition(node: ast.expr) -> bool:
    """Return whether an expression is a comparison, or a call that gives a boolean."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in {"bool", "any", "all"}
    return isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)


def test_a_condition_is_not_a_factor(sources: Sources) -> None:
    """A text that depends on a condition is written with ``if``, not as ``text * condition``."""
    found = []
    for module, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                for text, factor in ((node.left, node.right), (node.right, node.left)):
                    if is_text(text) and is_condition(factor):
                        found.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
