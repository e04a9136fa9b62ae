"""Defaults of options from ``volbench.toml`` and the user's ``config.toml``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.api.run_profiles import DEFAULT_RESULTS
from volbench.cli.verb_groups import questions_shown
from volbench.errors import InputError, RefusedError, did_you_mean, quoted, unread

if TYPE_CHECKING:
    from volbench.model.campaign.host import Host

LOCAL_FILE = Path("volbench.toml")
# Key to what it stands for
KEYS = {
    "targets": "Role to device, file, directory or NBD URI, for run and measure.",
    "inventory": "List of hosts, for run; not used with --on. Consent in it is typed: --inventory.",
    "prices": "Price list, for price.",
    "pod": "Table with settings of pods, for run --k8s: the keys of --pod.",
    "results": "Folder in which new campaign folders are created.",
}
# Key to the verbs that have it, with the name of their parameter
_VERBS = {"inventory": {"run": "inventory"}, "prices": {"price": "file"}}
_FROM_FILE = click.core.ParameterSource.DEFAULT_MAP
_PATHS = {"inventory", "results"}
_TABLES = {"pod"}


@dataclass(frozen=True)
class Default:
    """A value with the file that it comes from."""

    value: str | Mapping[str, Any]  # text, role to target for `targets`, or a table of an extension
    file: Path | None  # None for volbench's own default


def read_configuration() -> dict[str, Default]:
    """Return the configured defaults by key; the local file goes before the user's."""
    defaults: dict[str, Default] = {}
    for file in (user_file(), LOCAL_FILE):
        if file.is_file():
            _refuse_foreign(file)
            defaults |= {key: Default(value, file) for key, value in _values(file)}
    return defaults


def _refuse_foreign(file: Path) -> None:
    """Refuse a file of another user, who could choose what root measures and overwrites."""
    if os.geteuid():
        return
    from volbench.execute.agent.files import place_of_others

    users, groups = ({0, int(os.environ.get(f"SUDO_{kind}") or 0)} for kind in ("UID", "GID"))
    place, reason = place_of_others(str(file.resolve()), users, groups)
    if (owner := file.lstat().st_uid) not in users:
        place, reason = str(file.absolute()), f"belongs to user {owner}"
    if place:
        raise RefusedError(
            f"{file.absolute()} is not used: {place} {reason}, who could choose what root measures",
            hint="remove it, or work in another folder",
        )


def user_file() -> Path:
    """Return the path of the user's configuration, which may not exist."""
    configured = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(configured).expanduser() / "volbench" / "config.toml"


def default_map(configuration: Mapping[str, Default]) -> dict[str, dict[str, object]]:
    """Return the defaults of each verb's parameters, as click takes them."""
    values = {key: default.value for key, default in configuration.items()}
    targets = values.get("targets", {})
    targets = {"data": targets} if isinstance(targets, str) else targets
    named = [f"{role}={target}" for role, target in targets.items()]
    by_verb: dict[str, dict[str, object]] = {
        "run": {"targets": named} if named else {},
        "measure": {"targets": list(targets.values())} if named else {},
        "price": {},
    }
    for key, verbs in _VERBS.items():
        for verb, parameter in verbs.items() if key in values else ():
            by_verb[verb][parameter] = values[key]
    return by_verb


def results_folder() -> Path:
    """Return the folder for new campaign folders."""
    return Path(str(_configured("results", DEFAULT_RESULTS)))


def campaigns_here() -> tuple[Path, ...]:
    """Return the campaigns in the folder of results and in this folder, the newest first."""
    plans = {*results_folder().glob("*/campaign.json"), *Path().glob("*/campaign.json")}
    newest = sorted(plans, key=lambda plan: plan.lstat().st_mtime, reverse=True)
    return tuple(plan.parent for plan in newest)


def confirm_results(folder: Path) -> None:
    """Ask whether results may go where the file of a folder of somebody else may lead them."""
    configuration: Mapping[str, Default] = click.get_current_context().find_root().obj or {}
    is_local = "results" in configuration and configuration["results"].file == LOCAL_FILE
    if not is_local or folder.resolve().is_relative_to(Path.cwd()):
        return
    words = f"{LOCAL_FILE} puts results outside its folder, in {folder.resolve()}"
    with questions_shown():
        if sys.stdin.isatty() and click.confirm(f"{words}. Continue?", err=True, default=False):
            return
    raise RefusedError(words, hint=f"if that is intended: --output {folder}/NAME")


def configured_table(key: str) -> Mapping[str, Any]:
    """Return a table of the configuration; empty if there is none."""
    value = _configured(key, {})
    return value if isinstance(value, Mapping) else {}


def _configured(key: str, otherwise: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    configuration: Mapping[str, Default] = click.get_current_context().find_root().obj or {}
    default = configuration.get(key)
    return default.value if default else otherwise


def unless_targets_are_given(
    context: click.Context, option: click.Parameter, value: Path | None
) -> Path | None:
    """Leave out a configured inventory where ``--on`` names a target of this machine."""
    is_configured = context.get_parameter_source(str(option.name)) is _FROM_FILE
    return None if is_configured and targets_are_given(context) else value


def refuse_untyped_consent(inventory: Path | None, hosts: Sequence[Host]) -> None:
    """Refuse consent and programs of an inventory that only a file of defaults names."""
    context = click.get_current_context()
    if context.get_parameter_source("inventory") is not _FROM_FILE:
        return
    file = context.find_root().obj["inventory"].file
    for host in hosts:
        given = {"allow_destroy": ", ".join(host.allow_destroy), "python": host.python}
        for key, value in given.items():
            if value:
                raise RefusedError(
                    f"{inventory}, which only {file} names, sets {key} of {host.name}: {value}",
                    hint=f"if that is intended, type it: --inventory {quoted(inventory)}",
                )


def targets_are_given(context: click.Context) -> bool:
    """Return whether ``--on`` is in the command line, not in a file of defaults."""
    return context.get_parameter_source("targets") is click.core.ParameterSource.COMMANDLINE


def say_what_is_configured() -> None:
    """Print the defaults from files that the present command uses, on standard error."""
    context = click.get_current_context()
    configuration: Mapping[str, Default] = context.find_root().obj or {}
    for key, default in configuration.items():
        parameter = _VERBS.get(key, {}).get(str(context.info_name), key)
        if context.params.get(parameter) and context.get_parameter_source(parameter) is _FROM_FILE:
            click.echo(f"from {default.file}: {key} {text_of(default.value)}", err=True)


def text_of(value: str | Mapping[str, Any]) -> str:
    """Return a value on one line."""
    if isinstance(value, str):
        return value
    return ", ".join(f"{role}={target}" for role, target in value.items())


def _values(file: Path) -> Iterator[tuple[str, str | dict[str, Any]]]:
    """Yield the keys and values of a file; relative paths are those from the file's folder."""
    import tomllib

    from volbench.plan.bundled_files import read_text

    try:
        document = tomllib.loads(read_text(file, what="file of defaults", form="TOML"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{file} cannot be read: {unread(error)}"
        raise InputError(message, hint="volbench --version --verbose lists its keys") from error
    except RecursionError:
        raise InputError(
            f"{file} is nested too deeply", hint="volbench --version --verbose lists its keys"
        ) from None
    for key, value in document.items():
        if key not in KEYS:
            raise InputError(
                f"{file}: unknown key {key!r}",
                hint=did_you_mean(key, list(KEYS), f"known: {', '.join(KEYS)}"),
            )
        if key == "targets":
            yield key, _targets(file, value)
        elif key in _TABLES:
            if not isinstance(value, dict):
                raise InputError(f"{file}: {key} must be a table", hint=f"write [{key}]")
            yield key, value
        elif not isinstance(value, str) or not value:
            raise InputError(f"{file}: {key} must be a string", hint=f'write {key} = "..."')
        else:
            yield key, str(file.parent / Path(value).expanduser()) if key in _PATHS else value


def _targets(file: Path, value: object) -> dict[str, str]:
    """Return role to target; a text is the target of the role ``data``."""
    targets = {"data": value} if isinstance(value, str) else value
    if not isinstance(targets, dict) or not all(
        isinstance(target, str) and target for target in targets.values()
    ):
        raise InputError(
            f"{file}: targets must be a string or a table of strings",
            hint='write targets = {data = "/data"}',
        )
    return {str(role): str(target) for role, target in targets.items()}
