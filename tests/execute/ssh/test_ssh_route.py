"""The way to a host, from an inventory and a configuration of ssh; nothing is connected."""

from pathlib import Path

import pytest

from volbench.errors import InputError, InventoryError
from volbench.execute.ssh.ssh_config import SshConfig
from volbench.execute.ssh.ssh_route import Resolver, Route
from volbench.model.campaign.host import Host


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``~`` stand for the test's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))


def route(tmp_path: Path, host: Host, *others: Host, config: str = "", agent: str = "") -> Route:
    """Resolve a host whose user's home is an empty folder with a configuration."""
    (tmp_path / ".ssh").mkdir(exist_ok=True)
    (tmp_path / ".ssh/config").write_text(config, encoding="utf-8")
    listed = {other.name: other for other in (host, *others)}
    return Resolver(SshConfig(home=tmp_path), others=listed, agent=agent).route(host)


def places(found: Route) -> list[str]:
    """Return who logs in where on a way."""
    return [hop.place for hop in found.hops]


WEB = Host(name="web", address="10.0.0.4", user="root")


def test_the_inventory_wins(tmp_path: Path) -> None:
    """What the inventory says goes before the configuration, and that before what is usual."""
    config = "Host 10.0.0.4\n  User other\n  Port 2222\n  HostName 10.9.9.9\n"
    assert places(route(tmp_path, WEB)) == ["root@10.0.0.4:22"]
    assert places(route(tmp_path, WEB, config=config)) == ["root@10.9.9.9:2222"]
    own = WEB.model_copy(update={"port": 2200, "user": None})
    assert places(route(tmp_path, own, config=config)) == ["other@10.9.9.9:2200"]


def test_default_keys_are_used_where_they_exist(tmp_path: Path) -> None:
    """The usual key files are tried in ssh's order; a chosen one is the only one."""
    (tmp_path / ".ssh").mkdir()
    for name in ("id_rsa", "id_ed25519", "mine"):
        (tmp_path / ".ssh" / name).write_text("", encoding="utf-8")
    usual = route(tmp_path, WEB).target
    assert [path.name for path in usual.key_files] == ["id_ed25519", "id_rsa"]
    assert usual.identities_only is False
    chosen = route(tmp_path, WEB.model_copy(update={"key": "~/.ssh/mine"})).target
    assert chosen.key_files == (tmp_path / ".ssh/mine",)
    assert chosen.identities_only is True
    config = "IdentityFile ~/.ssh/mine\nIdentityFile ~/.ssh/gone\nIdentitiesOnly yes\n"
    reported = route(tmp_path, WEB, config=config).target
    assert reported.key_files == (tmp_path / ".ssh/mine",)
    assert reported.identities_only is True


def test_the_known_hosts_name_follows_ssh(tmp_path: Path) -> None:
    """The host name is looked up in lower case, with its port if that is unusual, or its alias."""
    upper = WEB.model_copy(update={"address": "Web.Example"})
    assert route(tmp_path, upper).target.known_as == "web.example"
    port = upper.model_copy(update={"port": 2200})
    assert route(tmp_path, port).target.known_as == "[web.example]:2200"
    assert route(tmp_path, port, config="HostKeyAlias w\n").target.known_as == "w"
    files = route(tmp_path, WEB, config="UserKnownHostsFile ~/a /b\nGlobalKnownHostsFile none\n")
    assert files.target.known_hosts == (tmp_path / "a", Path("/b"))


@pytest.mark.parametrize(
    ("config", "agent"),
    [
        ("", "/run/agent"),
        ("IdentityAgent SSH_AUTH_SOCK\n", "/run/agent"),
        ("IdentityAgent none\n", ""),
        ("IdentityAgent /run/other\n", "/run/other"),
    ],
)
def test_the_configured_agent_is_used(tmp_path: Path, config: str, agent: str) -> None:
    """The configuration may name another agent, or none."""
    assert route(tmp_path, WEB, config=config, agent="/run/agent").target.agent == agent


def test_jumps_are_hosts_or_addresses(tmp_path: Path) -> None:
    """Names of the inventory bring their own user and port; addresses may say theirs."""
    edge = Host(name="edge", address="192.0.2.1", user="gate", port=2022)
    inner = WEB.model_copy(update={"jump": ("edge", "ops@10.0.0.9:23", "ssh://[2001:db8::1]:24")})
    found = places(route(tmp_path, inner, edge, config="Host 10.0.0.9\n  HostName 10.0.0.99\n"))
    assert found[:2] == ["gate@192.0.2.1:2022", "ops@10.0.0.99:23"]
    assert found[2].endswith("@[2001:db8::1]:24")
    assert found[3] == "root@10.0.0.4:22"


def test_the_first_jump_host_uses_its_own_configuration(tmp_path: Path) -> None:
    """As ssh does, a jump is reached by its own jumps; the later ones are reached from it."""
    edge = Host(name="edge", address="192.0.2.1", user="a")
    middle = Host(name="middle", address="192.0.2.2", user="b", jump=("edge",))
    inner = WEB.model_copy(update={"jump": ("middle",)})
    assert places(route(tmp_path, inner, edge, middle)) == [
        "a@192.0.2.1:22",
        "b@192.0.2.2:22",
        "root@10.0.0.4:22",
    ]
    config = "Host 10.0.0.4\n  ProxyJump edge, middle\n"
    assert len(route(tmp_path, WEB, edge, middle, config=config).hops) == 3
    none = WEB.model_copy(update={"jump": ()})
    assert len(route(tmp_path, none, edge, middle, config=config).hops) == 1


@pytest.mark.parametrize("jump", ["", "a b", "-oProxyCommand=x", "host:99999", "host:0", "a@b@c"])
def test_an_invalid_jump_host_is_refused(tmp_path: Path, jump: str) -> None:
    """What is neither a host nor an address is named."""
    if jump.startswith("-"):
        found = route(tmp_path, WEB.model_copy(update={"jump": (jump,)}))
        assert found.hops[0].address == jump, "it is an odd name, and never an option"
        return
    with pytest.raises(InventoryError, match="neither in the inventory nor an address"):
        route(tmp_path, WEB.model_copy(update={"jump": (jump,)}))


def test_jumps_in_a_circle_are_refused(tmp_path: Path) -> None:
    """A host that is behind itself is told with the way round."""
    entry = Host(name="one", address="192.0.2.1", jump=("two",))
    two = Host(name="two", address="192.0.2.2", jump=("one",))
    with pytest.raises(InventoryError, match="one -> two -> one"):
        route(tmp_path, entry, two)


def test_proxy_command_is_filled_in_without_a_shell(tmp_path: Path) -> None:
    """Words are split first, so that no value becomes another word; jump hosts go before it."""
    command = "ProxyCommand exec nc -x '%n %r' %h %p 5%%"
    config = f"Host web10\n  HostName 10.0.0.4\n  Port 2222\n  {command}\n"
    named = Host(name="web", address="web10", user="a b")
    assert route(tmp_path, named, config=config).target.proxy == (
        ("nc", "-x", "web10 a b", "10.0.0.4", "2222", "5%")
    )
    own = named.model_copy(update={"port": 2200})
    assert route(tmp_path, own, config=config).target.proxy[-2] == "2200"
    direct = named.model_copy(update={"jump": ()})
    assert route(tmp_path, direct, config=config).target.proxy == ()
    assert route(tmp_path, WEB, config=f"ProxyCommand none\n{config}").target.proxy == ()


def test_match_exec_is_refused(tmp_path: Path) -> None:
    """Looking at the configuration runs nothing of it."""
    proof = tmp_path / "proof"
    with pytest.raises(InputError, match=r"config:2: `Match exec` would execute"):
        route(tmp_path, WEB, config=f"\nMatch host x exec 'touch {proof}'\n  User y\n")
    route(tmp_path, WEB, config=f"Host 10.0.0.4\n  ProxyCommand touch {proof}\n")
    assert not proof.exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [("nc %h %p 2>/dev/null", "shell"), ("nc %u", "%u"), ("nc 'x", "quot"), ("exec", "program")],
)
def test_proxy_command_that_cannot_be_used_is_refused(
    tmp_path: Path, command: str, reason: str
) -> None:
    """It would need a shell, or means something else than for ssh."""
    with pytest.raises(InputError, match=reason):
        route(tmp_path, WEB, config=f"Host 10.0.0.4\n  ProxyCommand {command}\n")


def test_included_files_apply_at_their_position(tmp_path: Path) -> None:
    """The first value wins, whichever file it is in, and blocks of a file end with it."""
    (tmp_path / ".ssh/conf.d").mkdir(parents=True)
    part = tmp_path / ".ssh/conf.d/a"
    part.write_text("User first\nHost other\n  Port 1\n", encoding="utf-8")
    host = WEB.model_copy(update={"user": None})
    config = "Include conf.d/*\nPort 99\nUser second\n"
    assert places(route(tmp_path, host, config=config)) == ["first@10.0.0.4:99"]
    with pytest.raises(InputError, match="`Include` inside a block"):
        route(tmp_path, host, config="Host a\n  Include conf.d/*\n")
    part.write_text("Include conf.d/a\n", encoding="utf-8")
    with pytest.raises(InputError, match="nested `Include`"):
        route(tmp_path, host, config=config)


@pytest.mark.parametrize("config", ["Port many\n", "Port 70000\n", "Host 'a\n"])
def test_an_invalid_configuration_is_named(tmp_path: Path, config: str) -> None:
    """The file and the value are told."""
    with pytest.raises(InputError, match=r"\.ssh/config cannot be used"):
        route(tmp_path, WEB, config=config)
