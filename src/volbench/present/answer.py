"""Answer of an experiment in a few sentences, the same in tables, charts and reports.

The first sentence says what was measured. The others compare the values of one factor over all
settings that they share, or say what a single volume does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from statistics import median
from typing import Protocol

from volbench.analyse.compare.comparison_result import Verdict, shown_by
from volbench.analyse.compare.rate_search import searches_in
from volbench.analyse.compare.repeat_statistics import contrast, holm, shortage
from volbench.analyse.frames.design import ASKED, NAME, Design, Factor, Row, design_of
from volbench.analyse.frames.run_options import WITHIN, members_of
from volbench.analyse.frames.workload_words import factor_name, shared_limit
from volbench.model.campaign.planned_run import AUDIT
from volbench.model.frames.columns import LABEL_PREFIX, WATCHED
from volbench.model.results.finding import Severity
from volbench.model.results.steadiness import State
from volbench.present.cell_results import (
    CHANGED,
    END_IOPS,
    SYNC_CALLS,
    SYNC_P99,
    CellResult,
    cell_results,
    merged,
    mixed_totals,
)
from volbench.present.factor_words import (
    cell_words,
    listed,
    numeral,
    shown_value,
    value_names,
    value_words,
)
from volbench.present.formatting import latency, number, pattern, span_text, text, times_text
from volbench.present.rate_words import rate_sentences
from volbench.units import counted_noun, format_count, format_latency, format_percent, format_rate

MAX_NAMED = 4  # Values that a sentence names and compares in pairs
_UNTESTED = "with too few repeats to tell this from chance"
_MAX_CELLS = 3  # Workloads or sweeps with a sentence each
_MAX_ASKED = 3  # Results at an asked rate that are named
_MAX_RANKINGS = 2  # Patterns with a ranking
_MIN_SWEEP = 3  # Two settings are a pair. Noticed by: test_answer.py
# Share by which single runs differ before one is called faster: repeats of a minute agree to some
# 3 %. Noticed by: test_answer.py
_MIN_GAIN = 1.05
# Share of the highest rate from which settings are equal, of which the first is named
_EQUAL = 0.995
_NEAR = 0.9  # Share of the highest rate behind a knee. Noticed by: test_answer.py
_PLATEAU = 0.93  # Share of the highest rate from which a curve is flat. Noticed by: test_answer.py
_SAME_LIMIT = 1.3  # Ratio of plateaus up to which one limit explains them. Noticed by: the same
_WIDE = 2.0  # Ratio of gains from which they depend on the setting. Noticed by: test_answer.py
_LESS_WIDE = 0.6  # Share of that range which is left where a factor explains it
# Upper over lower end of the interval of a level at the end, up to which it is quoted.
# Noticed by: test_conclusion.py
_MAX_END = 1.5
_EVERYWHERE = ", at every setting"
_TWO_SIDES = 2.0  # Added to the range of gains of which some are losses


class Results(Protocol):
    """Campaigns whose results can be read as rows."""

    @property
    def verdict(self) -> Sequence[str]:
        """The answer of a campaign that has one of its own, such as an audit."""

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of a frame."""

    def results(self) -> list[dict[str, object]]:
        """Return finished measured results with the options of fio."""


def answer_of(results: Results, rows: Sequence[Row] | None = None) -> list[str]:
    """Return what was measured and what follows, for people; invalid results are counted alone."""
    valid, invalid = valid_results(results, results.results() if rows is None else rows)
    said = answer(design_of(valid), invalid=invalid)
    is_audit = {row.get("profile") for row in valid} <= {AUDIT}
    if verdict := results.verdict:
        said = [*said[:1], *verdict, *([] if is_audit else said[1:])]
    return [*missing_clients(results), *said, *reservations(results, valid)]


def reservations(results: Results, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what makes an answer doubtful: caches, volumes of one disk, and runs that climbed."""
    runs = {row["run"] for row in rows}
    cached = {
        row["run"]
        for row in results.rows("findings")
        if row["rule"] == "page-cache" and row["severity"] != Severity.NOTE.value
    }
    if many := len(cached & runs):
        share = f"{many} of {counted_noun(len(runs), 'run')}"
        yield f"I/O of {share} went through a cache: see volbench check --rule page-cache."
    for shared in shared_limit(results.rows("findings"), runs):
        yield f"{shared}."
    yield from _climb(results, rows)


def _climb(results: Results, rows: Sequence[Row]) -> Iterator[str]:
    """Yield how far the first of the runs climbed that began slow: their means mix two speeds."""
    found = [each for each in results.rows("findings") if each["rule"] == "cold-blocks"]
    known = [(each, json.loads(str(each["evidence"]))) for each in found]
    climbs = [(each, evidence) for each, evidence in known if evidence.get("plateau_iops")]
    runs = {row["run"] for row in rows}
    for first, evidence in [pair for pair in climbs if pair[0]["run"] in runs][:1]:
        of_job = {row["run"] for row in rows if row["job"] == first["job"]}
        many = f"{len(of_job & {each['run'] for each, _ in climbs})} of {len(of_job)} runs"
        among = f" in {many}" if len(of_job) > 1 else ""
        cold, warm = (format_count(evidence[f"{name}_iops"]) for name in ("cold", "plateau"))
        yield (
            f"{text(first, 'job')} climbed from {cold} to {warm} IOPS{among}, {evidence['cause']}:"
            " the mean mixes both speeds (volbench plot series)."
        )


def missing_clients(results: Results) -> list[str]:
    """Return the sentence on the clients that the first incomplete step lacks, if any."""
    rows = results.rows("findings")
    return [text(row, "message") for row in rows if row["rule"] == "missing-clients"][:1]


def valid_results(results: Results, rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Return valid results with what sentences need beside them, and the others in words."""
    runs = {run: row["run"] for row in rows for run in members_of(row)}
    reasons: dict[object, set[object]] = {}
    for finding in results.rows("findings"):
        if finding["severity"] == Severity.INVALID.value and finding["run"] in runs:
            reasons.setdefault(runs[finding["run"]], set()).add(finding["rule"])
    alone = {row["run"] for row in rows if row.get("iops") is None and row["run"] not in reasons}
    valid = [row for row in rows if row["run"] not in {*reasons, *alone}]
    rules = ", ".join(sorted({str(rule) for named in reasons.values() for rule in named}))
    words = [f"{counted_noun(len(reasons), 'invalid result')} ({rules})"] if reasons else []
    if any(row.get("rw") != WATCHED for row in rows if row["run"] in alone):
        words.append(f"{len(alone)} series without a result (see volbench plot series)")
    return _judged(results, valid), " and ".join(words)


def answer(design: Design, *, invalid: str = "") -> list[str]:
    """Return what was measured and what follows, in two to four lines.

    Args:
        design: of valid results.
        invalid: results that were left out, such as ``5 invalid results (page-cache)``.
    """
    rows = [row for row in design.rows if not row.get(WITHIN)]
    plain = design_of(rows) if len(rows) < len(design.rows) else design
    lines = [f"{subject(design, invalid=invalid)}."] if design.rows else []
    lines += [*rate_sentences(design), *(_findings(plain) if plain.rows else ()), *_noise(plain)]
    lines += days_apart(plain)
    lead = "Left out" if lines else "Nothing valid"
    return [*lines, *([f"{lead}: {invalid}."] if invalid else [])]


def _noise(design: Design) -> Iterator[str]:
    """Yield how many of several workloads have repeats that differ twofold: a median hides it."""
    uneven = [result.uneven for result in cell_results(design)]
    if uneven[1:] and any(uneven):
        yield (
            f"Repeats differ by up to {max(uneven):.2g} times in {sum(map(bool, uneven)):,} of"
            f" {len(uneven):,} results: a median hides that; see volbench plot series."
        )


def days_apart(design: Design) -> Iterator[str]:
    """Yield on how many days repeats were measured that are a day apart: they may be a course."""
    starts = [sorted(text(design.rows[n], "started_utc") for n in c.places) for c in design.cells]
    wide = [days for each in starts if (days := [start[:10] for start in each])[0] < days[-1]]
    spans = [date.fromisoformat(days[-1]) - date.fromisoformat(days[0]) for days in wide if days[0]]
    if spans and max(spans).days > 1:
        count = max(len({*days}) for days in wide)
        first, last = min(days[0] for days in wide), max(days[-1] for days in wide)
        yield f"Repeats were measured on {count} days, {first} to {last}: see volbench trend."


def subject(design: Design, *, invalid: str = "") -> str:
    """Return what was measured: places or what is compared, number of workloads, and repeats."""
    compared = design.compared
    settings = len(set(design.key_without(compared))) if compared else len(design.cells)
    counts = sorted(design.repeats)
    ends = " to ".join(numeral(count) for count in dict.fromkeys((counts[0], counts[-1])))
    runs = "one run" if counts == [1] else f"{ends} repeats"
    each = " each" if len(design.cells) > 1 else ""
    words = f"{counted_noun(settings, 'valid workload' if invalid else 'workload')}, {runs}{each}"
    searches = searches_in(design.rows)
    if searches and len(design.rows) == sum(len(search.places) for search in searches):
        bounds = [*dict.fromkeys(text for search in searches for text in search.within)]
        words = f"the highest rate within {listed(bounds)}"
    if design.constants.get("rw") == WATCHED:
        words = "watched"
    names = _compared_names(design)
    volumes = design.by_column.get("volume")
    if not compared and volumes and len(volumes.known) > 1:
        words += ", none on two of the volumes"
    return f"{names}: {words}" if names else words


def _judged(results: Results, rows: Sequence[Row]) -> list[Row]:
    """Return rows with the last level of rates that changed, and syncs of buffered writes."""
    ends = {
        (row["run"], row["direction"]): _end_iops(row)
        for row in results.rows("verdicts")
        if row["verdict"] in {State.STEPPED.value, State.DRIFTING.value}
    }
    syncs = {
        (row["run"], row["group"]): row
        for row in results.rows("summary")
        if row["direction"] == "sync"
    }
    judged: list[Row] = []
    for row in rows:
        key = row["run"], row["direction"]
        added: dict[str, object] = {CHANGED: key in ends, END_IOPS: ends.get(key)}
        sync = syncs.get((row["run"], row["group"]))
        if sync is not None and row.get("direct") is False and row["direction"] == "write":
            added[SYNC_P99] = latency(sync, "p99").seconds
            added[SYNC_CALLS] = text(sync, "sync_calls") or "sync"
        judged.append({**row, **added})
    return judged


def _end_iops(verdict: Row) -> float | None:
    """Return the level at the end; None where its interval is wide, as of a rate that climbs."""
    level, low, high = (number(verdict, f"level_{name}iops") for name in ("", "low_", "high_"))
    return level if high <= _MAX_END * low else None


def _compared_names(design: Design) -> str:
    """Return what is compared, or the places that were measured; empty if they are unknown."""
    factor = design.by_column.get(design.compared)
    # A volume of a pod has the same path in every pod
    for column in (f"{LABEL_PREFIX}storage_class", "volume", "host") if factor is None else ():
        if value := design.constants.get(column):
            return shown_value(column, value)
        factor = factor or design.by_column.get(column)
    if factor is None:
        return ""
    if len(factor.known) > MAX_NAMED:
        return f"{len(factor.known)} {factor_name(factor.column)}s"
    short = value_names(factor.column, factor.known)
    return listed([short[value] for value in factor.known])


def _findings(design: Design) -> Iterator[str]:
    results = cell_results(design)
    free = [result for result in results if not result.asked and result.rate > 0]
    compared = design.by_column.get(design.compared)
    if compared is None or any(result.row.get("rw") == WATCHED for result in free):
        yield from _of_one(design, free)  # a load that was watched is no speed
    else:
        ranked, left_out, reserved = ranked_results(design, compared, free)
        yield from left_out
        if len(compared.known) <= MAX_NAMED:
            yield from _of_few(design, compared, free, ranked)
        else:
            is_course = compared.column == "campaign"
            yield from (_over_time if is_course else _of_many)(design, compared, ranked)
        yield from reserved
    yield from _asked(design, [result for result in results if result.asked])


def ranked_results(
    design: Design, compared: Factor, results: Sequence[CellResult]
) -> tuple[Sequence[CellResult], Sequence[str], Sequence[str]]:
    """Return results that `volbench compare` does not refuse, why not others, and reservations."""
    is_course = compared.column == "campaign" and len(compared.known) > MAX_NAMED
    keys, facts = design.key_without(compared.column), design.facts(is_course=is_course)
    names = value_names(compared.column, compared.values)
    rows = [
        {**facts[n], "side": names[each.cell.values[compared.column]], "cell": keys[n], "label": ""}
        for each in results
        for n in each.cell.places
    ]
    varying = [name for name in facts[0] if len({row[name] for row in rows} - {None}) > 1]
    if not varying or compared.column == "arm":
        return results, [], []
    import pandas as pd  # noqa: PLC0415 - slow to import, and seldom needed

    from volbench.analyse.compare.comparability import comparable_sides  # noqa: PLC0415 - brings pandas

    found = comparable_sides(pd.DataFrame(rows), facts=varying, between=compared.column)
    sides = {value for value, name in names.items() if name in found[0]}
    return [each for each in results if each.cell.values[compared.column] in sides], *found[1:]


def _asked(design: Design, results: Sequence[CellResult]) -> Iterator[str]:
    """Yield each result at a rate that fio was asked to keep: it ranks nowhere."""
    compared = design.by_column.get(design.compared)
    short = value_names(compared.column, compared.values) if compared else {}
    for result in results[:_MAX_ASKED]:
        name = short[result.cell.values[compared.column]] if compared else ""
        if not name or len(results) > 1:
            words = cell_words(design, result.cell, without=(design.compared, *ASKED))
            name = ", ".join(filter(None, [name, words]))
        yield f"{name}: {result.asked_words}."
    if len(results) > _MAX_ASKED:
        yield f"{counted_noun(len(results) - _MAX_ASKED, 'more result')} at what was asked for."


def by_value_of(
    design: Design, compared: Factor, results: Sequence[CellResult]
) -> dict[object, dict[Hashable, CellResult]]:
    """Return value to setting to result, without unknown values."""
    keys = design.key_without(compared.column)
    found: dict[object, dict[Hashable, list[CellResult]]] = {value: {} for value in compared.known}
    for result in results:
        value = result.cell.values[compared.column]
        if value is not None:
            found[value].setdefault(keys[result.cell.places[0]], []).append(result)
    return {
        value: {key: merged(cells) for key, cells in of_value.items()}
        for value, of_value in found.items()
        if of_value
    }


def by_setting(
    by_value: Mapping[object, Mapping[Hashable, CellResult]],
) -> dict[Hashable, list[tuple[object, CellResult]]]:
    """Return setting to the values there with their results."""
    settings: dict[Hashable, list[tuple[object, CellResult]]] = {}
    for value, of_value in by_value.items():
        for key, result in of_value.items():
            settings.setdefault(key, []).append((value, result))
    return settings


# A few values, compared in pairs


@dataclass(frozen=True)
class Gain:
    """The rate of one value over that of another at one setting."""

    values: Mapping[str, object]  # of the factors
    ratio: float
    verdict: Verdict
    is_repeated: bool = True

    @property
    def side(self) -> int:
        """1 for a gain, -1 for a loss, 0 for neither."""
        return {Verdict.FASTER: 1, Verdict.SLOWER: -1}.get(self.verdict, 0)


def _of_few(
    design: Design, compared: Factor, results: Sequence[CellResult], ranked: Sequence[CellResult]
) -> Iterator[str]:
    by_value = by_value_of(design, compared, results)
    short = value_names(compared.column, compared.values)
    if len(by_value) < 2:
        yield from _of_one(design, results)
        return
    kept = by_value_of(design, compared, ranked)
    first, *others = sorted(kept, key=lambda value: -_standing(kept, value)) or [None]
    pairs = {other: _gains(kept[first], kept[other]) for other in others}
    pairs = {other: gains for other, gains in pairs.items() if gains}
    even = [
        other
        for other, gains in pairs.items()
        if {gain.side for gain in gains} == {1} and not _split(design, gains)
    ]
    if even:
        words = [
            f"{_times(pairs[other])} as fast as {short[other]}{_once(pairs[other])}"
            for other in even
        ]
        shared = {len(pairs[other]) for other in even}
        yield f"{short[first]} is {listed(words)}{_where_words(design, max(shared))}."
    for other in (other for other in pairs if other not in even):
        name, base, whole = first, other, pairs[other]
        is_base = compared.values.index(first) < compared.values.index(other)
        if is_base and not any(gain.side for gain in whole):  # as in `volbench compare`
            name, base, whole = other, first, _gains(kept[other], kept[first])
        parts = _split(design, whole) or [("", whole)]
        words = [_gain_words(short[name], short[base], gains, where) for where, gains in parts]
        places = _where_words(design, len(pairs[other]))
        yield f"{'; '.join(words)}{'' if places == _EVERYWHERE else places}."
    if len(set(design.key_without(compared.column))) == 1:
        only = {value: next(iter(of_value.values())) for value, of_value in by_value.items()}
        yield " ".join(f"{short[value]}: {each.full_words}." for value, each in only.items())
    yield from filter(None, [_limits_sentence(design, by_value, short)])


def _where_words(design: Design, shared: int) -> str:
    """Return at how many of its settings values were compared; empty where there is one."""
    settings = len(set(design.key_without(design.compared)))
    if settings == 1:
        return ""
    if shared == settings:
        return _EVERYWHERE
    return f"; both were measured at {numeral(shared)} of {settings} settings"


def _standing(by_value: Mapping[object, Mapping[Hashable, CellResult]], value: object) -> float:
    """Return how a value stands against the others: the mean logarithm of its gains."""
    gains = [
        math.log(gain.ratio)
        for other in by_value
        for gain in _gains(by_value[value], by_value[other])
    ]
    return sum(gains) / len(gains)


def _gains(
    first: Mapping[Hashable, CellResult], other: Mapping[Hashable, CellResult]
) -> list[Gain]:
    return gains_of([(first[key], other[key]) for key in first if key in other])


def gains_of(pairs: Sequence[tuple[CellResult, CellResult]]) -> list[Gain]:
    """Return the ratios of pairs of results, judged together as `volbench compare` judges them."""
    groups = [(other.group, first.group) for first, other in pairs]
    found = [None if shortage(*each) else contrast(*each) for each in groups]
    levels = iter(holm([ratio.p_value for ratio in found if ratio]))
    return [
        Gain(
            first.cell.values,
            ratio.estimate if ratio.unit == "blocks" else first.rate / other.rate,
            shown_by(ratio, next(levels)),
        )
        if ratio
        else _untested_gain(first, other)
        for (first, other), ratio in zip(pairs, found, strict=True)
    ]


def _untested_gain(first: CellResult, other: CellResult) -> Gain:
    """Return the ratio of few repeats: clear if their gap exceeds the range of either side."""
    ratio = first.rate / other.rate
    low, high = sorted((first.rates, other.rates), key=median)
    is_repeated = len(low) > 1 and len(high) > 1
    is_clear = not 1 / _MIN_GAIN < ratio < _MIN_GAIN
    if is_repeated:
        is_clear = all(min(high) * min(each) > max(low) * max(each) for each in (low, high))
    side = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    return Gain(first.cell.values, ratio, side if is_clear else Verdict.TOO_FEW, is_repeated)


def _split(design: Design, gains: Sequence[Gain]) -> list[tuple[str, list[Gain]]]:
    """Return gains in two parts, by the factor that they depend on; none where they are alike."""
    whole = _disorder(gains)
    if whole < math.log(_WIDE):
        return []
    best: list[tuple[str, list[Gain]]] = []
    least = _LESS_WIDE * whole
    for factor in design.factors:
        if factor.column in {design.compared, NAME}:
            continue
        for parts in _parts(factor, gains):
            disorder = max(_disorder(part) for _, part in parts)
            if disorder < least:
                best, least = parts, disorder
    return best


def _disorder(gains: Sequence[Gain]) -> float:
    """Return the logarithm of the range of gains, more where some are losses."""
    logarithms = [math.log(gain.ratio) for gain in gains]
    is_mixed = len({gain.side for gain in gains}) > 1
    return max(logarithms) - min(logarithms) + _TWO_SIDES * is_mixed


def _parts(factor: Factor, gains: Sequence[Gain]) -> Iterator[list[tuple[str, list[Gain]]]]:
    """Yield gains in two parts: up to a value and from the next on, or by two categories."""
    column = factor.column
    values = [value for value in factor.known if any(g.values[column] == value for g in gains)]
    if len(values) > 2 and not factor.is_ordered:
        return
    for place in range(1, len(values)):
        lower, upper = values[:place], values[place:]
        below, above = value_words(column, lower[-1]), value_words(column, upper[0])
        if factor.is_ordered:
            below = f"at {below}" if len(lower) == 1 else f"up to {below}"
            above = f"at {above}" if len(upper) == 1 else f"from {above} on"
        else:
            below, above = f"for {below}", f"for {above}"
        yield [
            (below, [gain for gain in gains if gain.values[column] in lower]),
            (above, [gain for gain in gains if gain.values[column] in upper]),
        ]


def _gain_words(name: str, other: str, gains: Sequence[Gain], where: str) -> str:
    there, once = f" {where}" if where else "", _once(gains)
    faster = [gain.ratio for gain in gains if gain.side == 1]
    slower = [gain.ratio for gain in gains if gain.side == -1]
    unclear = [gain for gain in gains if not gain.side]
    verdict: str = max((gain.verdict for gain in unclear), key=[*Verdict].index, default="")
    is_untested = verdict == Verdict.TOO_FEW
    if len(unclear) == len(gains):
        verdict, times = _UNTESTED if is_untested else verdict, _times(gains)
        return f"{name} measured {times} as fast as {other}{there}, {verdict}"
    if len(slower) == len(gains):
        inverse = times_text([1 / ratio for ratio in slower])
        return f"{other} is {inverse} as fast as {name}{once}{there}"
    if len(faster) == len(gains):
        return f"{name} is {_times(gains)} as fast as {other}{once}{there}"
    sides = (("faster", faster), ("slower", slower))
    first, *others = (f"{side} at {len(part)} ({times_text(part)})" for side, part in sides if part)
    first = first.replace(" (", f" of {len(gains)} settings{there} (")
    verdict = "too few repeats to tell" if is_untested else verdict
    parts = [first, *others, *([f"{verdict} at {len(unclear)}"] if unclear else [])]
    return f"{name} against {other}{once}: {', '.join(parts)}"


def _times(gains: Sequence[Gain]) -> str:
    return times_text([gain.ratio for gain in gains])


def _once(gains: Sequence[Gain]) -> str:
    return "" if all(gain.is_repeated for gain in gains) else " in single runs"


# Limits: what a rate does not exceed however deep the queue is


def _limits_sentence(
    design: Design,
    by_value: Mapping[object, Mapping[Hashable, CellResult]],
    short: Mapping[object, str],
) -> str:
    options = (design.by_column.get(name) for name in ("iodepth", "numjobs"))
    swept = next((each.column for each in options if each and len(each.known) >= _MIN_SWEEP), "")
    curve = {design.compared, swept, "rw", "direction", "block_bytes"}
    if not swept or {*design.by_column} - curve:
        return ""
    limits = {
        value: _limit_words(design, swept, [*results.values()])
        for value, results in by_value.items()
    }
    return " ".join(f"{short[value]}: {words}." for value, words in limits.items() if words)


def _limit_words(design: Design, option: str, results: Sequence[CellResult]) -> str:
    """Return limits of IOPS and of bandwidth; empty unless most curves are flat at their end."""
    keys = design.key_without(option)
    curves: dict[Hashable, list[CellResult]] = {}
    for result in results:
        if result.row.get(option) is not None and not math.isnan(result.iops):
            curves.setdefault(keys[result.cell.places[0]], []).append(result)
    long = [curve for curve in curves.values() if len(curve) >= _MIN_SWEEP]
    flat = [since for curve in long if (since := _flat_since(option, curve))]
    if 2 * len(flat) <= len(long):
        return ""
    ends = [[r for r in curve if number(r.row, option) >= max(flat)] for curve in long]
    levels = [median(result.iops for result in end) for end in ends]
    fast = [
        end for end, level in zip(ends, levels, strict=True) if level * _SAME_LIMIT >= max(levels)
    ]
    wide = [end for end in ends if end not in fast]
    words = f"{span_text([r.iops for end in fast for r in end], format_count)} IOPS"
    rates = [result.bw_bytes_per_s for end in wide for result in end]
    if wide:
        words += _sizes(fast)
    if wide and max(rates) <= _SAME_LIMIT * min(rates):
        words += f" and {span_text(rates, format_rate)}{_sizes(wide)}"
    return f"{words} from {value_words(option, max(flat))} on"


def _sizes(curves: Sequence[Sequence[CellResult]]) -> str:
    blocks = sorted({number(result.row, "block_bytes") for curve in curves for result in curve})
    return f" at {listed([shown_value('block_bytes', size) for size in blocks])}"


def _flat_since(option: str, curve: Sequence[CellResult]) -> float:
    """Return the setting from which on a curve no longer rises; 0 where it rises to the end."""
    points = sorted(curve, key=lambda result: number(result.row, option), reverse=True)
    best = max(point.iops for point in points)
    flat = [*takewhile(lambda point: point.iops >= _PLATEAU * best, points)]
    return number(flat[-1].row, option) if len(flat) > 1 else 0.0


# Many values: a ranking, or a course over time


def _of_many(design: Design, compared: Factor, results: Sequence[CellResult]) -> Iterator[str]:
    """Yield the ranking of each pattern at the setting that most values share."""
    at = by_setting(by_value_of(design, compared, results))
    short = value_names(compared.column, compared.values)
    alike = (compared.column, *design.nested_places(compared.column))
    patterns: set[str] = set()
    for there in sorted(at.values(), key=lambda there: -len(there)):
        kind = pattern(there[0][1].row)
        if kind in patterns or len(patterns) == _MAX_RANKINGS or len(there) < 2:
            continue
        patterns.add(kind)
        (first, fastest), *_, (last, slowest) = sorted(there, key=lambda pair: -pair[1].rate)
        middle = format_count(median(result.rate for _, result in there))
        where = cell_words(design, fastest.cell, without=alike)
        total = len(compared.known)
        share = f"all {total}" if len(there) == total else f"{len(there)} of {total}"
        yield (
            f"{where}, measured on {share}: {short[first]} is the fastest"
            f" ({fastest.rate_words}), the median is {middle}, {short[last]} the slowest"
            f" ({slowest.rate_words})."
        )


def _over_time(design: Design, compared: Factor, results: Sequence[CellResult]) -> Iterator[str]:
    by_value = by_value_of(design, compared, results)
    last = compared.known[-1]
    earlier = [of_value for value, of_value in by_value.items() if value != last]
    gains = []
    for key, result in by_value.get(last, {}).items():
        before = [of_value[key].rate for of_value in earlier if key in of_value]
        if before:
            gain = Gain(result.cell.values, result.rate / median(before), Verdict.FASTER)
            gains.append((gain, result))
    if not gains:
        return
    _, lowest = min(gains, key=lambda pair: pair[0].ratio)
    alike = (compared.column, *design.nested_places(compared.column))
    where = cell_words(design, lowest.cell, without=alike)
    yield (
        f"{shown_value(compared.column, last)}, the last of them, is"
        f" {_times([gain for gain, _ in gains])} as fast as the median of the"
        f" {len(compared.known) - 1} before{f', least for {where}' if len(gains) > 1 else ''}."
    )


# Nothing to compare


def _of_one(design: Design, results: Sequence[CellResult]) -> Iterator[str]:
    if not results:
        return
    totals = mixed_totals(results)
    names = {id(result): cell_words(design, result.cell) for result in results}
    names |= {id(total): total_name(design, total) for total in totals}
    swept = {"iodepth", "numjobs", "block_bytes"} & {*design.by_column}
    keys = design.key_without(*swept)
    sweeps: dict[Hashable, list[CellResult]] = {}
    for result in results:
        sweeps.setdefault(keys[result.cell.places[0]], []).append(result)
    if len(results) < _MIN_SWEEP or len(sweeps) == len(results) <= _MAX_CELLS:
        for result in results:
            yield f"{names[id(result)]}: {result.full_words}."
    elif len(sweeps) <= _MAX_CELLS:
        for sweep in sweeps.values():
            yield _sweep_sentence(design, sweep)
    else:
        fastest = max([*results, *totals], key=lambda result: result.rate)
        widest = max([*results, *totals], key=lambda result: result.bw_bytes_per_s)
        yield f"Most IOPS: {fastest.full_words} ({names[id(fastest)]})."
        if widest is not fastest:
            yield f"Most bandwidth: {widest.bandwidth_words} ({names[id(widest)]})."
        return
    for total in totals[:_MAX_CELLS]:
        yield f"{names[id(total)]}: {total.full_words}."


def total_name(design: Design, total: CellResult) -> str:
    """Return what was read and written in a mixed cell."""
    return f"{cell_words(design, total.cell, without=('direction',))}, reads and writes together"


def _sweep_sentence(design: Design, sweep: Sequence[CellResult]) -> str:
    """Return the range of a sweep, its highest rates, and the smallest setting that comes close."""
    options = [
        name
        for name in ("block_bytes", "iodepth", "numjobs")
        if len({result.row.get(name) for result in sweep}) > 1
    ]
    if not options:
        return f"{cell_words(design, sweep[0].cell)}: {sweep[0].full_words}."

    def setting(result: CellResult) -> str:
        return " and ".join(value_words(name, result.row.get(name)) for name in options)

    ordered = sorted(sweep, key=lambda result: [number(result.row, name) for name in options])
    most = max(result.rate for result in ordered)
    best = next(result for result in ordered if result.rate >= _EQUAL * most)
    worst = min(ordered, key=lambda result: result.rate)
    widest = max(ordered, key=lambda result: result.bw_bytes_per_s)
    sentence = (
        f"{cell_words(design, best.cell, without=options)}: {worst.rate_words} at"
        f" {setting(worst)} to {best.rate_words} at {setting(best)} ({', '.join(best.more_words)})"
    )
    if widest is not best and "block_bytes" in options:
        sentence += f"; {widest.bandwidth_words} at {setting(widest)}"
    near = next(result for result in ordered if result.rate >= _NEAR * best.rate)
    if near is not best and "block_bytes" not in options:
        sentence += f"; {setting(near)} reaches {format_percent(near.rate / best.rate)} of that"
        sentence += f" at p99 {format_latency(near.p99_s)}" if near.p99_s > 0 else ""
    return f"{sentence}."
