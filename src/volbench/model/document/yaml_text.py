"""YAML parser with line numbers, and YAML writer; the only module that imports ruamel."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from volbench.errors import Problems
from volbench.model.document.located_errors import Entry, Model, Node, validate

# Nodes after expanding aliases; more is a mistake or an attack. Noticed by:
# tests/profiles/alias-bomb
_MAX_NODES = 20_000

_CORE = "tag:yaml.org,2002:"
_NO_COLON = "could not find expected ':'"
_QUOTE = "quote texts that contain special characters"
_COLUMNS = "keys of one mapping begin in the same column, and those below a key further right"
# Part of what ruamel.yaml says to the same in plain words, and what to do; the first that fits
_NO_SPACE = re.compile(r"[a-z_]+:[^:]+")
_PLAIN_WORDS = {
    "'\\t'": ("this line is indented with a tab", "YAML is indented with spaces, not tabs"),
    "another document": ("a second document begins here", "move it to a separate file"),
    "undefined alias": ("* refers to an undefined name", "quote a text that begins with *"),
    "<document start>": ("lines follow what is in brackets", "name a job file of fio NAME.fio"),
    "incompatible": ("this version of YAML is not supported", "remove the %YAML line"),
    "end of stream": ("this quote is never closed", "add the closing quote"),
    "stream end": ("this bracket is never closed", "add the closing } or ]"),
    _NO_COLON: ("this line has no colon with a space after it", "write it like key: value"),
    "mapping values are not allowed": (
        "this colon is not expected here",
        "indent it like its neighbours, quote a text with a colon, and write a space after a colon",
    ),
    "expected ',' or": ("a comma or a closing bracket is missing", "like {a: 1, b: 2} or [1, 2]"),
    "but found '}'": ("a } without its {", "remove it, or quote the text"),
    "but found ']'": ("a ] without its [", "remove it, or quote the text"),
    "<block end>": ("the indentation is wrong here", _COLUMNS),
    "cannot start any token": ("a text must not begin with this character without quotes", _QUOTE),
}
# Text that YAML 1.1 reads as text, too, without quotes
_PLAIN = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z/][\w./-]*", re.ASCII | re.IGNORECASE
)


def parse_document(
    text: str, problems: Problems, *, what: str, needs: str, most_values: int = _MAX_NODES
) -> Node | None:
    """Return the root mapping of a YAML 1.2 text, or None if it has none.

    Args:
        what: kind of document, for messages: "a profile".
        needs: required content, for messages: "a name and jobs".
    """
    text = text.removeprefix("\ufeff")
    try:
        node = _compose(text, _Builder(problems, most_values))
    except MarkedYAMLError as error:
        _note_syntax(error, problems)
        return None
    except ReaderError as error:
        before = text[: error.position]
        problems.add(
            f"not YAML: the character {text[error.position]!r} is not allowed",
            line=before.count("\n") + 1,
            column=error.position - before.rfind("\n"),
            hint=f"{what} is plain text",
        )
        return None
    except RecursionError:
        problems.add(
            "nested too deeply",
            line=1,
            column=1,
            hint="does an alias refer to a value that contains itself?",
        )
        return None
    except (YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        problems.add(f"not YAML: {reason}", line=1, column=1)
        return None
    if node is None:
        problems.add("the file is empty", line=1, column=1, hint=f"{what} needs {needs}")
    elif node.entries is None:
        problems.add(
            f"{what} consists of lines like key: value, this is {node.kind}",
            line=node.line,
            column=node.column,
            hint=f"{what} needs {needs}",
        )
        return None
    return node


def _compose(text: str, builder: _Builder) -> Node | None:
    with warnings.catch_warnings():
        # YAML 1.2 (chapter 7.1) allows anchors to be redefined; the latest one applies.
        warnings.simplefilter("ignore", YAMLWarning)
        root = YAML(typ="safe", pure=True).compose(text)
    return None if root is None else builder.build(root, "")


def _note_syntax(error: MarkedYAMLError, problems: Problems) -> None:
    reason = " ".join(str(error.problem or error.context).split())
    mark, opened = error.problem_mark or error.context_mark, error.context_mark
    reason_text, hint = next(
        (plain for part, plain in _PLAIN_WORDS.items() if part in reason), (reason, "")
    )
    if "end of stream" in reason or "stream end" in reason or reason.startswith(_NO_COLON):
        mark = opened or mark  # where it begins: the parser notices further down, or at the end
    elif opened and mark and opened.line != mark.line:
        hint = hint or f"opened in line {opened.line + 1}"
    problems.add(
        f"not YAML: {reason_text}",
        line=mark.line + 1 if mark else 0,
        column=mark.column + 1 if mark else 0,
        hint=hint or "quote texts that contain special characters",
    )


class _Builder:
    """Converts composed nodes: merges ``<<``, refuses duplicate keys and alias bombs."""

    def __init__(self, problems: Problems, most_values: int) -> None:
        self._problems = problems
        self._most_values = most_values
        self._count = 0

    def build(self, node: object, key: str) -> Node:
        self._note_node()
        if isinstance(node, ScalarNode):
            line, column = _place(node)
            self._check_text(str(node.value), line, column, key)
            return Node(line, column, key, raw=_scalar(node))
        if isinstance(node, SequenceNode):
            line, column = _place(node)
            items = tuple(
                self.build(item, f"{key}.{number}" if key else str(number))
                for number, item in enumerate(node.value)
            )
            return Node(line, column, key, items=items)
        if isinstance(node, MappingNode):
            line, column = _place(node)
            return Node(line, column, key, entries=self._entries(node, key))
        raise YAMLError(f"{type(node).__name__} is not supported")

    def _check_text(self, text: str, line: int, column: int, key: str) -> bool:
        """Note text with lone surrogates, which can be neither printed nor stored."""
        if not any("\ud800" <= character <= "\udfff" for character in text):
            return True
        self._problems.add(
            "must be Unicode text, not a half of a surrogate pair",
            line=line,
            column=column,
            key=key,
            hint='write the character itself, or "\\U" and eight digits',
        )
        return False

    def _note_node(self) -> None:
        self._count += 1
        if self._count > self._most_values:
            raise YAMLError(f"more than {self._most_values} values after expanding aliases")

    def _entries(self, node: MappingNode, key: str) -> tuple[Entry, ...]:
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            line, column = _place(key_node)
            if not isinstance(key_node, ScalarNode):
                self._problems.add("a key must be a single word", line=line, column=column, key=key)
                continue
            name = str(key_node.value)
            if name == "<<":
                merged |= dict(self._merged(value_node, key))
                continue
            path = f"{key}.{name}" if key else name
            if node.flow_style and value_node.value == "" and _NO_SPACE.fullmatch(name):
                hint = f"write {name.replace(':', ': ')}"
                message = "a space is missing after the colon"
                self._problems.add(message, line=line, column=column, key=key, hint=hint)
                continue
            if not self._check_text(name, line, column, key):
                continue
            if name in entries:
                first = entries[name].line
                self._problems.add(
                    f"duplicate key, first in line {first}",
                    line=line,
                    column=column,
                    key=path,
                    hint="keep one",
                )
                continue
            entries[name] = Entry(name, line, column, self.build(value_node, path))
        return tuple((merged | entries).values())

    def _merged(self, node: object, key: str) -> Iterator[tuple[str, Entry]]:
        sources = node.value if isinstance(node, SequenceNode) else [node]
        for source in reversed(sources):
            if not isinstance(source, MappingNode):
                line, column = _place(source)
                self._problems.add(
                    "<< must be a mapping or a list of mappings",
                    line=line,
                    column=column,
                    key=key,
                    hint="use an alias, such as <<: *base",
                )
                continue
            self._note_node()
            for entry in self._entries(source, key):
                yield entry.name, entry


def _place(node: object) -> tuple[int, int]:
    mark = getattr(node, "start_mark", None)
    return (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)


def _scalar(node: ScalarNode) -> str | bool | None:
    """Return null and booleans as such, any other scalar as its text."""
    if node.tag == f"{_CORE}null":
        return None
    if node.tag == f"{_CORE}bool":
        return str(node.value).lower() in {"true", "yes", "on"}
    return str(node.value)


def read_document(text: str, model: type[Model], *, path: str, what: str, needs: str) -> Model:
    """Return the document in a YAML 1.2 text; every problem is reported with its location.

    Args:
        what: kind of document, for messages: "a profile".
        needs: required content, for messages: "a name and jobs".
    """
    problems = Problems(path)
    node = parse_document(text, problems, what=what, needs=needs)
    document = None if node is None else validate(model, node, problems)
    problems.raise_if_any()
    if document is None:
        raise AssertionError("a document that is not valid has a problem")
    return document


def yaml_text(content: Mapping[str, object]) -> str:
    """Return the YAML text of plain values, one key per line."""
    return _dumped(YAML(typ="safe", pure=True), content)


def yaml_documents(documents: Iterable[Mapping[str, object]]) -> str:
    """Return several mappings as a stream of documents that YAML 1.1 and 1.2 read alike.

    kubectl reads YAML 1.1, where ``yes`` and ``on`` are booleans: whatever might be something else
    than text there is quoted.
    """
    return "---\n".join(map(_document_text, documents))


def _document_text(document: Mapping[str, object]) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Quoting
    return _dumped(yaml, document)


class _Quoting(SafeRepresenter):
    """Representer that quotes ambiguous texts, and writes equal values out each time."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True

    def represent_str(self, data: str) -> ScalarNode:
        style = None if _PLAIN.fullmatch(data) else '"'
        node: ScalarNode = self.represent_scalar(f"{_CORE}str", data, style=style)
        return node


_Quoting.add_representer(str, _Quoting.represent_str)


def _dumped(yaml: YAML, content: Mapping[str, object]) -> str:
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # ruamel's own name for sort_keys
    yaml.width = 1_000_000
    stream = StringIO()
    yaml.dump(dict(content), stream)
    return stream.getvalue()
