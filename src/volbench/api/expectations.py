"""Expectations of the command line, beside those of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from volbench.model.frames.expectation import Expectation, check_expectations, unknown_job

if TYPE_CHECKING:
    from volbench.model.profile.profile_model import Profile


def with_expected(
    profiles: Sequence[Profile], expectations: Sequence[Expectation]
) -> tuple[Profile, ...]:
    """Return profiles with further expectations, each in the profiles that have its job."""
    from volbench.model.profile.expect_setting import with_expectations  # noqa: PLC0415 - slow to import
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
