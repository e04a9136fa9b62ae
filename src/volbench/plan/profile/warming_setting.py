"""``warming`` of a job in a profile: a node in, the fields of a Job out."""

from __future__ import annotations

from volbench.model.document.yaml_nodes import Node
from volbench.model.profile.profile_model import Warming
from volbench.plan.expansion.extents import MOST_EXTENTS
from volbench.plan.profile.node_reader import Reader

WARMING_KEYS = ("mode", "extents", "auto")
_YES = {"true", "yes", "1", "on"}
_ANSWERS = dict.fromkeys(("false", "true", "no", "yes", "0", "1", "off", "on"))


def read_warming(reader: Reader, node: Node) -> dict[str, object]:
    """Return ``warming`` of a job: a mode, or a mapping with mode, extents and auto."""
    modes = {mode.value: mode for mode in Warming}
    if node.is_scalar:
        return {"warming": Warming(reader.choice(node, "warming", modes))}
    found: dict[str, object] = {}
    for entry in reader.entries(node, "warming"):
        if entry.name == "mode":
            found["warming"] = Warming(reader.choice(entry.value, "mode", modes))
        elif entry.name == "extents":
            found["extents"] = _extents(reader, entry.value)
        elif entry.name == "auto":
            found["auto_jobs"] = reader.choice(entry.value, "auto", _ANSWERS) in _YES
        else:
            reader.unknown(entry, WARMING_KEYS, "warming")
    if "warming" not in found:
        reader.complain(node, "a warming needs its mode", hint="add mode: write-read")
    return found


def _extents(reader: Reader, node: Node) -> int:
    count = reader.value(node, "extents", int, 0)
    if not 0 <= count <= MOST_EXTENTS:
        reader.complain(node, f"extents goes from 0 to {MOST_EXTENTS}, this is {count}")
    return count
