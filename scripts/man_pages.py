"""Manual pages of every command, written from the commands themselves into the wheel.

build_hook.py calls `write_pages` when the wheel is built, so that `man volbench-run` works after an
installation. To write them: .venv/bin/python scripts/man_pages.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

SOURCE = Path(__file__).resolve().parents[1] / "src"
EXIT_CODES = "2 invalid input, 3 refused; see volbench help errors for the rest."


def write_pages(folder: Path) -> list[Path]:
    """Write the page of each command into a folder; return their paths."""
    sys.path.insert(0, str(SOURCE))
    from volbench.cli.main import cli  # noqa: PLC0415 - not installed when a wheel is built

    pages = []
    for context in contexts(cli, click.Context(cli, info_name="volbench")):
        pages.append(folder / f"{context.command_path.replace(' ', '-')}.1")
        pages[-1].write_text(page(context), encoding="utf-8")
    return pages


def contexts(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command and of everything below it."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from contexts(below, click.Context(below, info_name=name, parent=context))


def page(context: click.Context) -> str:
    """Return the page of a command in the macros of man(7)."""
    command, path = context.command, context.command_path
    name = path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    about = paragraphs(command.help or "")
    examples = paragraphs((command.epilog or "").replace("Examples:\n", ""))
    parts = [
        f'.TH {escaped(name.upper())} 1 "" volbench "User commands"',
        f".SH NAME\n{escaped(name)} \\- {escaped(command.get_short_help_str(200))}",
        f".SH SYNOPSIS\n.B {escaped(path)}\n{escaped(usage)}",
        f".SH DESCRIPTION\n{about}",
        f".SH OPTIONS\n{definitions(options_of(context))}",
        f".SH COMMANDS\n{definitions(commands_of(context))}",
        f".SH EXAMPLES\n{examples}",
        f".SH EXIT STATUS\n{EXIT_CODES}",
    ]
    above = context.parent.command_path.replace(" ", "-") if context.parent else ""
    parts += [f".SH SEE ALSO\n.BR {escaped(above)} (1)"] if above else []
    return "\n".join(part for part in parts if not part.endswith("\n")) + "\n"


def options_of(context: click.Context) -> list[tuple[str, str]]:
    """Return the options of a command, each with its help."""
    parameters = context.command.get_params(context)
    options = (option for option in parameters if isinstance(option, click.Option))
    records = (option.get_help_record(context) for option in options)
    return [record for record in records if record is not None]


def commands_of(context: click.Context) -> list[tuple[str, str]]:
    """Return the commands of a group, each with its help."""
    command = context.command
    if not isinstance(command, click.Group):
        return []
    found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return [(name, below.get_short_help_str(200)) for name, below in found if below is not None]


def definitions(records: list[tuple[str, str]]) -> str:
    """Return a list of terms."""
    return "\n".join(f".TP\n.B {escaped(term)}\n{escaped(text)}" for term, text in records)


def paragraphs(text: str) -> str:
    """Return paragraphs; those after click's mark for verbatim text keep their lines."""
    found = []
    for part in cleandoc(text).split("\n\n"):
        is_verbatim = part.startswith("\b")
        words = escaped(part.removeprefix("\b").strip("\n"))
        found.append(f".nf\n{words}\n.fi" if is_verbatim else words)
    return "\n.PP\n".join(part for part in found if part.strip())


def escaped(text: str) -> str:
    """Return a text without active characters of roff."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in lines)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
