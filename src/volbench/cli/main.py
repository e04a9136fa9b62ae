"""Entry point of the command line: finds the verb and prints errors with their hints."""

from __future__ import annotations

import errno
import gc
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import MissingParameter, NoArgsIsHelpError, NoSuchCommand, NoSuchOption

from volbench import __version__
from volbench.cli.configuration import default_map, read_configuration
from volbench.cli.fio_verb import FioVerb
from volbench.cli.other_words import option_hint, target_hint, verb_hint
from volbench.cli.verb_groups import LazyGroup, end_quietly
from volbench.errors import InputError, VolbenchError, did_you_mean, quoted
from volbench.extension import Verb, extensions
from volbench.interrupts import end_interrupt, interrupt

# Heading to the verbs of the core, in the order in which a user needs them. The module of a verb is
# imported when the verb is called.
CORE_VERBS = {
    "Measure and compare": {
        "measure": Verb(
            "volbench.cli.measure:measure", "Measure a workload: volbench measure --on /mnt/data"
        ),
        "run": Verb(
            "volbench.cli.run:run", "Run a profile: volbench run quick --on /mnt/data -o results"
        ),
        "compare": Verb(
            "volbench.cli.compare:compare", "Compare, with intervals: volbench compare before after"
        ),
        "plot": Verb("volbench.cli.plot:plot", "Draw a chart: volbench plot iops results"),
        "report": Verb(
            "volbench.cli.report:report", "Write one HTML page: volbench report results --open"
        ),
        "show": Verb("volbench.cli.show:show", "Show a table of results: volbench show results"),
    },
    "Campaigns": {
        "resume": Verb("volbench.cli.resume:resume", "Continue a campaign that was interrupted."),
        "status": Verb(
            "volbench.cli.status:status", "List campaigns; show, follow or clean up one of them."
        ),
        "check": Verb(
            "volbench.cli.check:check", "Check results: warnings, expectations, changed files."
        ),
        "export": Verb(
            "volbench.cli.export:export",
            "Write frames for spreadsheets, papers, Prometheus, Grafana.",
        ),
        "trend": Verb(
            "volbench.cli.compare:trend", "Follow workloads over campaigns, and find regressions."
        ),
    },
    "Volumes": {
        "warmup": Verb(
            "volbench.cli.run:warmup", "Write or read every block of a volume once, and verify it."
        ),
        "audit": Verb(
            "volbench.cli.audit:audit",
            "Measure whether volumes deliver the limits that are promised.",
        ),
    },
    "Set-up": {
        "profile": Verb(
            "volbench.cli.profiles:profile", "List, show, check, render and import profiles."
        ),
        "hosts": Verb(
            "volbench.cli.hosts:hosts",
            "Show facts about this machine, volumes, or a list of hosts.",
        ),
    },
}

# Messages of click that are reworded
_MISSING_FOLDER = re.compile(r"(Directory|Path) ('.*') does not exist")
_A_FILE = re.compile(r"Directory ('.*') is a file")
_NOT_CHOSEN = re.compile(r"'(-?-?\w.*)': ('.*') is not one of (.*)")
_RANGE = re.compile(r"'(--.*)': (\S+) is not in the range (?:(\d+)<=x<=(\d+)|x>=?(\d+))")
_NOT_NUMBER = re.compile(r"'(--.*)': ('.*') is not a valid (integer|float)")

# New objects after which Python looks for cycles. Rows of frames have none, and a look at a
# million of them takes a tenth of a second. Noticed by: benchmarks/cli.py
_COLLECTED_AT = 100_000
# Errors of paths that only a user's argument leads to
_USERS_PATHS = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}
# Errors without a path: those of standard output
_OF_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

# Values of an option that an error lists in one line; with more, the hint has the nearest.
# Noticed by: tests/cli/test_failures.py::test_every_mistake_on_the_command_line_has_a_hint
_MAX_CHOICES = 12


def _with_extensions(groups: Mapping[str, Mapping[str, Verb]]) -> dict[str, dict[str, Verb]]:
    listed = {heading: list(verbs.items()) for heading, verbs in groups.items()}
    names = {name for verbs in groups.values() for name in verbs}
    for extension in extensions():
        for name, verb in extension.verbs.items():
            if name in names:
                continue
            group = listed.setdefault(verb.group, [])
            before = [known for known, _ in group]
            place = before.index(verb.after) + 1 if verb.after in before else len(group)
            group.insert(place, (name, verb))
            names.add(name)
    return {heading: dict(verbs) for heading, verbs in listed.items()}


VERB_GROUPS = _with_extensions(CORE_VERBS)
VERBS = {name: verb for verbs in VERB_GROUPS.values() for name, verb in verbs.items()}


@click.group(
    cls=LazyGroup,
    groups=VERB_GROUPS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A fio command: volbench run -- fio ... Help on a command: volbench help run. Pages: "
    "volbench help PAGE, such as errors, findings, frames, charts, python, shell, safety or "
    "statistics.",
)
@click.option("-V", "--version", "is_version", is_flag=True, help="Show the version and exit.")
@click.option(
    "-v",
    "--verbose",
    "is_verbose",
    is_flag=True,
    help="With --version: also show libraries, fio, the system and the configuration.",
)
@click.pass_context
def cli(context: click.Context, *, is_version: bool, is_verbose: bool) -> None:
    """Benchmark storage volumes with fio: from a YAML profile to runs, charts and a report."""
    if is_version:
        click.echo(f"volbench, version {__version__}")
    if is_version and is_verbose:
        from volbench.cli.version import environment_text

        click.echo(environment_text())
    elif is_verbose:
        raise click.NoSuchOption("--verbose", ctx=context)
    if is_version:
        context.exit()
    if context.invoked_subcommand is None:
        raise NoArgsIsHelpError(context)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 success, 2 bad input, 3 refused, and so on as in `volbench help errors`.
    """
    gc.set_threshold(_COLLECTED_AT)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        if None in (sys.stdout, sys.stderr):  # a file would get its number
            sys.exit("volbench: standard output or error is closed: redirect it to a file")
        _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        end_quietly()


def _run(given: list[str]) -> NoReturn:
    try:
        given = _as_options(given)
        _check_text(given)
        configuration = {}
        is_verb = given and not given[0].startswith("-")
        if is_verb and not {"-h", "--help"} & {*given}:
            from volbench.execute.stuck_calls import report_stuck_calls

            report_stuck_calls()
            _check_folders()
            configuration = read_configuration()
        cli.main(
            args=given,
            prog_name="volbench",
            standalone_mode=False,
            obj=configuration,
            default_map=default_map(configuration),
        )
        sys.stdout.flush()
    except VolbenchError as error:
        if {"-v", "--verbose"} & {*given}:
            import traceback

            from volbench.model.profile.secret_values import mask_text

            click.echo(mask_text("".join(traceback.format_exception(error))), err=True, nl=False)
        _fail(error)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(InputError(_message(error), hint=_hint(error, given)))
    except (click.Abort, KeyboardInterrupt):
        end_interrupt()
        click.echo("volbench: stopped", err=True)
        sys.exit(130)
    except (MemoryError, ImportError, OSError, SystemError) as error:
        _fail_of(error)
    sys.exit(0)


def _fail_of(error: Exception) -> NoReturn:
    if isinstance(error, MemoryError | SystemError) or "failed to map segment" in str(error):
        _fail(VolbenchError("memory is exhausted", hint="free some, or raise ulimit -v"))
    if not isinstance(error, OSError):
        raise error
    reason, name = error.strerror, error.filename
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        _fail(VolbenchError(str(reason), hint="raise the limit: ulimit -n 1024"))
    if error.errno in _OF_OUTPUT and name is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # which Python flushes at its end
        _fail(InputError(f"standard output cannot be written: {reason}", hint="free some space"))
    if error.errno not in _USERS_PATHS or not isinstance(name, str):
        raise error
    problem = f"{name} cannot be examined: {reason}"
    _fail(InputError(problem, hint="check the path and its permissions"))


def _check_folders() -> None:
    """Refuse a removed current folder, and a TMPDIR in which others can replace root's files."""
    try:
        Path.cwd()
    except FileNotFoundError:
        problem = "the current folder was removed"
        raise InputError(problem, hint="cd to a folder that exists") from None
    if os.geteuid() == 0 and {"TMPDIR", "TEMP", "TMP"} & {*os.environ}:
        from volbench.execute.local import temporary_folder

        temporary_folder()


def _as_options(arguments: list[str]) -> list[str]:
    """Return arguments with the words help and version as options; print a page that is named."""
    if arguments == ["version"]:
        return ["--version"]
    if arguments[:1] != ["help"]:
        return arguments
    if page := _help_page(arguments[1:]):
        click.echo_via_pager(page)
        sys.exit(0)
    return [*arguments[1:], "--help"]


def _help_page(names: Sequence[str]) -> str:
    """Return the page of the documentation that ``volbench help`` names; empty for a verb's help.

    A page named like a verb has its ending, as in ``volbench help profile.md``.
    """
    from volbench.plan.bundled_files import bundled_folder

    if len(names) != 1 or names[0] in VERBS:
        return ""
    name = Path(names[0]).name.removesuffix(".md")
    docs = bundled_folder("docs")
    pages = [*docs.glob(f"*/{name}.md"), *sorted(docs.glob(f"*/{name}/*.md"))]
    return "\n".join(page.read_text("utf-8") for page in pages)


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not text: they can be neither printed nor stored."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"the argument {argument!a} is not valid UTF-8",
                hint="rename the file or folder, or write the text in UTF-8",
            ) from None


def _number_message(message: str) -> str:
    """Return click's message about a number in volbench's words; empty for any other."""
    if wrong := _NOT_NUMBER.search(message):
        kind = "an integer" if wrong[3] == "integer" else "a number"
        return f"{wrong[1]} must be {kind}, not {wrong[2]}"
    if beyond := _RANGE.search(message):
        option, value, low, high, least = beyond.groups()
        bounds = f"between {low} and {high}" if low else f"at least {least}"
        return f"{option} must be {bounds}, not {value}"
    return ""


def _message(error: click.ClickException) -> str:
    if isinstance(error, NoSuchOption):
        return f"no such option {error.option_name!r}"
    is_unknown = isinstance(error, NoSuchCommand)
    message = (error.message if is_unknown else error.format_message()).removesuffix(".")
    if missing := _MISSING_FOLDER.search(message):
        return f"there is no {'file or ' if missing[1] == 'Path' else ''}folder {missing[2]}"
    if wrong := _A_FILE.search(message):
        return f"{wrong[1]} is a file, not a folder"
    if (choice := _NOT_CHOSEN.search(message)) and choice[3].count(", ") < _MAX_CHOICES:
        known = choice[3].replace("'", "")
        return f"{choice[1]} must be one of {known}, not {choice[2]}"
    if number := _number_message(message):
        return number
    if isinstance(error, MissingParameter):
        message = message.partition(". Choose from")[0]
    if message.count(", ") > _MAX_CHOICES:
        message = message.partition(" is not one of ")[0]
    return message[:1].lower() + message[1:]


def _hint(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Return the hint of a usage error: the nearest name, an example, or how to see the help."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    otherwise = f"see {context.command_path if context else _called(arguments)} --help"
    if _A_FILE.search(error.message):
        otherwise = "name the folder of a campaign; volbench import reads results of fio"
    elif _MISSING_FOLDER.search(error.message):
        otherwise = "check its name; volbench status shows the campaigns of a folder"
    if context is None:
        return otherwise
    if "unexpected extra argument" in error.message:
        otherwise = target_hint(context.command_path, arguments[1:]) or otherwise
    match error:
        case NoSuchOption():
            return _option_hint(error.option_name, context, otherwise)
        case MissingParameter():
            is_target = error.param is not None and error.param.name == "targets"
            target = target_hint(context.command_path, arguments[1:]) if is_target else ""
            return target or _example(context.command) + otherwise
        case NoSuchCommand() if isinstance(context.command, click.Group):
            return _command_hint(error.command_name, context.command, context, otherwise)
        case click.BadParameter(param=click.Parameter(type=click.Choice() as kind) as parameter):
            if isinstance(parameter, click.Option):
                otherwise = f"write it like {parameter.opts[0]} {kind.choices[0]}"
            return _choice_hint(error.message, kind, context, otherwise)
    return otherwise


def _command_hint(name: str, group: click.Group, context: click.Context, otherwise: str) -> str:
    if group is cli:
        from volbench.plan.bundled_files import bundled_names

        return verb_hint(name, group.list_commands(context), bundled_names("profiles"), otherwise)
    return did_you_mean(name, group.list_commands(context), otherwise)


def _option_hint(name: str, context: click.Context, otherwise: str) -> str:
    from volbench.fio.jobs.option_table import shipped_table

    table, names = shipped_table(), [each for own in context.command.params for each in own.opts]
    if context.command is cli:
        verbs = [cli.get_command(context, each) or cli for each in cli.list_commands(context)]
        known = {each for verb in verbs for option in verb.params for each in option.opts}
        if name in known or table.find(name.removeprefix("--")):
            return f"the command comes first: volbench COMMAND {name}"
    if isinstance(context.command, FioVerb):
        if release := table.releases.get(name.removeprefix("--")):
            return f"it is an option of fio from {release} on"
        names += [f"--{each}" for each in table.names()]
    return option_hint(name, names, otherwise)


def _example(command: click.Command) -> str:
    lines = (line.strip() for line in (command.epilog or "").splitlines())
    example = next((line for line in lines if line.startswith("volbench ")), "")
    return f"for example: {example}; " if example else ""


def _choice_hint(
    message: str, kind: click.Choice[Any], context: click.Context, otherwise: str
) -> str:
    given = re.match("'(.*)' is not one of", message)
    if given is None:
        return otherwise
    if given[1] and Path(given[1]).is_dir():
        first = f"{context.command_path} {kind.choices[0]} {quoted(given[1])}"
        return f"the kind comes before the folders: {first}"
    names = [str(choice) for choice in kind.choices]
    return did_you_mean(given[1], names, _choices(kind) if len(names) > _MAX_CHOICES else otherwise)


def _called(arguments: Sequence[str]) -> str:
    """Return the command that arguments call, for errors of an option whose value is missing."""
    command: click.Command | None = cli
    names = ["volbench"]
    for word in arguments:
        group = command if isinstance(command, click.Group) else None
        command = group.get_command(click.Context(group), word) if group else None
        if command is None:
            break
        names.append(word)
    return " ".join(names)


def _choices(kind: click.Choice[Any]) -> str:
    names = [str(choice) for choice in kind.choices]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"choose one of {', '.join(names[:3])}{more}"


def _fail(error: VolbenchError) -> NoReturn:
    from volbench.model.profile.secret_values import mask_text
    from volbench.present.formatting import printable

    click.echo(printable(f"volbench: {mask_text(error.message)}"), err=True)
    if error.hint:
        click.echo(printable(f"  hint: {mask_text(error.hint)}"), err=True)
    sys.exit(error.exit_code)
