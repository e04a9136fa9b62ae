"""YAML text in; plain values out, and where each of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from volbench.errors import Problems

Plain = str | None | list["Plain"] | dict[str, "Plain"]
Location = tuple[str | int, ...]

_NULL = "tag:yaml.org,2002:null"
_DEPTH_LIMIT = 20


@dataclass
class Document:
    """What a file says.

    Attributes:
        values: mappings, lists and texts; numbers are left as they are written.
        places: line and column, 1-based, of each value by its keys and positions from the top.
    """

    values: Plain = None
    places: dict[Location, tuple[int, int]] = field(default_factory=dict)

    def place(self, location: Location) -> tuple[int, int]:
        """Return the place of a value, or of the nearest thing around it."""
        while location and location not in self.places:
            location = location[:-1]
        return self.places.get(location, (0, 0))


def read_document(text: str, problems: Problems) -> Document:
    """Return what a YAML text says; what is wrong with it becomes problems."""
    document = Document()
    try:
        root = YAML(typ="safe", pure=True).compose(text.removeprefix("\ufeff"))
        if root is None:
            problems.add("the file is empty", hint="a scenario needs a name, a size and a service")
        else:
            document.values = _plain(root, (), document, problems)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        words = " ".join(str(error.problem or error.context).split())
        problems.add(f"not YAML: {words}", line=line, column=column)
    except (YAMLError, ValueError, RecursionError) as error:
        problems.add(f"not YAML: {' '.join(str(error).split())[:200]}")
    return document


def _plain(node: Node, location: Location, document: Document, problems: Problems) -> Plain:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    document.places.setdefault(location, (line, column))
    if len(location) > _DEPTH_LIMIT:
        problems.add("nested too deeply", line=line, column=column)
        return None
    if isinstance(node, ScalarNode):
        return None if node.tag == _NULL or str(node.ctag) == _NULL else str(node.value)
    if isinstance(node, SequenceNode):
        return [
            _plain(item, (*location, position), document, problems)
            for position, item in enumerate(node.value)
        ]
    if isinstance(node, MappingNode):
        return _mapping(node, location, document, problems)
    raise AssertionError(f"YAML has no such node: {node}")


def _mapping(
    node: MappingNode, location: Location, document: Document, problems: Problems
) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for key, value in node.value:
        name = str(key.value)
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        if name in found:
            problems.add(f"{name} is given twice", line=line, column=column)
            continue
        document.places[*location, name] = (line, column)
        found[name] = _plain(value, (*location, name), document, problems)
    return found
