"""Storage benchmarks with fio, from a YAML profile to frames, charts and a report.

Run a profile, or open what was measured:

    import volbench

    measured = volbench.measure("/data", rw="randread", bs="4k")
    campaign = volbench.run("quick", on="/data")
    campaign = volbench.open_campaign("volbench-results/quick-20261122-140000")

Read it:

    campaign                         # in a notebook: the answer, its chart, and the results
    campaign.summary()               # a pandas frame, in base SI units
    campaign.findings                # data-quality warnings, each with its reason and advice
    campaign.plot("iops")            # a chart; .save("iops.svg"), .numbers, .figure

Several campaigns are opened by `open_campaigns`, and compared by `compare` with confidence
intervals. Reference: docs/reference/python.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volbench.api.compare_campaigns import compare, trend
    from volbench.api.many_campaigns import Dataset, open_campaign, open_campaigns
    from volbench.api.measured_workloads import measure
    from volbench.api.notebook import Chart, Findings, Verdicts
    from volbench.api.run_profiles import run
    from volbench.errors import VolbenchError

__version__ = "0.1.0"
__all__ = [
    "Chart",
    "Dataset",
    "Findings",
    "Verdicts",
    "VolbenchError",
    "__version__",
    "compare",
    "measure",
    "open_campaign",
    "open_campaigns",
    "run",
    "trend",
]
# Public name to its module, imported on first use so that ``import volbench`` stays light
_HOMES = {
    "Chart": "api.notebook",
    "Dataset": "api.many_campaigns",
    "Findings": "api.notebook",
    "Verdicts": "api.notebook",
    "VolbenchError": "errors",
    "compare": "api.compare_campaigns",
    "measure": "api.measured_workloads",
    "open_campaign": "api.many_campaigns",
    "open_campaigns": "api.many_campaigns",
    "run": "api.run_profiles",
    "trend": "api.compare_campaigns",
}


def __getattr__(name: str) -> object:
    """Import a public name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names too, for completion and ``help(volbench)``."""
    return sorted({*globals(), *__all__})
