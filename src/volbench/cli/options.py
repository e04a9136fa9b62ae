"""Options and arguments that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import click

from volbench.errors import InputError


class OutputOption(click.Option):
    """The option ``-o/--output``; its first name ``--into`` is accepted, but not shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help page without the hidden alias."""
        visible = copy(self)
        visible.opts = [name for name in self.opts if name != "--into"]
        return click.Option.get_help_record(visible, ctx)


def output_option(**attributes: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:  # noqa: ANN401 - passed on to click as they are
    """Return the option ``-o/--output``; ``--into`` stays as a hidden alias until 0.2."""
    names = ("-o", "--output", "--into", "output")
    return click.option(*names, cls=OutputOption, **attributes)


NEW_CAMPAIGN = output_option(
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="New campaign folder. Default: volbench-results/NAME-TIME.",
)


def examples(*lines: str) -> str:
    """Return an epilog for a help page: example commands, one a line, not wrapped."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


CAMPAIGN = click.argument(
    "campaign", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR"
)

CAMPAIGNS = click.argument(
    "campaigns",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR...",
)
"""Campaign folders, and folders that hold some at any depth."""

WHERE = click.option(
    "--where",
    default="",
    metavar="CONDITION",
    help="Only runs for which this holds, such as 'bs==4k and host~vm'.",
)

SETTINGS = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a fio option in every job (size=64m), in one (test1.bs=8k), or a key of the "
    "profile (repeat=3, limits.iops=1100, limits.data=azure/P15).",
)

VOLUME_TYPES = click.option(
    "--volume-types",
    "type_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of volume types beside the bundled ones; repeatable.",
)
"""Verbs that read profiles or inventories take it with `knows_volume_types`."""

ALLOW_EXEC = click.option(
    "--allow-exec",
    is_flag=True,
    help="Accept options that run programs or leave the run's folder.",
)

ALLOW_DESTROY = click.option(
    "--allow-destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow this device or file to be overwritten. Name each one; on another host with its "
    "name before it: vm01:/dev/sdb.",
)

ALLOW_SHARED_FOLDER = click.option(
    "--allow-shared-folder",
    is_flag=True,
    help="As root, measure in a folder that other users own or can write to: who can, could lead "
    "fio to any file by a symlink.",
)

KEEP_FILES = click.option("--keep-files", is_flag=True, help="Leave scratch files on the volumes.")

DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Show what would run, check it, and touch nothing."
)

GRACE = click.option(
    "--grace",
    default="10m",
    show_default=True,
    metavar="TIME",
    help="How late a run may be before it is stopped: a full cache can block a volume for minutes.",
)

READY_TIMEOUT = click.option(
    "--ready-timeout",
    default="2m",
    show_default=True,
    metavar="TIME",
    help="How long clients that are ready wait for one whose host has stopped answering.",
)

INVENTORY = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="List of hosts: volbench's YAML, an Ansible inventory, or terraform output -json.",
)

LIMIT = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="GROUP|HOST",
    help="Only these hosts of the inventory: a group, a host, a range or a pattern such as vm*.",
)

MAPPING = click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that says which of Terraform's outputs describe the hosts.",
)

_ROLE = re.compile(r"([A-Za-z0-9_-]+)=(.+)", re.DOTALL)


def parse_targets(texts: Sequence[str]) -> dict[str, str]:
    """Return role to target of ``--on`` values; a bare target is the role ``data``.

    Raises:
        InputError: a role is named twice, or a target is empty.
    """
    targets: dict[str, str] = {}
    for text in texts:
        match = _ROLE.fullmatch(text)
        role, target = match.groups() if match else ("data", text)
        if not target or (target.endswith("=") and not match):
            raise InputError(f"--on {text!r} names no target", hint="write it like data=/dev/sdb")
        if role in targets:
            raise InputError(
                f"--on names the role {role!r} twice: {targets[role]} and {target}",
                hint="a role is one volume; run the profile twice to measure two",
            )
        targets[role] = target
    return targets
