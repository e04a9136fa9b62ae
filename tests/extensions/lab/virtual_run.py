"""Runs on a simulated volume in virtual time, with the raw files that a real run leaves."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.extensions.lab.virtual_client import run_clients, workload_of
from tests.extensions.lab.virtual_fio_output import Span, render_json, render_logs
from volbench.extensions.lab.scenario import Scenario
from volbench.extensions.lab.simulated_disk import Disk

BEGIN_UTC_S = 1_767_225_600.0
"""When a virtual volume is first used: 2026-01-01."""

_BETWEEN_RUNS_S = 1.0
_TICKS_PER_S = 100


@dataclass(frozen=True)
class VirtualRun:
    """Outcome of one run."""

    files: Mapping[str, str]  # name to text, as in the folder of a run
    begin_utc_s: float  # seconds since 1970
    end_utc_s: float  # the same

    @property
    def elapsed_s(self) -> float:
        """How long it took, in virtual time."""
        return self.end_utc_s - self.begin_utc_s


class VirtualVolume:
    """A simulated volume whose clock only moves by what is done with it."""

    def __init__(self, scenario: Scenario) -> None:
        self._size_bytes = scenario.size_bytes
        self._disk = Disk(scenario.parameters())
        self._now_s = 0.0

    def rest(self, seconds: float) -> None:
        """Leave the volume idle."""
        self._now_s += seconds

    def run(
        self,
        options: Mapping[str, str],
        *,
        job_options: Mapping[str, str] | None = None,
        name: str = "job1",
        sample_s: float = 0.5,
        device_sample_s: float = 1.0,
        seed: int = 1,
    ) -> VirtualRun:
        """Do one run, directly after the one before."""
        own = job_options or {}
        workload = workload_of({**options, **own})
        begin_s, begin_utc_s = self._now_s, BEGIN_UTC_S + self._now_s
        jobs = run_clients(
            self._disk, workload, begin_s=begin_s, size_bytes=self._size_bytes, seed=seed
        )
        last_s = max(float(job.done_s.max(initial=begin_s)) for job in jobs) - begin_s
        elapsed_s = max(last_s, workload.runtime_s or 0.0)
        span = Span(begin_s, begin_utc_s, elapsed_s)
        files = {
            "fio.json": render_json(
                name, jobs, workload, {"global": options, "job": own}, span=span
            ),
            "stderr": "",
        }
        for number, requests in enumerate(jobs if sample_s else (), start=1):
            files |= render_logs(
                number, requests, block_bytes=workload.block_bytes, window_s=sample_s, span=span
            )
        if device_sample_s:
            files["device.log"] = _idle_host(begin_utc_s, elapsed_s, device_sample_s)
        self._now_s += elapsed_s + _BETWEEN_RUNS_S
        return VirtualRun(files, begin_utc_s, span.end_utc_s)


def _idle_host(begin_utc_s: float, elapsed_s: float, interval_s: float) -> str:
    """Return samples of a host of two CPUs that does little else, as the sampler writes them."""
    lines = ["volbench-samples 1 page 4096"]
    count = int(elapsed_s / interval_s)
    times_s = [-0.01, *(number * interval_s for number in range(1, count + 1)), elapsed_s + 0.01]
    for number, at_s in enumerate(times_s):
        if number == len(times_s) - 1:
            lines.append("! ended")
        busy = round((at_s + 1) * _TICKS_PER_S * 0.05)
        idle = round((at_s + 1) * _TICKS_PER_S * 1.9)
        lines += [
            f"T {begin_utc_s + at_s:.3f} {1000 + begin_utc_s - BEGIN_UTC_S + at_s:.3f}",
            f"cpu  {busy} 0 {busy} {idle} 0 0 0 0 0 0",
            *("Dirty: 0 kB", "Writeback: 0 kB", "pswpin 0", "pswpout 0", "."),
            "",
        ]
        if number == 0:
            lines.append("! started")
    return "\n".join([*lines, "! tail none: no dirty pages left", ""])
