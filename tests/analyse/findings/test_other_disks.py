"""Load of the machine's other disks, which share its limits with the measured volume."""

import math

import numpy as np
import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    a_run,
    a_view,
    device_samples,
    found,
    series_rows,
    summary_row,
)
from volbench.analyse.frames.resample import Floats
from volbench.analyse.frames.run_view import RunView
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Finding, Severity

BUSY: Floats = np.where(np.arange(SECONDS) % 10 < 5, 2.0, 0.0)
"""Whether the other disks are busy: five seconds of ten."""


def beside(rates: Floats, loads: Floats, limits: Limits | None = None) -> RunView:
    """Return a run with the IOPS of each second, and those of other disks, of the same size."""
    run = a_run(limits=limits or Limits())
    samples = device_samples(run)
    for sample in samples:
        second = round(float(str(sample["t_s"]))) - 1
        load = loads[second] if 0 <= second < len(loads) else 0.0
        sample.update(other_disks_iops=load, other_disks_bw_bytes_per_s=load * BLOCK)
    return a_view(
        run, summary=[summary_row(run)], series=series_rows(run, rates.tolist()), device=samples
    )


def finding(view: RunView) -> Finding | None:
    """Return the finding of the rule, if there is one."""
    found_here = found(view, rule="other-load")
    assert len(found_here) <= 1
    return found_here[0] if found_here else None


def noise(seed: int, scale: float = 20.0) -> Floats:
    """Return small changes of a rate, of a fixed seed."""
    return np.random.default_rng(seed).normal(0, scale, SECONDS)


def test_a_shared_limit_of_the_machine_is_named() -> None:
    """A constant load of 300 IOPS of the machine's 1,280, and the volume gets the rest."""
    limits = Limits(machine="azure/Standard_B2s", machine_iops=1280)
    entry = finding(beside(980 + noise(1), np.full(SECONDS, 300.0), limits))
    assert entry is not None
    assert entry.severity is Severity.WARNING
    assert entry.evidence["machine_share_percent"] == pytest.approx(23.4, abs=0.1)
    assert "300 IOPS" in entry.message
    assert "23 % of the limit of azure/Standard_B2s, which was reached" in entry.message


def test_a_limit_that_is_not_reached_is_not_shared() -> None:
    """The machine could do 5,000, or nothing is known of other disks."""
    limits = Limits(machine="azure/Standard_D4s_v5", machine_iops=5000)
    assert finding(beside(980 + noise(1), np.full(SECONDS, 300.0), limits)) is None
    assert finding(beside(np.full(SECONDS, IOPS), np.full(SECONDS, math.nan))) is None


def test_a_small_load_is_tolerated() -> None:
    """They take 3 % of the machine's limit, and 3 % of the rate."""
    limits = Limits(machine="m", machine_iops=1000)
    load = 30 * BUSY
    assert finding(beside(IOPS - load + noise(3, 2), load, limits)) is None
