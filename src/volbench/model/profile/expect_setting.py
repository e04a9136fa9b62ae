"""Expectations in a profile: job to metric to bound."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from volbench.errors import InputError
from volbench.model.document.document_model import Filled
from volbench.model.document.located_errors import Fault, input_fault, reject
from volbench.model.frames.expectation import (
    ALL_JOBS,
    Expectation,
    UnknownMetricError,
    parse_bound,
    parse_expectation,
    unknown_job,
)

_BOUND = {"type": ["string", "number", "boolean"], "$comment": "bound"}


def _texts_of(value: object) -> object:
    """Return a list of texts; a flag such as ``steady: yes`` is a text, too."""
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple({True: "yes", False: "no"}[v] if isinstance(v, bool) else v for v in values)


def _check_metrics(metrics: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    faults = []
    for metric, bounds in metrics.items():
        for bound in bounds:
            try:
                parse_bound(metric, bound, job=ALL_JOBS)
            except InputError as error:
                is_metric = isinstance(error, UnknownMetricError)
                faults.append(input_fault(error, at=(metric,), on_key=is_metric))
    if faults:
        reject(*faults)
    return metrics


_Bounds = Annotated[
    tuple[Filled, ...],
    BeforeValidator(_texts_of),
    WithJsonSchema({"anyOf": [_BOUND, {"type": "array", "items": _BOUND, "minItems": 1}]}),
]
_Metrics = Annotated[dict[Filled, _Bounds], Field(min_length=1), AfterValidator(_check_metrics)]


# Bounds of one job in the form METRIC < BOUND, such as ``p99 < 5ms``
Conditions = Annotated[
    tuple[Filled, ...],
    BeforeValidator(_texts_of),
    AfterValidator(lambda texts: tuple(condition_of(text).text for text in texts)),
    WithJsonSchema({"anyOf": [_BOUND, {"type": "array", "items": _BOUND, "minItems": 1}]}),
]
# Job or pattern of jobs to metric to one or more bounds
Expect = dict[Filled, _Metrics]


def condition_of(text: str) -> Expectation:
    """Return the bound on a latency in a text such as ``p99 < 5ms``."""
    try:
        condition = parse_expectation(text)
    except InputError as error:
        reject(input_fault(error))
    is_latency = condition.column.startswith(("lat_", "clat_")) and condition.frame == "summary"
    if condition.job != ALL_JOBS or not is_latency or not condition.relation.startswith("<"):
        reject(Fault(f"{text!r} is not an upper bound on a latency", "write it like p99 < 5ms"))
    return condition


def expectations_in(expect: Expect) -> Iterator[Expectation]:
    """Yield the expectations of a valid document."""
    for job, metrics in expect.items():
        for metric, bounds in metrics.items():
            for bound in bounds:
                yield parse_bound(metric, bound, job=job)


def expect_faults(expect: Expect, jobs: Collection[str]) -> Iterator[Fault]:
    """Yield the faults of expectations of jobs that are not among the measured ones."""
    for job, expectation in {each.job: each for each in expectations_in(expect)}.items():
        if hint := unknown_job(expectation, jobs):
            yield Fault("there is no such measured job", hint, ("expect", job), on_key=True)


def with_expectations(expect: Expect, more: Iterable[Expectation]) -> Expect:
    """Return a document with further expectations."""
    merged = {job: dict(metrics) for job, metrics in expect.items()}
    for expectation in more:
        metrics = merged.setdefault(expectation.job, {})
        bounds = metrics.get(expectation.metric, ())
        metrics[expectation.metric] = (*bounds, expectation.written_bound)
    return merged
