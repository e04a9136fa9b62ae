"""Speed of hosts: a short run of fio's null engine, which touches no volume, around campaigns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

from volbench.model.frames.columns import CALIBRATION

if TYPE_CHECKING:
    import pandas as pd

    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.store.layout import Layout

CONFIRMED = ".confirmed"  # Folder of repetitions: hidden, so that no verb takes them for a night
# From this length on, both calibrations take less than a twentieth of a campaign.
# Noticed by: test_calibration.py::test_only_a_campaign_that_is_long_enough_is_calibrated
MIN_CAMPAIGN_S = 30.0
MAX_CALIBRATION_S = 10.0  # It usually takes one
# One part after the other, without the polling of stonewall, so that one CPU is enough for all.
# (io_submit_mode=offload, which wakes a thread for each I/O, hangs in fio 3.33.)
_ARGUMENTS = """--output-format=json --eta=never --name=global --ioengine=null --rw=randread
    --bs=4096 --size=1073741824 --thread=1 --time_based=1 --runtime=150ms --disk_util=0
    --name=cpu --gtod_reduce=1 --name=timer --startdelay=170ms
    --name=wakeup --startdelay=340ms --thinktime=200 --thinktime_blocks=1"""
# Loss of speed from which a host is slower than usual, and the same in median absolute deviations
# (three standard deviations). Noticed by: test_calibration.py::test_a_slower_host_is_named
MIN_SLOWER, _DEVIATIONS = 0.05, 4.4


@contextmanager
def calibrated(layout: Layout, hosts: Sequence[ConnectedHost]) -> Iterator[None]:
    """Record the speed of hosts before and after a campaign that is long enough."""
    from volbench.engine.campaign.campaign_engine import by_client
    from volbench.plan.expansion.estimate import expected_s
    from volbench.store.archive import read_campaign

    clients = by_client(read_campaign(layout.root)[1].campaign)
    is_long = any(sum(expected_s(run) or 0.0 for run in runs) >= MIN_CAMPAIGN_S for runs in clients)
    is_measured = is_long or layout.root.parent.name == CONFIRMED
    if is_measured:
        _calibrate(layout, hosts)
    yield
    if is_measured:
        _calibrate(layout, hosts)


def _calibrate(layout: Layout, hosts: Sequence[ConnectedHost]) -> None:
    from volbench.execute.scheduler import on_each
    from volbench.store.archive import hold_campaign
    from volbench.store.consent import seal_of
    from volbench.store.journal import Journal

    found: dict[str, list[float]] = {}

    def of(host: ConnectedHost) -> None:
        done = host.executor.run(calibration_command(host.fio), timeout_s=MAX_CALIBRATION_S)
        found[host.name] = parse_calibration(done.stdout)

    ready = [host for host in hosts if host.fio and not host.executor.trouble]
    on_each([host for host in ready if host.executor.silent_s < MAX_CALIBRATION_S], of)
    with hold_campaign(layout), Journal(layout.journal, seal_of(layout)) as journal:
        for name, speeds in found.items():
            if speeds:
                journal.write("calibrated", host=name, speeds=speeds)


def calibration_command(fio: str) -> list[str]:
    """Return the command line of a calibration."""
    return [fio, *_ARGUMENTS.split()]


def parse_calibration(text: str) -> list[float]:
    """Return the I/Os a second of each part; none where fio printed something else."""
    from volbench.errors import OutputError
    from volbench.fio.results.json_output import parse_output

    try:
        jobs = parse_output(text).jobs
    except OutputError:
        return []
    rates = [each.iops for job in jobs for each in job.directions if each.iops]
    return rates if len(rates) == _ARGUMENTS.count("--startdelay") + 1 else []


def speeds_of(summary: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Return campaign to the calibration of its hosts, of campaigns that have one."""
    known = summary[["campaign", *CALIBRATION]].dropna().groupby("campaign", observed=True).median()
    return {str(name): tuple(map(float, row)) for name, row in known.iterrows()}


def slowdown(own: Sequence[float], usual: Sequence[Sequence[float]]) -> tuple[float, str]:
    """Return by how much a host is slower than usual, and at what; 0 where it may be chance."""
    found = [(0.0, "")]
    for name, speed, others in zip(CALIBRATION, own, zip(*usual, strict=True), strict=True):
        centre = median(others)
        spread = median(abs(other / centre - 1) for other in others)
        if (loss := 1 - speed / centre) > max(MIN_SLOWER, _DEVIATIONS * spread):
            found.append((loss, name.split("_")[1]))
    return max(found)


def speed_words(own: Sequence[float], usual: Sequence[Sequence[float]]) -> str:
    """Return what `slowdown` does in words, such as ``8 % slower (timer)``; empty for usual."""
    loss, part = slowdown(own, usual)
    return f"{100 * loss:.0f} % slower ({part})" if part else ""
