"""How Ansible names hosts: ``web[01:20]`` or ``web1:2222`` in, names and ports out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from volbench.model.document.yaml_nodes import Node
from volbench.plan.inventory.draft import HostReader
from volbench.plan.inventory.host_ranges import Style

_WITH_PORT = re.compile(r"([^:\[\]]*(?:\[[^\[\]]*\][^:\[\]]*)*):([0-9]+)")


def host_names(reader: HostReader, node: Node, text: str) -> Iterator[tuple[str, Node | None]]:
    """Yield every name that a word stands for, with the port behind it."""
    match = _WITH_PORT.fullmatch(text)
    pattern = text if match is None else match[1]
    port = None if match is None else Node(node.line, node.column, "ansible_port", raw=match[2])
    for name in reader.expanded(node, pattern, Style.ANSIBLE).texts:
        yield name, port
