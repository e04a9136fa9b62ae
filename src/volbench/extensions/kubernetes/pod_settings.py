"""Settings of pods: the keys of `--pod KEY=VALUE` and of the table `[pod]` in volbench.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from volbench.errors import InputError, did_you_mean
from volbench.extensions.kubernetes.api_values import MAX_INT32, require_quantity
from volbench.units import parse_duration

KIND = "pod"  # of a connection to a pod; the name of the channel
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# Word to the node label over whose values pods are spread; empty for no rule
TOPOLOGY = {"node": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone", "none": ""}
_BOOLEANS = {"true": True, "false": False, "": True}
_KEY = "key"


@dataclass(frozen=True)
class PodKey:
    """A key of the settings; of one that ends with a dot, such as ``request.``, all that follow."""

    name: str
    metavar: str  # of its value
    text: str  # its meaning
    parse: Callable[[str], Any]  # the value; of several values that have names, name and value


def setting(
    name: str, metavar: str, text: str, parse: Callable[[str], object] = str, *, default: object
) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a specification that is a key of the settings.

    Args:
        default: a tuple or a mapping where the key may be given several times.
    """
    metadata = {_KEY: PodKey(name, metavar, text, parse)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def pod_keys(spec: Any) -> dict[str, PodKey]:  # noqa: ANN401 - a class with fields by `setting`
    """Return the keys of a specification by name."""
    return {each.metadata[_KEY].name: each.metadata[_KEY] for each in _settings(spec)}


def _settings(spec: Any) -> Iterable[Field[Any]]:  # noqa: ANN401 - the same
    return (each for each in fields(spec) if _KEY in each.metadata)


def merged_settings(given: Iterable[str], configured: Iterable[str]) -> tuple[str, ...]:
    """Return settings, with configured ones where their key is not given."""
    given = tuple(given)
    keys = {text.partition("=")[0] for text in given}
    return (*(text for text in configured if text.partition("=")[0] not in keys), *given)


def parse_settings(spec: Any, texts: Iterable[str]) -> dict[str, Any]:  # noqa: ANN401 - the same
    """Return the fields of a specification that ``KEY=VALUE`` texts set; the last one counts.

    Raises:
        InputError: a key is unknown, or its value is not valid.
    """
    known = {each.metadata[_KEY].name: each for each in _settings(spec)}
    parsed: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        family, dot, member = name.partition(".")
        described = known.get(f"{family}." if dot else name)
        if described is None or (dot and not member):
            names = [f"{key}NAME" if key.endswith(".") else key for key in known]
            raise InputError(
                f"pods have no setting {name!r}",
                hint=did_you_mean(name, known, f"known: {', '.join(names)}"),
            )
        key: PodKey = described.metadata[_KEY]
        if not (equals and value) and key.parse is not parse_boolean:
            raise InputError(f"the setting {name} has no value", hint=f"write {name}={key.metavar}")
        found = key.parse(f"{member}={value}" if dot else value)
        collected = parsed.get(described.name)
        if isinstance(described.default, tuple):
            parsed[described.name] = (*(collected or ()), found)
        elif callable(described.default_factory):
            parsed[described.name] = {**(collected or {}), found[0]: found[1]}
        else:
            parsed[described.name] = found
    return parsed


def parse_boolean(text: str) -> bool:
    """Return whether a switch is on; it is without a value."""
    if text not in _BOOLEANS:
        raise InputError(f"{text!r} is neither true nor false")
    return _BOOLEANS[text]


def parse_pull_policy(text: str) -> str:
    """Return when an image is pulled, in the words of the API."""
    known = {policy.lower(): policy for policy in PULL_POLICIES}
    if text.lower() not in known:
        raise InputError(
            f"unknown image pull policy {text!r}", hint=f"must be one of {', '.join(PULL_POLICIES)}"
        )
    return known[text.lower()]


def parse_selector(text: str) -> tuple[str, str]:
    """Return label and value of ``LABEL=VALUE``."""
    label, equals, value = text.partition("=")
    if not equals:
        raise InputError(
            f"node-selector {text!r} is not a label with its value",
            hint="write it like node-selector=disk=nvme",
        )
    return label, value


def parse_resource(text: str) -> tuple[str, str]:
    """Return the resource and its quantity of ``RESOURCE=QUANTITY``."""
    resource, _, quantity = text.partition("=")
    require_quantity(quantity, what=resource)
    return resource, quantity


def parse_user(text: str) -> int:
    """Return a user id."""
    if not text.isdecimal() or int(text) > MAX_INT32:
        raise InputError(f"run-as-user must be a number up to {MAX_INT32}, not {text!r}")
    return int(text)


def parse_deadline(text: str) -> int:
    """Return whole seconds of a duration, as the API takes them."""
    seconds = max(1, round(parse_duration(text)))
    if seconds > MAX_INT32:
        raise InputError(f"deadline must be at most {MAX_INT32} s, not {text}")
    return seconds


def configured_texts(table: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ``KEY=VALUE`` texts of the table `[pod]` in volbench.toml.

    Lists are given several times; tables, such as ``request.cpu``, have their own keys.
    """
    texts: list[str] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = configured_texts(value)
            texts += [f"{key}{'=' if key == 'node-selector' else '.'}{text}" for text in inner]
        elif isinstance(value, list | tuple):
            texts += [f"{key}={each}" for each in value]
        else:
            plain = str(value).lower() if isinstance(value, bool) else str(value)
            texts.append(f"{key}={plain}")
    return tuple(texts)
