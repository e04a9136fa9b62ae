"""Every module and page can be read: what it is for, its length, and no mark of a conflict."""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

from tests.command_line import call
from tests.house.project import run

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


MARKERS = ("<" * 7 + " ", ">" * 7 + " ")


def marked_lines(root: Path) -> str:
    """Return the lines of tracked text files that begin with a conflict marker."""
    patterns = [part for marker in MARKERS for part in ("-e", f"^{marker}")]
    done = run("git", "grep", "-nI", *patterns, cwd=root)
    assert done.returncode in {0, 1}, done.stderr  # 1: no line was found
    return done.stdout


def test_no_file_holds_a_conflict_marker(root: Path) -> None:
    """A merge is finished before it is committed."""
    assert marked_lines(root) == ""


@pytest.mark.parametrize("marker", MARKERS)
def test_a_conflict_marker_is_found(tmp_path: Path, marker: str) -> None:
    """Both ends of a conflict are found at the beginning of a line, and nowhere else."""
    (tmp_path / "page.md").write_text(f"a\n{marker}main\nsee {marker}b\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "page.md"]):
        run("git", *command, cwd=tmp_path, check=True)
    assert marked_lines(tmp_path) == f"page.md:2:{marker}main\n"


PROFILE = re.compile(r"```yaml\n(name:.*?)```", re.DOTALL)


@pytest.mark.slow
def test_every_documented_profile_is_valid(root: Path, tmp_path: Path) -> None:
    """Each YAML block that begins with a name passes ``volbench profile check``."""
    files = []
    for page in sorted((root / "docs").rglob("*.md")):
        for number, text in enumerate(PROFILE.findall(page.read_text(encoding="utf-8")), 1):
            files.append(tmp_path / f"{page.stem}-{number}.yaml")
            files[-1].write_text(text, encoding="utf-8")
    assert len(files) > 4
    done = call("profile", "check", *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_test_of_a_promise_exists(root: Path) -> None:
    """SECURITY.md and the rules of safety name files below tests/, and functions anywhere."""
    safety = (root / "docs" / "explanation" / "safety.md").read_text(encoding="utf-8")
    page = (root / "SECURITY.md").read_text(encoding="utf-8") + safety
    rules = safety.partition("| situation")[2].partition("\n\n")[0].splitlines()[2:]
    assert [rule for rule in rules if "`test_" not in rule] == []
    paths = set(re.findall(r"`(tests/[\w/.-]+)`", page))
    functions = set(re.findall(r"`(test_\w+)`", page))
    assert paths
    assert {path for path in paths if not (root / path).exists()} == set()
    source = "".join(path.read_text("utf-8") for path in (root / "tests").rglob("*.py"))
    assert {name for name in functions if f"def {name}(" not in source} == set()


AGENT = "volbench.execute.agent"


def test_the_agent_runs_on_python_3_6(root: Path) -> None:
    """No module of the agent uses syntax or a function that is newer than Python 3.6."""
    folder = root / "src" / "volbench" / "execute" / "agent"
    vermin = Path(sys.executable).with_name("vermin")
    done = run(vermin, "--target=3.6-", "--violations", folder)
    assert list(folder.glob("*.py"))
    assert done.returncode == 0, done.stdout


def test_the_agent_imports_the_standard_library_only(sources: dict[str, ast.Module]) -> None:
    """The program that is sent to a host finds every module that it imports there."""
    outside = []
    for name, tree in sources.items():
        if not name.startswith(f"{AGENT}."):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                outside += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(AGENT):
                outside.append(str(node.module))
    assert {each.partition(".")[0] for each in outside} - sys.stdlib_module_names == set()
