"""Style that the linter does not know: order in modules, names, and sentences with nouns."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*$")
MAX_DEFINITIONS = 3
"""Private functions of one name: with more, the name says too little."""
PRONOUN = re.compile(r"(?:Return |Yield )?(?:those|these|it|so many)\b|That\b", re.IGNORECASE)
"""First words of a docstring that only its author can read: repeat the noun."""
Sources = dict[str, ast.Module]


def late_constants(tree: ast.Module) -> Iterator[str]:
    """Yield constants behind the first function that no definition of the module needs."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        return
    first = tree.body.index(functions[0])
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body[first:]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - {name}
                if used & defined:
                    defined.add(name)
                elif CONSTANT.match(name):
                    yield name


def test_constants_come_first(sources: Sources) -> None:
    """A constant stands before the first function of its module."""
    late = {module: list(late_constants(tree)) for module, tree in sources.items()}
    assert {module: names for module, names in late.items() if names} == {}


def test_a_late_constant_is_found() -> None:
    """A constant behind a function is named, unless it is made of what the module defines."""
    tree = ast.parse("A = 1\ndef f(): ...\nB = 2\nC = f()\nD = [C]\n")
    assert list(late_constants(tree)) == ["B"]


def test_private_names_tell_functions_apart(sources: Sources) -> None:
    """No private function has a name that many others have."""
    names = Counter(
        node.name
        for tree in sources.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and re.match(r"_[a-z]", node.name)
    )
    assert {name: count for name, count in names.items() if count > MAX_DEFINITIONS} == {}


def test_docstrings_repeat_the_noun(sources: Sources) -> None:
    """No docstring begins with a pronoun that stands for something named elsewhere."""
    vague = []
    for module, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                if PRONOUN.match(text):
                    vague.append(f"{module}.{getattr(node, 'name', '')}: {text.splitlines()[0]}")
    assert vague == []


def is_text(node: ast.expr) -> bool:
    """Return whether an expression is a text or a list."""
    return isinstance(node, ast.JoinedStr | ast.List) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_condition(node: ast.expr) -> bool:
    """Return whether an expression is a comparison, or a call that gives a boolean."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in {"bool", "any", "all"}
    return isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)


def test_a_condition_is_not_a_factor(sources: Sources) -> None:
    """A text that depends on a condition is written with ``if``, not as ``text * condition``."""
    found = []
    for module, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                for text, factor in ((node.left, node.right), (node.right, node.left)):
                    if is_text(text) and is_condition(factor):
                        found.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
