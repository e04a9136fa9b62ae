"""volbench: benchmark storage volumes with fio, from a YAML profile to frames, charts and a report.

>>> import volbench
>>> campaign = volbench.open_campaign("results/quick")  # doctest: +SKIP
>>> campaign.summary()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volbench.api import CampaignData, open_campaign
    from volbench.compare_campaigns import compare, trend
    from volbench.dataset import Dataset, open_campaigns
    from volbench.errors import VolbenchError

__version__ = "0.1.0"
__all__ = [
    "CampaignData",
    "Dataset",
    "VolbenchError",
    "__version__",
    "compare",
    "open_campaign",
    "open_campaigns",
    "trend",
]


def __getattr__(name: str) -> object:
    """Import the public names on first use, so that ``import volbench`` stays light."""
    if name in {"CampaignData", "open_campaign"}:
        from volbench import api  # noqa: PLC0415 - lazy on purpose: pandas is slow to import

        return getattr(api, name)
    if name in {"compare", "trend"}:
        from volbench import compare_campaigns  # noqa: PLC0415 - same

        return getattr(compare_campaigns, name)
    if name in {"Dataset", "open_campaigns"}:
        from volbench import dataset  # noqa: PLC0415 - same

        return getattr(dataset, name)
    if name == "VolbenchError":
        from volbench.errors import VolbenchError  # noqa: PLC0415 - same

        return VolbenchError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
