"""What a provider says of a kind of volume: its limits as rules of size and of what is bought.

Nothing is worked out here: `volbench.plan.volume_types.evaluate` makes `Limits` of a type.
"""

from __future__ import annotations

from collections.abc import Iterator

from volbench.model.base import Frozen


class Rule(Frozen):
    """A straight line over size and what is provisioned, between two bounds.

    Attributes:
        base: what every volume has.
        per_gib: more for each GiB of the volume.
        per_iops: more for each provisioned I/O operation a second.
        per_mib_s: more for each provisioned MiB/s.
        least: never below; None for no bound.
        most: never above; None for no bound.
        above_bytes: it holds for larger volumes only; 0 for all.
        below_bytes: it holds for smaller volumes only; 0 for all.
    """

    base: float = 0.0
    per_gib: float = 0.0
    per_iops: float = 0.0
    per_mib_s: float = 0.0
    least: float | None = None
    most: float | None = None
    above_bytes: int = 0
    below_bytes: int = 0

    @property
    def needs_size(self) -> bool:
        """Tell whether it can't be worked out without the size of the volume."""
        return bool(self.per_gib or self.above_bytes or self.below_bytes)


Rules = tuple[Rule, ...]
"""The lowest of them is what counts; none at all says that nothing is promised."""


class Provision(Frozen):
    """What is bought beside the size.

    Attributes:
        included: what a volume has when nothing is bought; None where one has to choose.
        least: that can be asked for.
        most: that can be asked for.
    """

    included: float | None = None
    least: Rules = ()
    most: Rules = ()


class TypeSource(Frozen):
    """Where a fact comes from.

    Attributes:
        title: of the page, with its publisher.
        url: may be empty.
    """

    title: str
    url: str = ""


class VolumeType(Frozen):
    """A kind of volume that can be bought.

    Attributes:
        name: with its provider, such as ``aws/gp2``.
        title: what the provider calls it.
        source: the page its limits are from.
        checked: when somebody compared them, ISO 8601.
        note: what the limits leave out.
        size_bytes: of a type that comes in one size; 0 for others.
        least_bytes: the smallest volume.
        most_bytes: the largest volume.
        tiers: the types of one size each, ascending, that a volume of this type may be.
        buys_iops: how I/O operations a second are bought; None where they are not.
        buys_bandwidth: how bandwidth is bought; None where it is not.
        iops: sustained, where it is not bought.
        bandwidth: sustained, in bytes a second, where it is not bought.
        write_iops: of writes, where it is not that of reads.
        write_bandwidth: of writes, where it is not that of reads.
        burst_iops: while credits last.
        burst_ios: credits of a full bucket, in I/Os.
        burst_bandwidth: while credits last, in bytes a second.
        burst_bytes: credits of a full bucket, in bytes.
        burst_s: how long full buckets last at the burst rate, where that is what is told of them.
    """

    name: str
    title: str
    source: TypeSource
    checked: str
    note: str = ""
    size_bytes: int = 0
    least_bytes: int = 0
    most_bytes: int = 0
    tiers: tuple[VolumeType, ...] = ()
    buys_iops: Provision | None = None
    buys_bandwidth: Provision | None = None
    iops: Rules = ()
    bandwidth: Rules = ()
    write_iops: Rules = ()
    write_bandwidth: Rules = ()
    burst_iops: Rules = ()
    burst_ios: Rules = ()
    burst_bandwidth: Rules = ()
    burst_bytes: Rules = ()
    burst_s: float | None = None

    @property
    def needs_size(self) -> bool:
        """Tell whether its limits depend on the size, which it does not tell itself."""
        return not self.size_bytes and (
            bool(self.tiers) or any(rule.needs_size for rule in self._rules())
        )

    @property
    def is_one_for_all(self) -> bool:
        """Tell whether reads and writes have the same limits."""
        return not (self.write_iops or self.write_bandwidth)

    def _rules(self) -> Iterator[Rule]:
        for bought in (self.buys_iops, self.buys_bandwidth):
            if bought is not None:
                yield from (*bought.least, *bought.most)
        yield from (*self.iops, *self.bandwidth, *self.write_iops, *self.write_bandwidth)
        yield from (*self.burst_iops, *self.burst_ios, *self.burst_bandwidth, *self.burst_bytes)


class Wanted(Frozen):
    """A volume of a type whose limits wait for its size, or for what is done to it.

    Attributes:
        type: with all it says, so that no file is needed later.
        size_bytes: None when the volume itself is to tell.
        iops: that is bought; None for what is included.
        bandwidth_bytes_per_s: that is bought; None for what is included.
    """

    type: VolumeType
    size_bytes: int | None = None
    iops: float | None = None
    bandwidth_bytes_per_s: float | None = None
