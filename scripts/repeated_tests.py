#!/usr/bin/env python3
"""List the tests that passed only when they were repeated, each with its first failure.

Use it as: scripts/repeated_tests.py FOLDER, which holds JUnit files named PART.TRY.xml. Exit status
1: there are more than MAX_REPEATED, which hides races rather than the noise of a busy machine.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

MAX_REPEATED = 3
MAX_LINES = 40
"""Last lines of a failure that are shown."""


def failures(path: Path) -> dict[str, str]:
    """Return the failure of each test in a JUnit file; empty for one that passed."""
    cases = ET.parse(path).iter("testcase")  # noqa: S314 - same
    texts = {}
    for case in cases:
        problems = [each for each in case if each.tag in {"failure", "error"}]
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        texts[name] = "\n".join(each.text or each.get("message", "") for each in problems)
    return texts


def passed_when_repeated(folder: Path) -> dict[str, str]:
    """Return the first failure of each test that failed and passed later."""
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for path in sorted(folder.glob("*.*.xml"), key=lambda each: each.suffixes):
        texts = failures(path)
        last |= texts
        first = {name: text for name, text in texts.items() if text} | first
    return {name: text for name, text in first.items() if not last[name]}


def main(folder: str) -> int:
    """Print the tests, and return the exit status."""
    repeated = passed_when_repeated(Path(folder))
    for name, text in repeated.items():
        shown = "\n".join(f"    {line}" for line in text.splitlines()[-MAX_LINES:])
        print(f"passed only when repeated: {name}; its first failure:\n{shown}")  # noqa: T201 - its purpose
    if len(repeated) > MAX_REPEATED:
        print(f"{len(repeated)} tests passed only when repeated; at most {MAX_REPEATED} may")  # noqa: T201 - same
    return int(len(repeated) > MAX_REPEATED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
