"""Tables of hosts: inventory, survey, progress of clients, and facts about a host or volume."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from volbench.model.campaign.host import Host, Inventory
from volbench.model.campaign.planned_run import RunState
from volbench.model.campaign.run_secrets import masked_host
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.present.formatting import MISSING, Row, printable
from volbench.present.tables.table import IDENTITY, Column, Table, text_table
from volbench.units import (
    counted_noun,
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_rate,
)

_SURVEY_PRIORITIES = {"fio": 2, "kernel": 5, "CPUs": 6, "memory": 6, "clock": 4, "volumes": 3}
FACT_COLUMNS: tuple[Column[tuple[str, str]], ...] = (
    Column("fact", lambda pair: pair[0], priority=IDENTITY),
    Column("value", lambda pair: pair[1], is_folded=True),
)


def hosts_table(inventory: Inventory) -> Table[Any]:
    """Return the hosts, a row each, in the order of the inventory."""
    groups = groups_of_hosts(inventory)
    rows = [
        {
            "host": host.name,
            "address": _address(host),
            "user": host.user or "",
            "volumes": _pairs(masked_host(host).volumes),
            "labels": _pairs(host.labels),
            "groups": ", ".join(groups[host.name]),
        }
        for host in inventory.hosts
    ]
    table = text_table(
        "hosts",
        rows,
        identity="host",
        priorities={"user": 5, "volumes": 2, "labels": 3, "groups": 4},
        folded=["volumes", "labels", "groups"],
        notes=[f"hosts: {len(rows)}"],
    )
    document = [
        {**masked_host(host).model_dump(mode="json"), "groups": groups[host.name]}
        for host in inventory.hosts
    ]
    return replace(table, document=document)


def groups_of_hosts(inventory: Inventory) -> dict[str, list[str]]:
    """Return host to the groups it is in."""
    groups = inventory.groups.items()
    names = [host.name for host in inventory.hosts]
    return {name: [group for group, members in groups if name in members] for name in names}


def _address(host: Host) -> str:
    if host.is_local:
        return "this machine"
    where = host.address
    if host.port:
        where = f"[{where}]:{host.port}" if ":" in where else f"{where}:{host.port}"
    return f"{where} via {', '.join(host.jump)}" if host.jump else where


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def survey_row(
    name: str,
    problem: str,
    host: HostFacts | None = None,
    clock: str = "",
    volumes: Mapping[str, VolumeFacts] | None = None,
) -> dict[str, str]:
    """Return a row of `survey_table`; what a host did not tell is empty."""
    row = dict.fromkeys(("host", *_SURVEY_PRIORITIES), "")
    if host is not None:
        memory = host.usable_memory_bytes
        row |= {"fio": host.fio_version, "kernel": host.kernel, "CPUs": str(host.cpus)}
        row |= {"memory": "" if memory is None else format_capacity(memory), "clock": clock}
        row["volumes"] = "\n".join(volume_words(*pair) for pair in (volumes or {}).items())
    return row | {"host": name, "problem": problem}


def survey_table(rows: Sequence[Mapping[str, str]], records: Sequence[Row]) -> Table[Any]:
    """Return surveyed hosts, a row each, with the problems in the last column."""
    usable = sum(not row["problem"] for row in rows)
    table = text_table(
        "survey",
        rows,
        identity="host",
        priorities=_SURVEY_PRIORITIES,
        folded=["volumes", "problem"],
        notes=[f"{usable} of {counted_noun(len(records), 'host')} can take part"],
    )
    return replace(table, document=records)


@dataclass
class ClientStatus:
    """Progress of a client: its runs by state."""

    host: str  # of the client
    client: int  # index among several on its host, from 1; 0 for a single one
    states: Counter[RunState] = field(default_factory=Counter)  # runs by state
    running: str = ""  # the run that goes on
    since_utc: str = ""  # when that was started
    iops: float | None = None  # its rate now
    silent_utc: str = ""  # last answer of a host that does not answer
    note: str = ""  # for whom it waits, or how long its host has not answered

    def add(self, run_id: str, state: RunState | None, process: Mapping[str, object]) -> None:
        """Count a run; None for one that was never started."""
        self.states[state or RunState.PLANNED] += 1
        if state is RunState.RUNNING:
            self.running, self.since_utc = run_id, str(process.get("since_utc", ""))

    def record(self) -> Row:
        """Return the values by name."""
        counts = {state.value.replace("-", "_"): self.states[state] for state in RunState}
        others = {name: value for name, value in vars(self).items() if name != "states"}
        own = {"host": self.host, "client": self.client or None}
        return own | counts | others | own


def _state_column(
    state: RunState, *, priority: int, is_optional: bool = True, header: str = ""
) -> Column[ClientStatus]:
    return Column(
        state.value.replace("-", "_"),
        lambda row: str(row.states[state] or ("" if is_optional else 0)),
        header=header,
        priority=priority,
        is_right=True,
        is_optional=is_optional,
    )


STATUS_COLUMNS: tuple[Column[ClientStatus], ...] = (
    Column("host", lambda row: row.host, priority=IDENTITY),
    Column("client", lambda row: str(row.client or ""), priority=IDENTITY, is_optional=True),
    _state_column(RunState.FINISHED, priority=1, is_optional=False),
    _state_column(RunState.PLANNED, priority=1, is_optional=False, header="not started"),
    _state_column(RunState.FAILED, priority=1),
    _state_column(RunState.INTERRUPTED, priority=2),
    _state_column(RunState.LOST, priority=2),
    _state_column(RunState.NOT_NEEDED, priority=4),
    Column("running", lambda row: row.running, priority=1, is_optional=True),
    Column(
        "iops",
        lambda row: "" if row.iops is None else format_count(row.iops),
        header="IOPS",
        priority=1,
        is_right=True,
        is_optional=True,
    ),
    Column("since_utc", lambda row: row.since_utc, header="since", priority=3, is_optional=True),
    Column("note", lambda row: row.note, priority=1, is_optional=True, is_folded=True),
)


def status_table(rows: Sequence[ClientStatus], *, notes: Sequence[str]) -> Table[ClientStatus]:
    """Return the progress of each client of a campaign."""
    return Table("status", STATUS_COLUMNS, rows, record=ClientStatus.record, notes=notes)


def volume_words(role: str, facts: VolumeFacts) -> str:
    """Return the description of a volume with its contents."""
    size = "" if facts.size_bytes is None else f" {format_capacity(facts.size_bytes)}"
    free = "" if facts.free_bytes is None else f", {format_capacity(facts.free_bytes)} free"
    holds = f", holds {facts.content}" if facts.content else ""
    mounted = f", {facts.filesystem} on {facts.mount_point}" if facts.mount_point else ""
    return f"{role}: {facts.target}{size}{mounted}{free}{holds}"


def clock_words(offset_s: float, bound_s: float) -> str:
    """Return the offset of a clock with its bound."""
    if math.isinf(bound_s):
        return "unknown"
    sign = "-" if offset_s < 0 else "+"
    return f"{sign}{format_latency(abs(offset_s))} ± {format_latency(bound_s)}"


def facts_text(facts: Mapping[str, object]) -> dict[str, str]:
    """Return label to text for each fact, in order; nested facts get a label with both names.

    A size reads ``10g (10737418240 bytes)``, so that it is both readable and exact.
    """
    texts: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            for label, text in facts_text(value).items():
                texts[f"{_label(name)}: {label}"] = text
        else:
            texts[_label(name)] = _words(name, value)
    return texts


def _label(name: str) -> str:
    """Return a name for people: without underscores and without its unit."""
    name = name.replace("_bytes_per_s", "_rate").removesuffix("_bytes").removesuffix("_s")
    return printable(name.replace("_", " "))


def _words(name: str, value: object) -> str:
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_words(name, value)
    if isinstance(value, list | tuple):
        return "; ".join(_words(name, part) for part in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{label} {text}" for label, text in facts_text(value).items())
    return printable(str(value))


def _number_words(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{format_capacity(value)} ({value} bytes)"
    if name.endswith("_bytes_per_s"):
        return format_rate(value) if value else MISSING
    return format_duration(value) if name.endswith("_s") else str(value)


def facts_table(
    title: str, facts: Mapping[str, object], *, is_whole: bool = True
) -> Table[tuple[str, str]]:
    """Return facts about a host or a volume, a row each; unknown ones only if it is whole."""
    rows = [row for row in facts_text(facts).items() if is_whole or row[1] not in {MISSING, "none"}]
    return Table("facts", FACT_COLUMNS, rows, title=title)
