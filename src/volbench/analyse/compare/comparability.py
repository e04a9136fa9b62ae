"""Comparability of runs: invalid runs are excluded, differing facts are refused or reported.

Rows have a ``side`` and a ``cell``; all rows of one side in one cell are pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pandas as pd

from volbench.analyse.frames.job_frames import plain_values
from volbench.analyse.frames.workload_words import factor_name, first_names, value_text
from volbench.errors import ComparisonError, quoted
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import Fact, Weight, fact_of, reported_between
from volbench.model.profile.fio_defects import defects_between
from volbench.model.results.finding import Severity

_MAX_LINES = 12
_RESERVED = "comparable with reservations"
# Named in a sentence. Noticed by: test_answer.py::test_only_what_compare_would_compare_is_ranked
_MAX_FACTS = 2
_MAX_NAMED = 5  # Listed of one fact; an import may have hundreds

# A difference: the name of its fact, what it does, the sides (one if its own runs differ, two if
# they differ from each other), and the values of each
_Key = tuple[str, Weight, tuple[str, ...], tuple[str, ...]]


class Effect(StrEnum):
    """Effect of a difference on a comparison, in the words of its table."""

    REFUSED = "refused"
    ALLOWED = "allowed to differ"
    RESERVATION = "reservation"
    NOTED = "may differ"


@dataclass(frozen=True)
class DifferingFact:
    """A fact that differs between two sides, or within one, in some workloads."""

    fact: str  # its name
    effect: Effect  # on the comparison
    # side to its value; one side whose own runs differ has all of its values
    by_side: Mapping[str, str]
    workloads: tuple[str, ...]  # in which it differs

    @property
    def words(self) -> str:
        """The difference with its values, without the workloads."""
        pairs = ", ".join(f"{value} in {side}" for side, value in self.by_side.items())
        if len(self.by_side) == 1:
            pairs += " among repeats that would be pooled"
        return f"{factor_name(self.fact)}: {pairs}"

    @property
    def record(self) -> dict[str, object]:
        """The fact as a row of data."""
        return {
            "fact": self.fact,
            "effect": self.effect.value,
            "values": dict(self.by_side),
            "workloads": len(self.workloads),
        }


@dataclass(frozen=True)
class Comparability:
    """What differs between comparable runs."""

    facts: tuple[DifferingFact, ...] = ()  # those that differ, the weightiest first
    unknown: tuple[str, ...] = ()  # facts that are not known of a side, in a sentence each

    @property
    def refused(self) -> list[str]:
        """Names of the facts that may not differ, unless they are allowed to."""
        return [*dict.fromkeys(each.fact for each in self.with_effect(Effect.REFUSED))]

    @property
    def remarks(self) -> list[str]:
        """A sentence for each difference that is allowed, or a reservation."""
        remarks = (f"{_RESERVED}: {fact.words}" for fact in self.with_effect(Effect.RESERVATION))
        granted = self.with_effect(Effect.ALLOWED)
        return [*remarks, *(f"{fact.effect.value}: {fact.words}" for fact in granted)]

    def with_effect(self, effect: Effect) -> list[DifferingFact]:
        """Return the facts whose difference has an effect."""
        return [fact for fact in self.facts if fact.effect is effect]

    @property
    def defects(self) -> list[str]:
        """What different versions of fio falsify, a sentence for each pair."""
        pairs = {tuple(each.by_side.values()) for each in self.facts if each.fact == "fio_version"}
        return [
            f"between {pair[0]} and {pair[1]} fio mended what falsified: {words}"
            for pair in sorted(pairs)
            if len(pair) > 1 and (words := defects_between(pair[0], pair[1]))
        ]

    @property
    def verdict(self) -> str:
        """Whether the runs are comparable."""
        if self.refused:
            return "refused"
        effects = {fact.effect for fact in self.facts}
        return _RESERVED if effects - {Effect.NOTED} else "comparable"


class IncomparableError(ComparisonError):
    """Relevant facts differ."""

    def __init__(self, message: str, *, hint: str, comparability: Comparability) -> None:
        super().__init__(message, hint=hint)
        self.comparability = comparability  # everything that differs


_EFFECTS = {
    Weight.REFUSE: Effect.REFUSED,
    Weight.REPORT: Effect.RESERVATION,
    Weight.IGNORE: Effect.NOTED,
}


def check_comparable(
    rows: pd.DataFrame,
    *,
    facts: Collection[str],
    allowed: Collection[str],
    base: str,
    reported: Collection[str] = (),
    compares_values: bool = True,
) -> Comparability:
    """Check that all rows of a cell may be pooled and compared; return what differs or is unknown.

    Args:
        rows: with columns ``side``, ``cell`` and ``label`` (the cell in words) beside the facts.
        base: the side that the others are compared with; in a cell without it, the first one.
        reported: facts that may differ between sides, but not within one; the difference is
            reported.
        compares_values: whether the caller can compare the values of a fact instead.
    """
    differing = _differing_facts(_differences(rows, facts, base, reported), allowed)
    comparability = Comparability(differing, tuple(_unknown_facts(rows, facts)))
    if comparability.refused:
        raise _refusal(comparability, compares_values=compares_values)
    return comparability


def comparable_sides(
    rows: pd.DataFrame, *, facts: Collection[str], between: str
) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return the most sides of which `check_comparable` refuses none: an answer ranks these.

    Args:
        rows: as for `check_comparable`.
        between: the column whose values are the sides.

    Returns:
        The sides, why others are not ranked, and the reservations; a sentence each, if any.
    """
    sides = [*dict.fromkeys(rows["side"])]
    whole = _differing(rows, facts, sides, between)
    if not whole.refused:
        return sides, (), _sentences("Comparable with reservations: {}.", whole)
    names = [name for name in facts if name.removeprefix(LABEL_PREFIX) in whole.refused]
    alike: dict[Hashable, list[str]] = {}
    for side, own in rows.groupby("side", sort=False):
        values = (frozenset(map(str, values_of(own, name))) for name in names)
        alike.setdefault(tuple(values), []).append(str(side))
    kept = max(alike.values(), key=len)
    part = _differing(rows, facts, kept, between)
    kept = [] if part.refused or not kept[1:] else kept
    which = f"Only {len(kept)} of {len(sides)} are" if kept else "Nothing is"
    anyway = f"volbench compare --allow-different {quoted(','.join(whole.refused))}"
    sentence = f"{which} ranked: results differ in {{}}. To compare all: {anyway}."
    return kept, _sentences(sentence, whole), _sentences("Comparable with reservations: {}.", part)


def _sentences(sentence: str, found: Comparability) -> Sequence[str]:
    """Return a sentence on what is refused, else reserved; its first facts with an example each."""
    effect = Effect.REFUSED if found.refused else Effect.RESERVATION
    by_fact: dict[str, list[str]] = {}
    for fact in found.with_effect(effect):
        by_fact.setdefault(fact.fact, []).append(fact.words)
    words = [first_names(texts, 1, "; ") for texts in by_fact.values()]
    return (sentence.format(first_names(words, _MAX_FACTS, "; ")),) if words else ()


def _differing(
    rows: pd.DataFrame, facts: Collection[str], sides: Sequence[str], between: str
) -> Comparability:
    kept, base = rows[rows["side"].isin(sides)], "".join(sides[:1])
    found = _differences(kept, facts, base, reported_between(between))
    return Comparability(_differing_facts(found, ()))


def _differing_facts(
    differences: Iterable[tuple[_Key, str]], allowed: Collection[str]
) -> tuple[DifferingFact, ...]:
    granted = {name.removeprefix(LABEL_PREFIX) for name in allowed}
    cells: dict[_Key, dict[str, None]] = {}
    for key, cell in differences:
        cells.setdefault(key, {})[cell] = None
    facts = [
        DifferingFact(
            name,
            Effect.ALLOWED if weight is Weight.REFUSE and name in granted else _EFFECTS[weight],
            dict(zip(sides, values, strict=True)),
            tuple(where),
        )
        for (name, weight, sides, values), where in cells.items()
    ]
    return tuple(sorted(facts, key=lambda fact: list(Effect).index(fact.effect)))


def values_of(rows: pd.DataFrame, name: str) -> list[object]:
    """Return the distinct known values of a column as plain Python values."""
    return plain_values(rows[name].dropna().drop_duplicates())


def _differences(
    rows: pd.DataFrame, facts: Collection[str], base: str, reported: Collection[str]
) -> Iterator[tuple[_Key, str]]:
    varying = [name for name in facts if len(values_of(rows, name)) > 1]
    for name in varying:
        fact = fact_of(name)
        if name in reported:
            fact = replace(fact, compared=Weight.REPORT)
        if fact.within is fact.between is Weight.IGNORE:  # provenance, not what was measured
            continue
        for _, cell in rows.groupby("cell", sort=False):
            if len(values_of(cell, name)) > 1:
                yield from _differences_in_cell(cell, fact, base)


def _differences_in_cell(cell: pd.DataFrame, fact: Fact, base: str) -> Iterator[tuple[_Key, str]]:
    name, where = fact.name.removeprefix(LABEL_PREFIX), str(cell["label"].iloc[0])
    values = {
        str(side): tuple(
            sorted(value_text(fact.name, value) for value in values_of(side_rows, fact.name))
        )
        for side, side_rows in cell.groupby("side", sort=False)
    }
    for side, texts in values.items():
        if len(texts) > 1:
            yield (name, fact.within, (side,), (first_names(texts, _MAX_NAMED),)), where
    base = base if base in values else next(iter(values))
    others = values[base]
    for side, texts in values.items():
        if side != base and texts and others and set(texts) != set(others):
            pair = (first_names(others, _MAX_NAMED), first_names(texts, _MAX_NAMED))
            yield (name, fact.between, (base, side), pair), where


def _unknown_facts(rows: pd.DataFrame, facts: Collection[str]) -> list[str]:
    """Return the relevant facts that are unknown for some sides, one sentence per side."""
    sides = {str(side): side_rows for side, side_rows in rows.groupby("side", sort=False)}
    lacking: dict[str, list[str]] = {side: [] for side in sides}
    for name in facts:
        blank = [side for side, side_rows in sides.items() if side_rows[name].isna().all()]
        if fact_of(name).between is Weight.REFUSE and len(blank) < len(sides):
            for side in blank:
                lacking[side].append(name.removeprefix(LABEL_PREFIX))
    return [f"unknown for {side}: {', '.join(names)}" for side, names in lacking.items() if names]


def _refusal(comparability: Comparability, *, compares_values: bool) -> IncomparableError:
    refused = comparability.with_effect(Effect.REFUSED)
    lines = [f"  {fact.words} ({first_names(fact.workloads, 3)})" for fact in refused]
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"  and {len(lines) - _MAX_LINES} more"]
    names = comparability.refused
    allow = f"--allow-different {','.join(names)}"
    pooled = any(len(fact.by_side) == 1 for fact in refused)
    way = (
        f"keep them apart with --by {','.join(names)}"
        if pooled or not compares_values
        else (f"compare them with --between {names[0]}")
    )
    return IncomparableError(
        "these results differ in facts that affect the comparison:\n" + "\n".join(lines),
        hint=f"allow it with {allow}, {way}, or choose runs with --where",
        comparability=comparability,
    )


def without_invalid(rows: pd.DataFrame, findings: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Exclude rows that a rule marked invalid.

    Returns:
        The valid rows, and a sentence for each side and rule.
    """
    heavy = findings[findings["severity"] == Severity.INVALID.value]
    struck = rows["run"].isin(heavy[heavy["direction"].isna()]["run"])
    named = set(zip(heavy["run"], heavy["direction"], strict=True))
    pairs = zip(rows["run"], rows["direction"], strict=True)
    struck |= pd.Series([pair in named for pair in pairs], index=rows.index, dtype=bool)
    counts = Counter(
        (str(side), str(rule))
        for run, side in rows[struck][["run", "side"]].drop_duplicates().itertuples(index=False)
        for rule in heavy[heavy["run"] == run]["rule"].unique()
    )
    remarks = [
        f"{side}: {count} {'run is' if count == 1 else 'runs are'} invalid by {rule}, left out"
        for (side, rule), count in counts.items()
    ]
    return rows[~struck].reset_index(drop=True), remarks


class WarningCounts:
    """Runs with findings other than notes, counted by rule."""

    def __init__(self, findings: pd.DataFrame) -> None:
        heavy = findings[findings["severity"] != Severity.NOTE.value]
        self._by_run: dict[str, list[tuple[str, str]]] = {}
        columns = heavy["run"], heavy["direction"].fillna(""), heavy["rule"]
        for run, direction, rule in zip(*columns, strict=True):
            self._by_run.setdefault(run, []).append((direction, rule))

    def of(self, runs: Collection[str], directions: Collection[str]) -> dict[str, int]:
        """Return how many runs have a finding about some directions, the most frequent first."""
        rules = (
            {rule for about, rule in self._by_run.get(run, ()) if about in {"", *directions}}
            for run in runs
        )
        return dict(Counter(rule for names in rules for rule in sorted(names)).most_common())
