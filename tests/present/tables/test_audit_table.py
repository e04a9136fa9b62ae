"""Page of an audit: what its notes say."""

from dataclasses import replace

import pandas as pd

from tests.present.tables.declared_tables import delivery
from volbench.analyse.compare.promised_limits import Outcome
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.present.tables.audit_table import audit_notes, audit_table

SHORT = replace(delivery("vm1", "read"), reason="")
UNDECIDED = replace(
    delivery("vm1", "write"), outcome=Outcome.UNDECIDED, reason="about 5m more would decide"
)
LATENCIES = pd.DataFrame({"host": [], "volume": [], "direction": [], "block_bytes": []})


def test_every_undecided_limit_says_why() -> None:
    """Once: the table on a terminal has no column of reasons, that on a page has one."""
    assert "reason" not in [column.name for column in audit_table([UNDECIDED]).columns]
    notes = list(audit_notes([SHORT, UNDECIDED], LATENCIES))
    assert "write IOPS: undecided; about 5m more would decide." in notes
    assert notes[-1].startswith("/dev/disk/azure/scsi1/lun0 ")
    *others, last = audit_notes([UNDECIDED], LATENCIES)
    assert last.endswith("; about 5m more would decide.")
    assert not [note for note in others if "more would decide" in note]


def test_an_interval_wider_than_the_rate_is_printed_as_its_ends() -> None:
    """Plus and minus 306 % would be below zero."""
    wide = replace(SHORT, rate=Interval(0.0, 159_000.0, 646_000.0))
    column = next(each for each in audit_table([wide]).columns if each.name == "delivered")
    assert column.show is not None
    assert column.show(wide) == "159k IOPS [0 IOPS, 646k IOPS]"
    near = replace(SHORT, rate=Interval(0.0, 100.0, 200.0))
    assert column.show(near) == "100 IOPS ± 100 %"


def test_a_limit_that_no_run_measured_has_a_row_and_a_reason() -> None:
    """No rate and no line about its queue depths."""
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    none = replace(SHORT, rate=unknown, share=unknown, seconds=0.0, gain=float("nan"))
    none = replace(none, outcome=Outcome.UNDECIDED, reason="too short")
    columns = {column.name: column for column in audit_table([none]).columns}
    assert columns["delivered"].show is not None
    assert columns["delivered"].show(none) == "n/a"
    notes = [*audit_notes([none], LATENCIES)]
    assert not [note for note in notes if "in flight" in note]
    assert notes[-1].endswith(": undecided, read n/a of 5k IOPS; too short.")


def test_queue_depths_are_said_once_for_all_volumes() -> None:
    """With the largest gain of any; one depth has none."""
    other = replace(SHORT, host="vm2", gain=0.02)
    lines = [note for note in audit_notes([SHORT, other], LATENCIES) if "in flight" in note]
    assert lines == [
        "read IOPS: 16, 64, 256, 1024 I/Os in flight tried; the deepest queue gained 2 %."
    ]
    slower = replace(SHORT, gain=-0.34)
    assert any(note.endswith("queue lost 34 %.") for note in audit_notes([slower], LATENCIES))
    single = replace(SHORT, depths=(32,), gain=float("nan"))
    assert "read IOPS: 32 I/Os in flight only." in audit_notes([single], LATENCIES)
    unknown = replace(SHORT, gain=float("nan"))
    (line,) = [note for note in audit_notes([unknown], LATENCIES) if "in flight" in note]
    assert line.endswith("tried; the host disturbed the deepest queues.")
    lines = [note for note in audit_notes([unknown, other], LATENCIES) if "in flight" in note]
    assert lines[0].endswith("the deepest queue gained 2 %.")
