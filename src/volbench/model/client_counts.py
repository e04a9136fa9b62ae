"""Names of jobs that run with several numbers of clients, such as ``a-clients4``."""

from __future__ import annotations

import re

_NAME = re.compile(r"(.+)-clients([1-9][0-9]*)")


def counted_job(job: str, clients: int) -> str:
    """Return the name of a job with a number of clients."""
    return f"{job}-clients{clients}"


def split_count(job: str) -> tuple[str, int]:
    """Return the name of a job in its profile and its number of clients; 0 without one."""
    match = _NAME.fullmatch(job)
    return (match[1], int(match[2])) if match else (job, 0)
