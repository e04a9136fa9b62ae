"""Arguments for ssh from an Ansible variable in, the hops in them out.

Only the way to a host is taken from them (ssh(1): ``-J``, ``-o ProxyJump``, and a ``ProxyCommand``
that is nothing but ``ssh -W %h:%p BASTION``). What speaks of host keys or of the connection's pace
is told; what would change the way otherwise is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from volbench.errors import InputError
from volbench.model.document.yaml_nodes import Node
from volbench.plan.inventory.checks import hop_text, port, user
from volbench.plan.inventory.draft import HostReader, with_text

_WITHOUT_MEANING = {
    *("controlmaster", "controlpersist", "controlpath", "serveraliveinterval"),
    *("serveralivecountmax", "connecttimeout", "connectionattempts", "tcpkeepalive"),
    *("compression", "forwardagent", "loglevel", "batchmode", "forwardx11", "gssapiauthentication"),
    *("preferredauthentications", "identitiesonly", "addkeystoagent"),
}
_OF_HOST_KEYS = {"stricthostkeychecking", "userknownhostsfile", "globalknownhostsfile"}
_BARE = {"-q", "-C", "-A", "-a", "-x", "-T", "-4", "-6", "-n", "-v", "-vv", "-vvv"}


def read_arguments(reader: HostReader, name: str, node: Node) -> dict[str, Node]:
    """Return the hops, as ``jump``, that arguments of ssh hold."""
    text = reader.text(node, name)
    found: dict[str, Node] = {}
    try:
        for option, value in _options(shlex.split(text)):
            if option == "proxyjump":
                found["jump"] = with_text(node, value)
            elif option == "proxycommand":
                found["jump"] = with_text(node, _of_command(value))
            elif option in _OF_HOST_KEYS:
                reader.notes.append(
                    f"{value!r} of {name}: volbench checks host keys in its own way"
                )
            elif option not in _WITHOUT_MEANING:
                reader.complain(
                    node,
                    f"ssh's {option} can't be used",
                    hint="write a Host block in ~/.ssh/config, and its alias as ansible_host",
                )
                break
    except ValueError:
        reader.complain(node, "a quote without its other half")
    except InputError as error:
        reader.complain(node, error.message, hint=error.hint)
    return found


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value of every option, as they would stand in ssh_config(5)."""
    rest = iter(words)
    for word in rest:
        if word in _BARE:
            continue
        if word[:2] not in {"-J", "-o"}:
            yield word, ""
            continue
        value = word[2:] or next(rest, "")
        if word.startswith("-J"):
            yield "proxyjump", value
            continue
        keyword, sign, told = value.partition("=")
        if not sign:
            keyword, _, told = value.partition(" ")
        yield keyword.strip().lower(), told.strip()


def _of_command(text: str) -> str:
    """Return the hop of a ``ProxyCommand`` that only passes on to the host."""
    words = shlex.split(text)
    users: str | None = None
    port_number: int | None = None
    names: list[str] = []
    target = ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-W":
            target = next(rest, "")
        elif word == "-l":
            users = user(next(rest, ""))
        elif word == "-p":
            port_number = port(next(rest, ""))
        elif word.startswith("-"):
            names += [] if word in _BARE else ["", ""]
        else:
            names.append(word)
    if words[:1] != ["ssh"] or target.strip("[]") not in {"%h:%p", "%h]:%p"} or len(names) != 1:
        raise InputError(
            f"ProxyCommand {text!r} is more than a hop",
            hint="write -o ProxyJump=BASTION, and what else it needs into ~/.ssh/config",
        )
    named, sign, host = names[0].rpartition("@")
    return hop_text(named if sign else users, host, port_number)
