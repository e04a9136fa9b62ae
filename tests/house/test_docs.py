"""Profiles shown in the documentation are profiles, and tests of promises exist."""

import re
from pathlib import Path

import pytest

from tests.command_line import call

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
    """SECURITY.md names files below tests/, and functions in them or anywhere."""
    page = (root / "SECURITY.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`(tests/[\w/.-]+)`", page))
    functions = set(re.findall(r"`(test_\w+)`", page))
    assert paths
    assert {path for path in paths if not (root / path).exists()} == set()
    source = "".join(path.read_text("utf-8") for path in (root / "tests").rglob("*.py"))
    assert {name for name in functions if f"def {name}(" not in source} == set()
