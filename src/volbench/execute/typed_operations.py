"""Types of the agent's operations: arguments by name, and answers checked where they enter."""

from __future__ import annotations

import inspect
import reprlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from volbench.errors import TransportError
from volbench.execute.agent.facts import InstalledProgram
from volbench.execute.agent.operations import LIMITS_S, USUAL_LIMIT_S
from volbench.execute.agent.run_command import Output
from volbench.execute.agent.watch import ProgramEvent

T = TypeVar("T")

# Arguments that allow an operation so many seconds more
_TIME_ARGUMENTS = ("timeout_s", "limit_s", "interval_s")


def named_arguments(
    operation: Callable[..., object], given: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments of an operation by their names."""
    return dict(inspect.signature(operation).bind(*given, **named).arguments)


def limit_s(operation: Callable[..., object], arguments: Mapping[str, object]) -> float:
    """Return the time limit of a reply, or of the silence between parts."""
    allowed = (arguments.get(name) for name in _TIME_ARGUMENTS)
    return LIMITS_S.get(operation.__name__, USUAL_LIMIT_S) + sum(
        seconds for seconds in allowed if isinstance(seconds, int | float)
    )


def checked_answer(operation: Callable[..., T], answer: object, *, host: str) -> T:
    """Return the answer of an agent in the type that the operation returns."""
    value: T = _validated(_adapters(operation).answer, operation, answer, host)
    return value


def checked_part(operation: Callable[..., object], part: object, *, host: str) -> Any:  # noqa: ANN401 - the type that the generator yields
    """Return a part of an answer in the type that the operation yields; see `checked_answer`."""
    return _validated(_adapters(operation).part, operation, part, host)


class _Adapters(NamedTuple):
    """Validators of an operation's answer; making one takes longer than a look at a file."""

    answer: TypeAdapter[Any]
    part: TypeAdapter[Any]  # of a generator


@cache
def _adapters(operation: Callable[..., object]) -> _Adapters:
    returned = types.SimpleNamespace(__annotations__={"it": operation.__annotations__["return"]})
    shape = get_type_hints(returned, globalns=getattr(operation, "__globals__", {}))["it"]
    is_generator = get_origin(shape) is Iterator
    answer: Any = None if is_generator else shape
    part: Any = get_args(shape)[0] if is_generator else None
    config = ConfigDict(allow_inf_nan=False)
    return _Adapters(TypeAdapter(answer, config=config), TypeAdapter(part, config=config))


def _validated(
    adapter: TypeAdapter[Any], operation: Callable[..., object], value: object, host: str
) -> Any:  # noqa: ANN401 - of any type
    try:
        checked = adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "it"
        raise _malformed(host, operation, value, f"{field}: {first['msg']}") from error
    if _has_negative(checked):
        raise _malformed(host, operation, value, "negative number")
    return checked


def _has_negative(value: object) -> bool:
    """Return whether a number is below 0, apart from the status of a program."""
    if isinstance(value, Output | InstalledProgram | ProgramEvent):
        return False
    if isinstance(value, tuple | list):
        return any(map(_has_negative, value))
    if isinstance(value, dict):
        return any(map(_has_negative, value.values()))
    return isinstance(value, int | float) and value < 0


def _malformed(
    host: str, operation: Callable[..., object], value: object, reason: str
) -> TransportError:
    return TransportError(
        f"{host} answers {operation.__name__} with {reprlib.repr(value)[:80]}: {reason}",
        hint="do not trust this host; see whether it works: volbench hosts",
    )
