"""Labels of results, taken from the names of their folders by a pattern.

``{provider}/{volume_type}/{host}`` matches ``azure/P15/vm1/fio.json`` and ``azure/P15/vm1.json``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from volbench.errors import InputError

HOST, REPEAT, JOB = "host", "repeat", "job"
# Placeholders for the host, the number of the repeat and the name of the job; not labels
RESERVED = frozenset({HOST, REPEAT, JOB})

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.IGNORECASE)


@dataclass(frozen=True)
class LabelPattern:
    """Parsed pattern."""

    text: str  # as written by the user
    # a regular expression for each folder, or for the file's name without its endings
    parts: tuple[re.Pattern[str], ...]

    def read(self, inside: PurePosixPath, *, stem: str) -> dict[str, str] | None:
        """Return the labels of a path; None if the pattern does not match it.

        Args:
            inside: path of the file relative to the imported folder.
            stem: its name without endings.
        """
        own = (*inside.parts[:-1], stem)
        if len(own) < len(self.parts):
            return None
        labels: dict[str, str] = {}
        for part, name in zip(self.parts, own, strict=False):
            match = part.fullmatch(name)
            if match is None:
                return None
            labels |= match.groupdict()
        return labels

    def rest(self, inside: PurePosixPath, *, stem: str) -> tuple[str, ...]:
        """Return the parts of a path beyond the pattern."""
        return (*inside.parts[:-1], stem)[len(self.parts) :]


def parse_pattern(text: str) -> LabelPattern:
    """Parse a pattern."""
    names = _PLACEHOLDER.findall(text)
    bare = _PLACEHOLDER.sub("", text)
    malformed = [name for name in names if not _NAME.fullmatch(name)]
    if malformed or not names or "{" in bare or "}" in bare or len({*names}) < len(names):
        raise InputError(
            f"--labels {text!r} is not a pattern: a {{name}} consists of letters, digits and _, and"
            " is used once",
            hint="write it like '{provider}/{volume_type}/{host}'; * matches any text",
        )
    return LabelPattern(text, tuple(_compiled(part) for part in text.strip("/").split("/")))


def _compiled(part: str) -> re.Pattern[str]:
    pieces = _PLACEHOLDER.split(part)
    text = ""
    for place, piece in enumerate(pieces):
        text += f"(?P<{piece}>.+?)" if place % 2 else re.escape(piece).replace(r"\*", ".*")
    return re.compile(text, re.DOTALL)


def parse_labels(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of ``--label KEY=VALUE``."""
    labels: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not value or not _NAME.fullmatch(name) or name in RESERVED | {*labels}:
            raise InputError(
                f"--label {text!r} is not a label", hint="write it like volume_type=P15, each once"
            )
        labels[name] = value
    return labels


def pattern_mismatch(pattern: LabelPattern, example: str) -> InputError:
    """Return the error for a pattern that matches no path at all."""
    folders = example.split("/")
    names = ("provider", "volume_type", "host", "job")
    count = min(len(folders), len(names))
    chosen = names[:count] if count > 1 else ("host",)
    words = "/".join(f"{{{name}}}" for name in chosen)
    return InputError(
        f"--labels {pattern.text!r} matches no result; the first one is {example}",
        hint=f"the pattern is matched against that path; write it like {words!r}",
    )
