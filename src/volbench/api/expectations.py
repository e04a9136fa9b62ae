"""Expectations from the command line: texts such as ``p99 < 5ms``, and files of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from volbench.errors import Problems
from volbench.model.frames.expectation import (
    Expectation,
    check_expectations,
    parse_expectation,
    unknown_job,
)

if TYPE_CHECKING:
    from volbench.model.profile.profile_model import Profile

_FILES = (".yaml", ".yml")


def read_expectations(texts: Sequence[str]) -> list[Expectation]:
    """Return the expectations in texts; a text that ends in .yaml or .yml is a file of them.

    Raises:
        InputError: one is wrong, or a file cannot be read.
    """
    return [
        expectation
        for text in texts
        for expectation in (
            _read_file(Path(text)) if text.endswith(_FILES) else [parse_expectation(text)]
        )
    ]


def _read_file(path: Path) -> list[Expectation]:
    from volbench.model.document.located_errors import (  # noqa: PLC0415 - slow to import
        place,
        validate,
    )
    from volbench.model.document.yaml_text import parse_document  # noqa: PLC0415 - same
    from volbench.model.profile.expect_setting import (  # noqa: PLC0415 - same
        ExpectFile,
        expectations_in,
    )
    from volbench.plan.bundled_files import read_text  # noqa: PLC0415 - only where a file is read

    problems = Problems(str(path))
    text = read_text(path, what="file of expectations")
    node = parse_document(text, problems, what="a file of expectations", needs="the key expect")
    document = None if node is None else validate(ExpectFile, node, problems)
    problems.raise_if_any()
    if node is None or document is None:
        return []
    located = []
    for expectation in expectations_in(document.expect):
        line, column, _ = place(node, ("expect", expectation.job, expectation.metric), on_key=True)
        located.append(replace(expectation, place=f"{path}:{line}:{column}: "))
    return located


def with_expected(
    profiles: Sequence[Profile], expectations: Sequence[Expectation]
) -> tuple[Profile, ...]:
    """Return profiles with further expectations, each in the profiles that have its job.

    Raises:
        InputError: no profile has the job.
    """
    from volbench.model.profile.expect_setting import (  # noqa: PLC0415 - slow to import
        with_expectations,
    )
    from volbench.model.profile.profile_model import Phase  # noqa: PLC0415 - same

    jobs = [
        [job.name for job in profile.jobs if job.phase is Phase.MEASURED] for profile in profiles
    ]
    check_expectations(expectations, [name for names in jobs for name in names])
    merged = []
    for profile, names in zip(profiles, jobs, strict=True):
        own = [each for each in expectations if not unknown_job(each, names)]
        expect = with_expectations(profile.expect, own)
        merged.append(profile.model_copy(update={"expect": expect}))
    return tuple(merged)
