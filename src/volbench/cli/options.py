"""Options and arguments that several verbs share, and groups of options as one keyword."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.shell_completion import CompletionItem

from volbench.cli.configuration import campaigns_here
from volbench.cli.help_pages import HEADINGS
from volbench.cli.verb_groups import remember
from volbench.errors import InputError
from volbench.extension import load
from volbench.units import parse_duration

if TYPE_CHECKING:
    from volbench.model.campaign.event import Listener
    from volbench.store.layout import Layout

Verb = Callable[..., None]
Decorator = Callable[[Verb], Verb]
ListenersOf = Callable[["Layout"], "list[Listener]"]

# Of AWS, Azure and Google Cloud: link-local, so that it never leaves the machine
_METADATA_ENDPOINT = "http://169.254.169.254"
ROLE = re.compile(r"([A-Za-z0-9_-]+)=(.+)", re.DOTALL)

PATH = click.Path(path_type=Path)
_CAMPAIGN_OR_RESULTS = click.Path(exists=True, allow_dash=True, path_type=Path)
_CAMPAIGN_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
CAMPAIGN = click.argument("campaign", type=_CAMPAIGN_FOLDER, metavar="DIR", callback=remember)
WHERE = click.option(
    "--where",
    default="",
    metavar="CONDITION",
    help="Only runs that meet a condition, such as 'bs==4k and host~vm'.",
)
JUNIT = click.option(
    "--junit",
    type=click.Path(allow_dash=True),  # as text: a name that ends in a slash is a folder
    metavar="FILE",
    help="Also write the results as JUnit XML for CI systems; - prints only the XML.",
)
SETTINGS = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a fio option in every job (size=64m), in one (test1.bs=8k), or a key of the "
    "profile (repeat=3, limits.iops=1100, limits.data=azure/P15); repeatable.",
)
EXPECT = click.option(
    "--expect",
    "expectations",
    multiple=True,
    metavar="[JOB.]METRIC<BOUND",
    help="Requirement of the results, such as reads.p99<5ms: a metric of one job or of all, with "
    "< <= > or >= and a bound in its unit (write_iops>=3000, fdatasync_p99<10ms, steady=yes); "
    "repeatable. Exit code 10 if one fails, 11 if one is undecided.",
)
ALLOW_DESTROY = click.option(
    "--allow-destroy",
    multiple=True,
    metavar="DEVICE",
    help="Allow this device or file to be overwritten; repeatable. On another host: vm01:/dev/sdb. "
    "fio:OPTION allows an option that may displace a file or fill its filesystem.",
)


def option_group(
    keyword: str, make: Callable[..., object] | str, *options: Decorator, heading: str = ""
) -> OptionGroup:
    """Return a decorator that gives a verb several options as one keyword.

    Args:
        make: called with the values of the options by name; returns the value of the keyword. A
            reference (see `volbench.extension.load`) is loaded when the verb is called.
        options: decorators of click and groups, in the order of the help page.
        heading: of these options on a long help page.
    """

    def add(verb: Verb) -> Verb:
        names: list[str] = []

        @wraps(verb)
        def wrapped(*arguments: object, **given: object) -> None:
            made = load(make) if isinstance(make, str) else make
            group = made(**{name: given.pop(name) for name in names})
            verb(*arguments, **{keyword: group}, **given)

        decorated: Any = wrapped
        for option in reversed(options):
            before = len(getattr(decorated, "__click_params__", ()))
            decorated = headed(heading, option)(decorated)
            added: list[click.Parameter] = decorated.__click_params__[before:]
            given_names = [str(parameter.name) for parameter in added if parameter.expose_value]
            names.extend([option.keyword] if isinstance(option, OptionGroup) else given_names)
        result: Verb = decorated
        return result

    return OptionGroup(keyword, add)


def headed(heading: str, *options: Decorator) -> Decorator:
    """Return a decorator with options that stand under a heading on a long help page."""

    def add(verb: Verb) -> Verb:
        decorated: Any = verb
        before = len(getattr(decorated, "__click_params__", ()))
        for option in reversed(options):
            decorated = option(decorated)
        for parameter in decorated.__click_params__[before:] if heading else ():
            HEADINGS.setdefault(parameter, heading)
        result: Verb = decorated
        return result

    return add


@dataclass(frozen=True)
class OptionGroup:
    """Decorator that gives a verb several options as one keyword."""

    keyword: str
    add: Decorator

    def __call__(self, verb: Verb) -> Verb:
        """Return the verb with its options."""
        return self.add(verb)


class Quantity(click.ParamType[Any]):
    """Parameter type of a number with a unit; error messages name the option.

    Args:
        parse: the text to the number in the base unit; raises InputError.
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Return the parsed number; values that are no text are returned unchanged.

        Completion gives texts as well, and imports nothing for them.
        """
        if not isinstance(value, str) or (ctx is not None and ctx.resilient_parsing):
            return value
        try:
            return self._parse(value)
        except InputError as error:
            option = param.opts[-1] if param is not None else ""
            message = error.message if option in error.message else f"{option}: {error.message}"
            raise InputError(message, hint=error.hint) from error


def given_option(*parameters: str) -> str:
    """Return the first of some options that is on the command line; empty if none is."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if option.name in parameters and source is click.core.ParameterSource.COMMANDLINE:
            return option.opts[-1]
    return ""


def output_option(**attributes: Any) -> Decorator:  # noqa: ANN401 - passed on to click as they are
    """Return the option ``-o/--output``."""
    return click.option("-o", "--output", "output", **attributes)


def on_option(
    text: str, *, metavar: str = "[[USER@]HOST:]TARGET", is_required: bool = False
) -> Decorator:
    """Return the option ``--on``, as the keyword `targets`."""
    return click.option(
        "--on", "targets", multiple=True, required=is_required, metavar=metavar, help=text
    )


def flag(name: str, text: str, keyword: str = "") -> Decorator:
    """Return an option without a value, such as ``--json``."""
    return click.option(name, *([keyword] if keyword else []), is_flag=True, help=text)


def names_option(name: str, keyword: str, *, text: str, metavar: str = "COLUMN,...") -> Decorator:
    """Return an option such as ``--by``: names with commas, or given several times, as a tuple."""

    def parse(value: str) -> tuple[str, ...]:
        names = split_names(value)
        if value and not names:
            raise InputError(f"{name} has no value", hint=f"write it like {name} {metavar}")
        return names

    def join(_: click.Context, __: click.Parameter, given: Iterable[Iterable[str]]) -> object:
        return tuple(chain.from_iterable(given))

    kind = Quantity(metavar, parse)
    return click.option(
        name, keyword, type=kind, metavar=metavar, multiple=True, callback=join, help=text
    )


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def completed_by(
    names: Callable[[], Iterable[str]] | str, *, or_file: bool = False
) -> Callable[..., list[CompletionItem]]:
    """Return the completion of one of some names, read when a shell asks, or also of a file."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del context, parameter
        known: Iterable[str] = (load(names) if isinstance(names, str) else names)()
        items = [CompletionItem(name) for name in known if name.startswith(incomplete)]
        # First: bash forgets the names that came before it, and offers files where no name fits
        return [CompletionItem(incomplete, type="file"), *items] if or_file else items

    return complete


def bundled(folder: str) -> Callable[[], tuple[str, ...]]:
    """Return a function that returns the names of the bundled files of a folder."""

    def names() -> tuple[str, ...]:
        from volbench.plan.bundled_files import bundled_names

        return bundled_names(folder)

    return names


A_PROFILE = completed_by(bundled("profiles"), or_file=True)
A_PRICE_LIST = completed_by(bundled("prices"), or_file=True)


def examples(*lines: str) -> str:
    """Return an epilog for a help page: example commands, one a line, not wrapped."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def campaigns_argument(metavar: str = "DIR...", *, required: bool = True) -> Decorator:
    """Return the argument for campaigns, folders of campaigns, and results of fio."""
    return click.argument(
        "campaigns", nargs=-1, required=required, type=_CAMPAIGN_OR_RESULTS, metavar=metavar
    )


def _or_newest(
    context: click.Context, argument: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    if paths or context.resilient_parsing:
        return paths
    if newest := newest_campaign():
        return newest
    raise click.MissingParameter(ctx=context, param=argument)


def newest_campaign() -> tuple[Path, ...]:
    """Return the newest campaign here, and say which it is; empty if there is none."""
    newest = campaigns_here()[:1]
    for folder in newest:
        click.echo(f"newest campaign here: {folder}", err=True)
    return newest


CAMPAIGNS = click.argument(
    "campaigns", nargs=-1, type=_CAMPAIGN_OR_RESULTS, metavar="[DIR]...", callback=_or_newest
)

NEW_CAMPAIGN = output_option(
    type=PATH, metavar="DIR", help="New campaign folder. Default: volbench-results/NAME-TIME."
)


ALLOW_EXEC = headed(
    "Safety", flag("--allow-exec", "Accept options that run programs or leave the run's folder.")
)


WIPE_SIGNATURES = flag(
    "--wipe-signatures",
    "Allow devices of --allow-destroy to hold a filesystem, LUKS, swap or partitions, or to "
    "belong to a RAID or LVM.",
)

ALLOW_SHARED_FOLDER = flag(
    "--allow-shared-folder",
    "As root, measure in a folder that other users can write to. They could redirect fio to any "
    "file.",
)


def _consent(**values: Any) -> object:  # noqa: ANN401 - click passes options by name
    from volbench.model.campaign.planned_run import Consent

    # as targets are recorded; HOST:DEVICE, whose user is left out, and NBD URIs have a colon
    given = values["allow_destroy"]
    values["allow_destroy"] = tuple(
        re.sub("^[^/:]*@", "", name) if ":" in name or not name else str(Path(name).absolute())
        for name in given
    )
    return Consent(**values)


def consent_options(allow_destroy: Decorator, *more: Decorator) -> Decorator:
    """Return the options that permit to destroy data, as the keyword `consent`: a `Consent`."""
    return option_group(
        "consent", _consent, allow_destroy, WIPE_SIGNATURES, *more, heading="Safety"
    )


KEEP_FILES = flag("--keep-files", "Leave scratch files on the volumes.")
DRY_RUN = flag("--dry-run", "Check and show the plan; nothing is run or written.")
YES = flag("--yes", "Skip the confirmation of a long campaign.")
AS_YAML = flag("--yaml", "Print the file itself.", "as_yaml")

GRACE = click.option(
    "--grace",
    "grace_s",
    type=Quantity("TIME", parse_duration),
    default="10m",
    show_default=True,
    help="Time by which a run may exceed its expected duration before it is stopped. A full cache "
    "can block a volume for minutes.",
)


def settings_options(*options: Decorator) -> Decorator:
    """Return options of the execution, named as in `Settings`, as the keyword `execution`."""
    settings = "volbench.engine.campaign.campaign_state:Settings"
    return option_group("execution", settings, *options, heading="Execution")


DETACH = flag("--detach", "Run in the background; follow it with volbench status DIR --follow.")


def _endpoint(text: str) -> str:
    if not text:
        return ""
    kind, _, address = text.partition("=")
    parts = urlsplit(address or _METADATA_ENDPOINT)
    is_address = parts.scheme == "http" and parts.hostname and not (parts.path or parts.query)
    if kind != "cloud" or not is_address:
        raise InputError(f"{text!r} is unknown", hint="write --limits-from cloud")
    return parts.geturl()


LIMITS_FROM = click.option(
    "--limits-from",
    "metadata_endpoint",
    type=Quantity("SOURCE", _endpoint),
    default="",
    metavar="cloud[=URL]",
    help="Ask the cloud's metadata service on each host for the machine type and the disks, and"
    " take their limits where none are declared. URL: its address, if it is another one.",
)


def schema_option(of: str, read: str) -> Decorator:
    """Return the option that prints the JSON Schema that a function, by its reference, returns."""

    def print_schema(context: click.Context, _option: click.Parameter, value: object) -> None:
        import json

        if value and not context.resilient_parsing:
            click.echo(json.dumps(load(read)(), indent=2, ensure_ascii=False))
            context.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_schema,
        help=f"Print the JSON Schema of {of}, for editors, and exit.",
    )


def parse_targets(texts: Sequence[str]) -> dict[str, str]:
    """Return role to target of ``--on`` values; a bare target is the role ``data``."""
    targets = parse_several_targets(texts)
    for role, named in targets.items():
        if len(named) > 1:
            raise InputError(
                f"--on names the role {role!r} twice: {named[0]} and {named[1]}",
                hint="a role is one volume here; volbench run takes several as arms",
            )
    return {role: named[0] for role, named in targets.items()}


def parse_several_targets(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return role to the targets of ``--on`` values; a bare target is the role ``data``."""
    targets: dict[str, list[str]] = {}
    for text in texts:
        match = ROLE.fullmatch(text)
        role, target = match.groups() if match else ("data", text)
        if not target or (target.endswith("=") and not match):
            raise InputError(
                f"--on {text!r} does not name a target", hint="write it like data=/dev/sdb"
            )
        if target in targets.get(role, ()):
            message = f"--on names {target} twice for the role {role!r}"
            raise InputError(message, hint="--repeat measures it several times")
        targets.setdefault(role, []).append(target)
    return targets
