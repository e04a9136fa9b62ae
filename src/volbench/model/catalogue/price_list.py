"""What machines and volumes cost: the nouns of a file of prices, and their sums.

Hourly and monthly prices are kept apart, because providers give discounts on one of them; the
other is worked out with the hours of a month only where it is missing.
"""

from __future__ import annotations

from pydantic import Field

from volbench.model.base import Frozen
from volbench.model.catalogue.volume_type import TypeSource

HOURS_PER_MONTH = 730.0
"""365 x 24 / 12, as providers count."""

GIB = 1 << 30


class Metered(Frozen):
    """A price for what is provisioned beside the size.

    Attributes:
        monthly: of one unit.
        unit: how much one unit is: 1 I/O operation a second, or bytes a second.
        included: what costs nothing, in operations or bytes a second.
    """

    monthly: float
    unit: float = 1.0
    included: float = 0.0

    def month(self, provisioned: float) -> float:
        """Return what a month of something provisioned costs."""
        return max(0.0, provisioned - self.included) / self.unit * self.monthly


class Burst(Frozen):
    """What it costs to be faster than what is provisioned.

    Attributes:
        monthly: for being allowed to.
        per_million_ios: for each million of I/Os above what is provisioned.
    """

    monthly: float = 0.0
    per_million_ios: float = 0.0


class Initialisation(Frozen):
    """What is paid once, when a volume is made or filled from a snapshot.

    Attributes:
        once: for each volume.
        per_gib: for each GiB of it.
    """

    once: float = 0.0
    per_gib: float = 0.0


class Price(Frozen):
    """What a machine or a volume costs.

    Attributes:
        name: of the flavor, or of the volume type with its provider.
        family: what it belongs to; empty when nobody told.
        provider: empty when nobody told.
        region: that the price holds in.
        checked: when it was looked up, ISO 8601.
        source: where.
        hourly: None where it is billed by the month only.
        monthly: None where it is billed by the hour only.
        per_gib_month: for each GiB and month.
        iops: for provisioned I/O operations a second.
        bandwidth: for provisioned bandwidth.
        burst: for bursts that are paid for; not a part of the monthly cost.
        initialisation: paid once; not a part of the monthly cost.
    """

    name: str
    family: str = ""
    provider: str = ""
    region: str = ""
    checked: str = ""
    source: TypeSource = TypeSource(title="")
    hourly: float | None = None
    monthly: float | None = None
    per_gib_month: float = 0.0
    iops: Metered | None = None
    bandwidth: Metered | None = None
    burst: Burst | None = None
    initialisation: Initialisation | None = None

    @property
    def needs_size(self) -> bool:
        """Tell whether it can't be summed up without the size of a volume."""
        return bool(self.per_gib_month)

    def month(
        self,
        *,
        hours_per_month: float = HOURS_PER_MONTH,
        size_bytes: float = 0.0,
        iops: float = 0.0,
        bandwidth_bytes_per_s: float = 0.0,
    ) -> float:
        """Return what a month costs, without bursts and without what is paid once.

        Args:
            hours_per_month: turns an hourly price into a monthly one, where there is no such.
            size_bytes: of the volume.
            iops: that are provisioned.
            bandwidth_bytes_per_s: that is provisioned.
        """
        fixed = self.monthly
        if fixed is None:
            fixed = (self.hourly or 0.0) * hours_per_month
        metered = self._metered(size_bytes, iops, bandwidth_bytes_per_s)
        return fixed + metered

    def for_hours(
        self,
        hours: float,
        *,
        hours_per_month: float = HOURS_PER_MONTH,
        size_bytes: float = 0.0,
        iops: float = 0.0,
        bandwidth_bytes_per_s: float = 0.0,
    ) -> float:
        """Return what some hours cost: by the hour where there is such a price.

        Args:
            hours: how long it is kept.
            hours_per_month: turns monthly prices into hourly ones, where there are no such.
            size_bytes: of the volume.
            iops: that are provisioned.
            bandwidth_bytes_per_s: that is provisioned.
        """
        hourly = self.hourly
        if hourly is None:
            hourly = (self.monthly or 0.0) / hours_per_month
        metered = self._metered(size_bytes, iops, bandwidth_bytes_per_s)
        return hours * (hourly + metered / hours_per_month)

    def once(self, *, size_bytes: float = 0.0) -> float:
        """Return what is paid once."""
        if self.initialisation is None:
            return 0.0
        return self.initialisation.once + self.initialisation.per_gib * size_bytes / GIB

    def _metered(self, size_bytes: float, iops: float, bandwidth_bytes_per_s: float) -> float:
        """Return what a month costs of all that is counted."""
        total = self.per_gib_month * size_bytes / GIB
        total += self.iops.month(iops) if self.iops else 0.0
        total += self.bandwidth.month(bandwidth_bytes_per_s) if self.bandwidth else 0.0
        return total


class Prices(Frozen):
    """A file of prices.

    Attributes:
        path: it was read from.
        currency: such as ``USD``; one for the whole file.
        hours_per_month: turns hourly prices into monthly ones and back.
        flavors: machines by name.
        volume_types: by name, such as ``aws/gp3``.
    """

    path: str
    currency: str
    hours_per_month: float = HOURS_PER_MONTH
    flavors: dict[str, Price] = Field(default_factory=dict)
    volume_types: dict[str, Price] = Field(default_factory=dict)
