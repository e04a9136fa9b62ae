"""Typed access to the values of a document; whatever does not fit becomes a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from volbench.errors import InputError, Problems
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.fio_option import nearest

_T = TypeVar("_T")


@dataclass
class FieldReader:
    """Reads values of one file.

    Attributes:
        problems: collects what is wrong.
    """

    problems: Problems

    def complain(self, node: Node | Entry, message: str, *, key: str = "", hint: str = "") -> None:
        """Note a problem at a node."""
        key = key or (node.key if isinstance(node, Node) else node.value.key)
        self.problems.add(message, line=node.line, column=node.column, key=key, hint=hint)

    def entries(self, node: Node, what: str) -> tuple[Entry, ...]:
        """Return the entries of a mapping, noting a problem for anything else."""
        if node.entries is None:
            self.complain(node, f"{what} must be a mapping, this is {node.kind}")
            return ()
        return node.entries

    def items(self, node: Node, what: str) -> tuple[Node, ...]:
        """Return the items of a list, noting a problem for anything else."""
        if node.items is None:
            self.complain(node, f"{what} must be a list, this is {node.kind}")
            return ()
        return node.items

    def text(self, node: Node, what: str) -> str:
        """Return a single value as text, noting a problem for anything else."""
        if not node.is_scalar or node.raw is None:
            self.complain(node, f"{what} must be a text, this is {node.kind}")
            return ""
        return str(node.raw).lower() if isinstance(node.raw, bool) else node.raw

    def given(self, node: Node, what: str) -> str:
        """Return a text that is not empty; an empty one is returned with a problem noted."""
        text = self.text(node, what)
        if not text and node.raw == "":
            self.complain(node, f"{what} is empty", hint="write a value, or leave it out")
        return text

    def value(self, node: Node, what: str, read: Callable[[str], _T], default: _T) -> _T:
        """Return a value read by `read`, or `default` with a problem noted."""
        text = self.given(node, what)
        if not text:
            return default
        try:
            return read(text)
        except InputError as error:
            self.complain(node, f"{what}: {error.message}", hint=error.hint)
        except ValueError:
            self.complain(node, f"{what}: {text!r} can't be read as a number")
        return default

    def unknown(self, entry: Entry, known: Iterable[str], what: str) -> None:
        """Note an unknown key, with the nearest known one."""
        names = list(known)
        near = nearest(entry.name, names)
        hint = f"did you mean `{near}`?" if near else f"known are {', '.join(names)}"
        self.complain(entry, f"{what} has no key {entry.name!r}", hint=hint)

    def choice(self, node: Node, what: str, choices: Mapping[str, object]) -> str:
        """Return one of several words."""
        text = self.given(node, what)
        if text and text not in choices:
            near = nearest(text, list(choices))
            self.complain(
                node,
                f"{what} {text!r} must be one of {', '.join(choices)}",
                hint=f"did you mean `{near}`?" if near else "",
            )
            return next(iter(choices))
        return text or next(iter(choices))
