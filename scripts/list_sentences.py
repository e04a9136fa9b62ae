#!/usr/bin/env python3
"""Print every sentence that a user can see: kind, file, line and text, for reading aloud.

Use it as: .venv/bin/python scripts/list_sentences.py [KIND ...], with kinds such as message, hint,
help, column and finding. Placeholders are printed as {}.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).resolve().parent.parent / "src" / "volbench"
KINDS = {
    "Column": "column",
    "Finding": "finding",
    "Rule": "finding",
    "argument": "help",
    "echo": "message",
    "group": "help",
    "option": "help",
    "secho": "message",
}
"""Callee to the kind of its texts; those of error classes are messages."""
NOT_SEEN = {"compile", "fullmatch", "match", "search", "sub", "execute"}
"""Callees whose texts are patterns or queries."""
MIN_WORDS = 3


class Sentence(NamedTuple):
    """A text that a user can see."""

    path: Path
    line: int
    kind: str
    text: str


def _text(node: ast.AST) -> str:
    """Return the text of a literal with {} for its placeholders; "" for any other node."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) or "{}" for value in node.values)
    return ""


def _kind(call: ast.Call, kind: str) -> str:
    name = str(getattr(call.func, "attr", getattr(call.func, "id", "")))
    if name.lower().endswith(("error", "refusal")):
        return "message"
    return "" if name in NOT_SEEN else KINDS.get(name, kind)


def _is_command(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(
        "command" in ast.unparse(each) or "group" in ast.unparse(each) for each in decorators
    )


def _texts(node: ast.AST, kind: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of each literal below a node."""
    if text := _text(node):
        if kind and len(text.split()) >= MIN_WORDS:
            yield getattr(node, "lineno", 0), kind, " ".join(text.split())
        return
    if isinstance(node, ast.Call):
        kind = _kind(node, kind)
    body = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (
        documentation := ast.get_docstring(node)
    ):
        body.remove(node.body[0])
        if _is_command(node):
            yield getattr(node, "lineno", 1), "help", " ".join(documentation.split())
    for child in body:
        is_hint = isinstance(child, ast.keyword) and child.arg in {"hint", "help", "caption"}
        yield from _texts(child, str(child.arg) if is_hint else kind)  # type: ignore[attr-defined]  # only keywords


def sentences(sources: Path = SOURCES) -> Iterator[Sentence]:
    """Yield every sentence of the package, by file and line."""
    for path in sorted(sources.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, kind, text in _texts(tree, "text"):
            yield Sentence(path.relative_to(sources), line, kind, text)


if __name__ == "__main__":
    kinds = {*sys.argv[1:]}
    for each in sentences():
        if not kinds or each.kind in kinds:
            print(f"{each.kind:8} {each.path}:{each.line}: {each.text}")  # noqa: T201 - its purpose
