"""Rows with facts as `with_facts` makes them, for comparisons whose truth is known."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tests.present.frames_for_plots import rates
from volbench.analyse.compare.comparison import Comparison, Question, compare
from volbench.analyse.frames.run_facts import STEP, VOLUME_KEY
from volbench.model.frames.columns import FINDINGS, SUMMARY
from volbench.store.parquet_tables import frame_of, table_of

_REPORTED = [column.name for column in SUMMARY]


def rows_of(
    level: float,
    *,
    job: str = "reads",
    repeats: int = 5,
    volumes: Sequence[str] = ("sdb",),
    noise: float = 0.01,
    seed: int = 1,
    **columns: object,
) -> pd.DataFrame:
    """Return a row a repeat and volume, with IOPS around a level and a p99 around its inverse.

    Args:
        level: true IOPS.
        job: name of the job and its section.
        repeats: on each volume.
        volumes: their keys.
        noise: deviation of the logarithms.
        seed: of the noise.
        columns: further columns and their value, of the summary or facts.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for volume in volumes:
        for repeat in range(1, repeats + 1):
            iops = level * float(np.exp(rng.normal(0, noise)))
            rows.append(
                rates(job, iops, direction="read", rw="randread", lat_p99_s=1 / iops)
                | {"campaign": "c", "profile": "p", "volume": volume, "repeat": repeat}
                | {"run": f"{volume}-{job}-r{repeat}", STEP: f"{volume}-{job}-r{repeat}"}
                | {VOLUME_KEY: f"local||{volume}|", "fio_version": "fio-3.33", "kernel": "6.1"}
                | {"options_known": True, "options_unreported": (), **columns}
            )
    frame = pd.DataFrame(rows)
    of_summary = frame.columns.intersection(_REPORTED)
    summary = [{name: row[name] for name in of_summary} for row in rows]
    return pd.concat(
        [frame_of(table_of("summary", summary)), frame.drop(columns=of_summary)], axis=1
    )


def no_findings() -> pd.DataFrame:
    """Return a findings frame without rows."""
    return findings_of()


def findings_of(*found: tuple[str, str, str, str | None]) -> pd.DataFrame:
    """Return a findings frame of rule, severity, run and direction."""
    rows = [
        {"rule": rule, "severity": severity, "run": run, "direction": direction}
        for rule, severity, run, direction in found
    ]
    names = [column.name for column in FINDINGS]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names, "str"))


def candidates_of_three_jobs() -> Comparison:
    """Return three jobs of two candidates: faster, slower, unknown, too few."""
    jobs = {"fast": 1.2, "slow": 0.7, "even": 1.0}
    base = pd.concat([rows_of(1000, job=job) for job in (*jobs, "brief <b>|x")])
    other = [rows_of(1000 * ratio, job=job, seed=2) for job, ratio in jobs.items()]
    other.append(rows_of(1000, job="brief <b>|x", repeats=2))
    sides = {"old": base, "new": pd.concat(other), "newer": pd.concat(other)}
    question = Question(metrics=("iops", "p99"), tolerance=0.001)
    return compare(sides, dict.fromkeys(sides, no_findings()), question)


def compared(first: pd.DataFrame, /, *candidates: pd.DataFrame, **requested: object) -> Comparison:
    """Compare sides named A, B, C without findings."""
    names = "ABCDEFGH"
    sides = dict(zip(names, (first, *candidates), strict=False))
    options: dict[str, object] = {"metrics": ("iops",), **requested}
    question = Question(**options)  # type: ignore[arg-type]  # the fields of each test
    return compare(sides, dict.fromkeys(sides, no_findings()), question)
