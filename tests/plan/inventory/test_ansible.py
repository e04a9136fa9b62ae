"""Ansible's inventories: INI, YAML and JSON mean the same, and mean what Ansible means by them.

The real ansible-inventory is run. It wrote fleet.json, fleet-export.json and fleet-all.yaml too, in
version 2.19 and from fleet.ini.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plan.inventory.reading import FILES, by_name, read
from volbench.errors import InventoryError
from volbench.model.campaign.host import Host, Inventory
from volbench.model.profile.profile_settings import Limits
from volbench.plan.inventory import load_inventory

pytestmark = pytest.mark.slow

KINDS = ("fleet.ini", "fleet.json", "fleet-export.json", "fleet-all.yaml")


@pytest.fixture(params=KINDS, scope="module")
def fleet(request: pytest.FixtureRequest) -> Inventory:
    """Return the same fleet from each kind of file."""
    return load_inventory(FILES / request.param)


@pytest.fixture(scope="module")
def variables() -> dict[str, dict[str, Any]]:
    """Return host to the variables that Ansible itself worked out."""
    whole = json.loads((FILES / "fleet.json").read_text())
    found: dict[str, dict[str, Any]] = whole["_meta"]["hostvars"]
    return found


@pytest.mark.smoke
def test_hosts_and_variables_equal_those_of_ansible(
    fleet: Inventory, variables: dict[str, dict[str, Any]]
) -> None:
    """Of every host, each variable has the value that ansible-inventory prints."""
    hosts = by_name(fleet)
    assert set(hosts) == set(variables)
    for name, host in hosts.items():
        expected = variables[name]
        assert host.address == expected.get("ansible_host", expected.get("ansible_ssh_host", name))
        assert host.port == expected.get("ansible_port")
        assert host.user == expected["ansible_user"]
        assert host.sudo is (expected.get("ansible_become") == "yes")
        assert host.workdir == expected["volbench_workdir"]
        assert host.labels == {
            key.removeprefix("volbench_label_"): value
            for key, value in expected.items()
            if key.startswith("volbench_label_")
        }


def test_one_host_in_full(fleet: Inventory) -> None:
    """Connection, volumes, limits and leave to destroy."""
    assert by_name(fleet)["az01"] == Host(
        name="az01",
        address="10.1.0.1",
        user="azureuser",
        jump=("jump@192.0.2.7:2200", "inner"),
        sudo=True,
        volumes={"data": "/dev/disk/by-id/azure-lun0"},
        labels={"kind": "cloud", "tier": "fast"},
        limits={"data": Limits(iops=1100.0, bandwidth_bytes_per_s=125e6)},
        allow_destroy=("serial:abc123", "/dev/disk/by-id/azure-lun0"),
        workdir="/srv/volbench",
    )


def test_groups_are_read(fleet: Inventory) -> None:
    """A group holds the hosts of the groups below it, and all is not listed."""
    groups = {name: set(hosts) for name, hosts in fleet.groups.items()}
    azure, gcp = {"az01", "az02", "az03"}, {"gca", "gcb", "gcc", "gcd"}
    assert groups == {
        "azure": azure,
        "gcp": gcp,
        "clouds": azure | gcp,
        "fast": {"az01", "gcb"},
        "ungrouped": {"gate.example.org", "10.0.9.1"},
    }


def test_unused_variables_are_reported() -> None:
    """Variables for playbooks are named, not dropped without a word."""
    notes: list[str] = []
    load_inventory(FILES / "fleet.ini", on_note=notes.append)
    (note,) = notes
    assert note.endswith("not used by volbench: ntp_server")


@pytest.mark.parametrize("is_folder", [False, True])
def test_variables_in_adjacent_folders_are_read(tmp_path: Path, *, is_folder: bool) -> None:
    """group_vars and host_vars hold as they do for Ansible; an inventory may be a folder too."""
    for folder, name, port in (("group_vars", "web", 2201), ("host_vars", "vm2", 2202)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.yml").write_text(f"ansible_port: {port}\n")
    path = tmp_path / "hosts"
    path.write_text("[web]\nvm1\nvm2\n")
    hosts = load_inventory(tmp_path if is_folder else path).hosts
    assert [(host.name, host.port) for host in hosts] == [("vm1", 2201), ("vm2", 2202)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts", "#!/bin/sh\ntouch {proof}; echo '{{}}'\n"),
        ("hosts.ini", "#\n#!/bin/sh\ntouch {proof}; echo '{{}}'\n"),
        ("aws_ec2.yaml", "plugin: ansible.builtin.generator\nhosts: {{name: x}}\n"),
    ],
)
def test_no_script_and_no_plugin_runs(tmp_path: Path, name: str, text: str) -> None:
    """An executable file is not executed, alone or in a folder, and plugins stay out."""
    proof = tmp_path / "proof"
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / name).write_text(text.format(proof=proof))
    (folder / name).chmod(0o755)
    for path in (folder / name, folder):
        with pytest.raises(InventoryError):
            load_inventory(path)
    assert not proof.exists()


def test_no_configuration_of_ansible_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither ansible.cfg in the current folder nor ANSIBLE_ variables change what is read."""
    (tmp_path / "ansible.cfg").write_text("[inventory]\nenable_plugins = script\n")
    monkeypatch.setenv("ANSIBLE_INVENTORY_ENABLED", "script")
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path, "vm1\n", "hosts").hosts[0].name == "vm1"


def test_an_encrypted_file_of_variables_is_refused(tmp_path: Path) -> None:
    """No vault is opened, and no password asked for."""
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all").write_text("$ANSIBLE_VAULT;1.1;AES256\n6231\n")
    (tmp_path / "hosts").write_text("vm1\n")
    with pytest.raises(InventoryError, match="vault"):
        load_inventory(tmp_path / "hosts")


def test_a_warning_of_ansible_is_passed_on(tmp_path: Path) -> None:
    """A group whose name Ansible finds odd."""
    (tmp_path / "hosts").write_text("[my-web]\nvm1\n")
    notes: list[str] = []
    load_inventory(tmp_path / "hosts", on_note=notes.append)
    assert any("Ansible warns" in note for note in notes)


@pytest.fixture
def without_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no ansible-inventory, beside this Python or on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))


@pytest.mark.usefixtures("without_ansible")
def test_a_missing_ansible_is_reported(tmp_path: Path) -> None:
    """The hint names each way out: install it, volbench's own YAML, or a listing."""
    with pytest.raises(InventoryError) as caught:
        load_inventory(FILES / "fleet.ini")
    for words in ("ansible-core", "own YAML", "--list"):
        assert words in caught.value.hint
    assert load_inventory(FILES / "fleet.json").hosts, "a listing needs no Ansible"
    (tmp_path / "ansible-inventory").write_text("#!/nonexistent\n")
    (tmp_path / "ansible-inventory").chmod(0o755)
    with pytest.raises(InventoryError, match="started"):
        load_inventory(FILES / "fleet.ini")


def test_a_local_connection_is_this_machine(tmp_path: Path) -> None:
    """Ansible's local connection is the controller's own machine."""
    (host,) = read(tmp_path, "localhost ansible_connection=local ansible_user=me\n", "hosts").hosts
    assert host.is_local
    assert host.user is None


@pytest.mark.parametrize(
    ("variables", "python"),
    [
        ("ansible_python_interpreter=/opt/py/bin/python3", "/opt/py/bin/python3"),
        ("ansible_python_interpreter=python3.11", "python3.11"),
        ("ansible_python_interpreter=auto_silent", ""),
        ("ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}'", ""),
        ("ansible_python_interpreter=python3 volbench_python=/usr/bin/python3", "/usr/bin/python3"),
    ],
)
def test_the_interpreter_is_that_of_ansible(tmp_path: Path, variables: str, python: str) -> None:
    """The agent runs in the Python that Ansible uses on the host."""
    (tmp_path / "hosts.ini").write_text(f"vm1 {variables}\n")
    (host,) = load_inventory(tmp_path / "hosts.ini").hosts
    assert host.python == python


def test_a_script_may_list_names_only(tmp_path: Path) -> None:
    """The short form of Ansible's dynamic inventories, without variables."""
    inventory = read(tmp_path, '{"web": ["a", "b"], "db": {"hosts": ["b", "c"]}}', "x.json")
    assert inventory.groups == {"web": ("a", "b"), "db": ("b", "c")}


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-J gate", ("gate",)),
        ("-Jme@gate:2200", ("me@gate:2200",)),
        ("-o ProxyJump=a,b", ("a", "b")),
        ("-oProxyJump=a -q", ("a",)),
        ("-o 'ProxyJump a'", ("a",)),
        ('-o ProxyCommand="ssh -W %h:%p -q me@gate"', ("me@gate",)),
        ('-o ProxyCommand="ssh -p 2200 -l me gate -W [%h]:%p"', ("me@gate:2200",)),
        ("-o ControlMaster=auto -o ControlPersist=60s -C", None),
    ],
)
def test_jump_hosts_in_ssh_arguments_are_read(
    tmp_path: Path, arguments: str, jump: tuple[str, ...] | None
) -> None:
    """Each usual way of naming a bastion is understood."""
    variables = {"vm1": {"ansible_ssh_common_args": arguments}}
    (host,) = read(tmp_path, json.dumps({"_meta": {"hostvars": variables}})).hosts
    assert host.jump == jump


def test_disabled_host_key_checking_is_not_copied(tmp_path: Path) -> None:
    """Host keys go on being checked, and the user is expected."""
    path = tmp_path / "hosts"
    path.write_text("vm1 ansible_ssh_common_args='-o StrictHostKeyChecking=no -J gate'\n")
    notes: list[str] = []
    (host,) = load_inventory(path, on_note=notes.append).hosts
    assert host.jump == ("gate",)
    assert "host keys" in notes[0]


def test_a_bastion_in_its_own_group(tmp_path: Path) -> None:
    """Arguments meant for all do not send the bastion through itself."""
    text = "gate ansible_host=192.0.2.1\nvm1\n[all:vars]\nansible_ssh_common_args=-J gate\n"
    ways = {name: host.jump for name, host in by_name(read(tmp_path, text, "hosts")).items()}
    assert ways == {"gate": (), "vm1": ("gate",)}


def test_single_entries_take_precedence_over_a_mapping(tmp_path: Path) -> None:
    """One volume of a group's mapping can be another one on one host."""
    text = (
        "[web]\nvm1 volbench_volume_data=/x volbench_limit_iops=1100 volbench_sudo=yes\n"
        "[web:vars]\nvolbench_volumes={'data': '/a', 'os': '/b'}\nansible_become=no\n"
    )
    (host,) = read(tmp_path, text, "hosts").hosts
    assert host.volumes == {"data": "/x", "os": "/b"}
    assert host.limits == {"*": Limits(iops=1100.0)}
    assert host.sudo


def test_texts_with_invalid_python_escapes_are_read_without_warnings(tmp_path: Path) -> None:
    """An odd escape in a variable is a text, and no remark of Python's reaches the user."""
    text = "vm1\n[all:vars]\nvolbench_label_match='a\\d+'\nvolbench_label_size=007\n"
    (host,) = read(tmp_path, text, "hosts").hosts
    assert host.labels == {"match": "a\\d+", "size": "007"}


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("[ERROR]: bad\nOrigin: {file}:3:5\n\n3 x", ":3:5"),
        ("[ERROR]: bad\nOrigin: {file}\n", ""),
        ("The error appears to be in '{file}': line 3, column 5, but may", ":3:5"),
        ("Failed to parse inventory: {file}:3: Section [web:kids] has unknown type", ":3"),
        ("bad\nOrigin: <inventory plugin 'yaml' with source '{file}'>\n", ""),
        ("[ERROR]: Completely failed to parse inventory source {file}\n", ""),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_errors_name_the_file_and_the_line_that_ansible_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, place: str, *, is_folder: bool
) -> None:
    """Each version of Ansible names places in its own way; in a folder, the file is named."""
    (tmp_path / "inventory").mkdir()
    file = tmp_path / "inventory" / "hosts.ini"
    file.write_text("[web]\nvm1\n", encoding="utf-8")
    program = tmp_path / "ansible-inventory"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words.format(file=file)}\nEND\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InventoryError) as caught:
        load_inventory(file.parent if is_folder else file)
    assert caught.value.message.startswith(f"{file}{place}: Ansible cannot read it")
