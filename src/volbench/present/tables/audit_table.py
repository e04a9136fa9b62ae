"""Page of an audit: what volumes deliver of what is promised, as a table and as a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np
import pandas as pd

from volbench.analyse.compare.promised_limits import DELIVERED_SECOND, MARGIN, Delivery, Outcome
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.analyse.frames.job_frames import plain_rows
from volbench.present.formatting import MISSING, number, printable, text
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_duration, format_latency, gain_words, percent


def audit_table(found: Sequence[Delivery]) -> Table[Delivery]:
    """Return a row for each limit of each volume, the worst first."""
    several = {
        name: len({getattr(delivery, name) for delivery in found}) > 1
        for name in ("campaign", "host", "volume")
    }
    columns = (
        *(
            Column[Delivery](name, attrgetter(name), priority=IDENTITY)
            for name, differs in several.items()
            if differs
        ),
        Column[Delivery]("limit", lambda each: each.limit, priority=IDENTITY),
        Column[Delivery]("verdict", verdict_words, priority=IDENTITY, is_folded=True),
        Column[Delivery]("promised", _promised, priority=1, is_right=True),
        Column[Delivery]("delivered", _with_interval, priority=1, is_right=True, is_folded=True),
        Column[Delivery]("time", _time, header="share of time", priority=3, is_right=True),
        Column[Delivery]("bottleneck", _bottleneck, priority=4, is_folded=True),
    )
    return Table("audit", columns, found, record=_record)


def audit_notes(found: Sequence[Delivery], latencies: pd.DataFrame) -> Iterator[str]:
    """Yield the verdict on each volume, its share of time, and its latency at queue depth 1."""
    yield (
        "delivered: mean over the seconds that the host did not disturb, with its 95 % interval."
        f" {100 * (1 - MARGIN):.0f} % of the promised rate counts as delivered."
    )
    yield f"share of time: seconds with {100 * DELIVERED_SECOND:.0f} % of the promised rate."
    for name, source in dict.fromkeys(
        (each.promise.name, each.promise.source)
        for each in found
        if each.promise.name and each.promise.source
    ):
        yield f"Source of the promise ({printable(name)}): {printable(source)}."
    yield from _depth_lines(found)
    for delivery in found:
        yield from _of_time(delivery)
    yield from _latency_lines(latencies)
    worst = _by_volume(found)
    for delivery in found:
        if delivery.reason and delivery not in worst:
            yield f"{delivery.limit}: {verdict_words(delivery)}; {delivery.reason}."
    for delivery in worst:
        yield _verdict_line(delivery, is_on_local=len({each.host for each in found}) == 1)
    if len(worst) > 1:
        yield f"{_counted(worst)}."


def audit_words(found: Sequence[Delivery]) -> str:
    """Return the verdict on the worst volume; of several volumes first the number of each."""
    worst = _by_volume(found)
    line = _verdict_line(worst[0], is_on_local=len({each.host for each in found}) == 1)
    return line if len(worst) == 1 else f"{_counted(worst)}. The worst: {line}"


def _by_volume(found: Sequence[Delivery]) -> list[Delivery]:
    worst: dict[tuple[str, str, str], Delivery] = {}
    for delivery in found:  # the worst first
        worst.setdefault((delivery.campaign, delivery.host, delivery.volume), delivery)
    return list(worst.values())


def _counted(worst: Sequence[Delivery]) -> str:
    counts = Counter(delivery.outcome.value for delivery in worst)
    of_each = ", ".join(f"{counts[name]} {name}" for name in Outcome if counts[name])
    return f"{len(worst)} volumes: {of_each}"


def verdict_words(delivery: Delivery) -> str:
    """Return the verdict, with the shortfall and its interval where there is one."""
    if delivery.outcome is not Outcome.FALLS_SHORT:
        return delivery.outcome.value
    if delivery.shortfall.low <= MARGIN:  # the rate is as promised on average, not at all times
        return f"{delivery.outcome.value} in time"
    return f"{delivery.outcome.value} by {_percents(delivery.shortfall)}"


def _percents(shares: Interval) -> str:
    low, middle, high = (
        percent(max(0.0, end)) for end in (shares.low, shares.estimate, shares.high)
    )
    return f"{middle} % [{low}, {high}]"


def _promised(delivery: Delivery) -> str:
    rate = delivery.promise.rate
    return MISSING if math.isnan(rate) else delivery.words(rate)


def _delivered(delivery: Delivery) -> str:
    return delivery.words(delivery.rate.estimate)


def _with_interval(delivery: Delivery) -> str:
    rate = delivery.rate
    if math.isnan(rate.high) or not rate.estimate:
        return _delivered(delivery)
    if delivery.is_wide:
        return f"{_delivered(delivery)} [{delivery.words(rate.low)}, {delivery.words(rate.high)}]"
    return f"{_delivered(delivery)} ± {percent(rate.high / rate.estimate - 1)} %"


def _time(delivery: Delivery) -> str:
    return MISSING if math.isnan(delivery.share.low) else _percents(delivery.share)


def _bottleneck(delivery: Delivery) -> str:
    return "; ".join(delivery.causes) or MISSING


def _depth_lines(found: Sequence[Delivery]) -> Iterator[str]:
    gains: dict[tuple[str, str], float] = {}
    for delivery in found:
        if not delivery.seconds:  # no run measured it, which its reason says
            continue
        key = delivery.limit, ", ".join(map(str, delivery.depths))
        gains[key] = float(np.fmax(gains.get(key, delivery.gain), delivery.gain))
    for (limit, tried), gain in gains.items():
        gained = f"tried; the deepest queue {gain_words(gain)}"
        if math.isnan(gain):
            gained = "tried; the host disturbed the deepest queues" if "," in tried else "only"
        yield f"{limit}: {tried} I/Os in flight {gained}."


def _of_time(delivery: Delivery) -> Iterator[str]:
    promised = delivery.promise.time_share
    if math.isnan(promised):
        return
    claim = f"{delivery.limit}, {percent(promised)} % of the time:"
    if delivery.time_outcome is Outcome.DELIVERS:
        yield f"{claim} delivered, at least {percent(delivery.share.low)} %."
    elif delivery.outcome is Outcome.DELIVERS:
        more = delivery.more_s
        enough = f"; about {format_duration(more)} more would decide" if more > 0 else ""
        yield (
            f"{claim} undecided after {format_duration(delivery.seconds)}"
            f" ({delivery.effective:.0f} independent seconds){enough}."
        )


def _latency_lines(rows: pd.DataFrame) -> Iterator[str]:
    groups = rows.groupby(["host", "volume", "direction", "block_bytes"], sort=False)
    several = len(rows[["host", "volume"]].drop_duplicates()) > 1
    for _, repeats in groups:
        row = plain_rows(repeats.head(1))[0]
        volume = f" of {text(row, 'host')} {text(row, 'volume')}" if several else ""
        middle, tail = (float(repeats[name].median()) for name in ("p50", "p99"))
        yield (
            f"Latency at queue depth 1{volume}, {text(row, 'direction')} of"
            f" {number(row, 'block_bytes') / 1024:g} KiB: median {format_latency(middle)},"
            f" p99 {format_latency(tail)}."
        )


def _verdict_line(delivery: Delivery, *, is_on_local: bool) -> str:
    where = delivery.volume if is_on_local else f"{delivery.host} {delivery.volume}"
    name = f" ({delivery.promise.name})" if delivery.promise.name else ""
    line = f"{printable(where)}{name}: {verdict_words(delivery)}"
    if delivery.outcome is Outcome.NOT_PROMISED:
        return f"{line}, {delivery.limit}. To audit it, measure with --type or --set limits."
    line += f", {delivery.direction} {_delivered(delivery)} of {_promised(delivery)}"
    if delivery.outcome is Outcome.FALLS_SHORT and delivery.causes:
        line += f"; bottleneck: {_bottleneck(delivery)}"
    return f"{line}; {delivery.reason}." if delivery.reason else f"{line}."


def _record(delivery: Delivery) -> dict[str, object]:
    promise, rate, share = delivery.promise, delivery.rate, delivery.share
    return {
        "campaign": delivery.campaign,
        "host": delivery.host,
        "volume": delivery.volume,
        "limit": delivery.limit,
        "verdict": delivery.outcome.value,
        "promised": promise.rate,
        "type": promise.name,
        "source": promise.source,
        "delivered": rate.estimate,
        "delivered_low": rate.low,
        "delivered_high": rate.high,
        "shortfall_percent": 100 * delivery.shortfall.estimate,
        "shortfall_low_percent": 100 * delivery.shortfall.low,
        "shortfall_high_percent": 100 * delivery.shortfall.high,
        "time_percent": 100 * share.estimate,
        "time_low_percent": 100 * share.low,
        "time_high_percent": 100 * share.high,
        "promised_time_percent": 100 * promise.time_share,
        "time_verdict": delivery.time_outcome.value,
        "queue_depths": ", ".join(map(str, delivery.depths)),
        "gain_percent": 100 * delivery.gain,
        "seconds": delivery.seconds,
        "effective_seconds": delivery.effective,
        "more_s": delivery.more_s,
        "bottleneck": _bottleneck(delivery),
        "reason": delivery.reason,
    }
