"""Profiles shown in the documentation are profiles."""

from __future__ import annotations

import re
from pathlib import Path

from tests.command_line import call

PROFILE = re.compile(r"```yaml\n(name:.*?)```", re.DOTALL)


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
