"""Every module can be read: it says what it is for, is short, and explains its exceptions."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

MAX_LINES = 700
SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore)")
EXPLAINED = (
    re.compile(r"# noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* - \S.{3,}"),
    re.compile(r"# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]  # \S.{3,}"),
)
FORBIDDEN = re.compile(
    r"/(?:work|home)/\w"  # a path of somebody's machine
    r"|\b(?:pypi|pythonhosted|debian|ubuntu)\.(?:org|com|net)\b",  # a package host
    re.IGNORECASE,
)
OWN = ("src", "tests", "scripts", "docs", "profiles", "benchmarks", ".ci")


def unexplained(text: str) -> list[str]:
    """Return the comments that silence a checker without a reason in their line."""
    if not SILENCED.search(text):
        return []  # which spares taking most modules apart
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    return [c for c in comments if SILENCED.match(c) and not any(e.match(c) for e in EXPLAINED)]


def python_files(root: Path) -> list[Path]:
    """Return every Python file of the project."""
    return sorted([*(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py")])


def own_texts(root: Path) -> list[Path]:
    """Return every text the project wrote itself; raw output under tests/cases is fio's."""
    files = [p for name in OWN for p in (root / name).rglob("*") if p.is_file()]
    files += [p for p in root.iterdir() if p.is_file() and p.name not in {"LICENSE", ".git"}]
    cases = root / "tests" / "cases"
    return [p for p in files if "__pycache__" not in p.parts and not p.is_relative_to(cases)]


def test_every_module_has_a_docstring(sources: dict[str, ast.Module]) -> None:
    """A module opens by saying what it is for."""
    assert [name for name, tree in sources.items() if not ast.get_docstring(tree)] == []


def test_modules_are_short(root: Path) -> None:
    """No module is longer than fits a sitting."""
    lengths = {str(p): len(p.read_text(encoding="utf-8").splitlines()) for p in python_files(root)}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


@pytest.mark.slow
def test_silenced_checks_are_explained(root: Path) -> None:
    """A ``noqa`` or ``type: ignore`` gives its reason in its own line."""
    found = {
        str(path): unexplained(path.read_text(encoding="utf-8")) for path in python_files(root)
    }
    assert {path: comments for path, comments in found.items() if comments} == {}


@pytest.mark.parametrize(
    ("comment", "fine"),
    [
        ("# noqa", False),
        ("# noqa: S603", False),
        ("# noqa: S603 - the command was built above", True),
        ("# type: ignore", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore[arg-type]  # the stub is wrong", True),
    ],
)
def test_an_unexplained_silence_is_found(comment: str, *, fine: bool) -> None:
    """The checker tells a bare comment from one with a reason."""
    assert (unexplained(f"x = 1  {comment}\n") == []) is fine


@pytest.mark.slow
def test_no_forbidden_words(root: Path) -> None:
    """No text names a path of one machine or a package host."""
    found = []
    for path in own_texts(root):
        if path == Path(__file__):
            continue
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        ):
            if match := FORBIDDEN.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {match.group()}")
    assert found == []


@pytest.mark.parametrize(
    "text", ["see /work/somewhere", "/home/someone/x", "from pypi.org", "http://deb.debian.org/"]
)
def test_a_forbidden_word_is_found(text: str) -> None:
    """The pattern finds what it is there to find."""
    assert FORBIDDEN.search(text)


def test_docstring_check_sees_a_bare_module() -> None:
    """A module without a docstring would be named."""
    assert ast.get_docstring(ast.parse("x = 1")) is None
