"""`volbench hosts --list` of an inventory: a table, records, a check, a schema."""

import json
from pathlib import Path

from tests.command_line import Volbench

FLEET = """\
defaults: {user: root, volumes: {data: /data}}
hosts:
  vm01: {address: 10.0.0.4, port: 2222, labels: {provider: azure}}
  "vm[02-03]": {address: "10.0.0.[5-6]", jump: gate}
  local: {}
groups: {fast: [vm01]}
"""


def test_show_lists_the_hosts(volbench: Volbench, tmp_path: Path) -> None:
    """A row each, with what defaults and ranges make of it."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    done = volbench("hosts", "--list", "--inventory", "fleet.yaml")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "vm01 10.0.0.4:2222 root data=/data provider=azure fast" in lines
    assert "vm03 10.0.0.6 via gate root data=/data" in lines
    assert "local this machine data=/data" in lines


def test_schema_is_json(volbench: Volbench) -> None:
    """An editor can read it."""
    done = volbench("hosts", "--schema")
    assert json.loads(done.stdout)["title"] == "volbench inventory"
