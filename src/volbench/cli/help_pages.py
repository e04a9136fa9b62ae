"""Help pages of verbs: one screen of the most needed options, and pages with the others."""

from __future__ import annotations

import re

import click

MAX_PLAIN_OPTIONS = 20  # Verbs with more have several pages. Noticed by: tests/cli/test_help.py
HEADINGS: dict[click.Parameter, str] = {}  # Option to its heading on a long help page

# Heading on the first screen to the most needed options of all verbs, in order
MOST_NEEDED = {
    "What": (
        *("--for", "--type", "--mode", "--rw", "--bs", "--iodepth", "--runtime", "--start"),
        *("--between", "--metric", "--by", "--where", "--confirm", "--retry-failed", "--without"),
        *("--list", "--set", "--repeat", "--expect"),
    ),
    "Where": ("--on", "--inventory", "--k8s"),
    "Safety": ("--dry-run", "--allow-destroy"),
    "Output": ("--output", "--json", "--chart"),
}

# Option to the heading of the options that it prints; an empty one for all
PAGES = {"--help-hosts": "Hosts", "--help-k8s": "Kubernetes", "--help-all": ""}

_PLAIN = "Options"  # Heading of options without one
_LEFT, _WIDTH = 31, 80  # Columns of the first screen: left of a description, and all
_BOUNDARY = re.compile(r"[.:;,](?= )|(?= \()|(?=  \[)|\.?$")


class VerbCommand(click.Command):
    """A command whose help, if it has many options, is one screen and further pages."""

    @property
    def is_long(self) -> bool:
        """Whether the help has several pages."""
        options = [each for each in self.params if isinstance(each, click.Option)]
        return sum(not each.hidden for each in options) >= MAX_PLAIN_OPTIONS

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with the options that print further pages of the help."""
        parameters = super().get_params(ctx)
        if not self.is_long:
            return parameters
        headings = {"", *(HEADINGS.get(each, _PLAIN) for each in self.params)}
        pages = [name for name, heading in PAGES.items() if heading in headings]
        return [*parameters, *map(_page_option, pages)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, or its first screen."""
        if not self.is_long:
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text((self.help or "").partition("\n\n")[0])
        formatter.write_paragraph()
        options = {each.opts[-1]: each for each in self.params if isinstance(each, click.Option)}
        for heading, names in MOST_NEEDED.items():
            rows = [_option_row(options[name], ctx) for name in names if name in options]
            formatter.write("".join([f"{heading}:\n", *rows]) if rows else "")
        pages = [each.opts[0] for each in self.get_params(ctx) if each.opts[0] in PAGES]
        formatter.write(f"\nMore options: {', '.join(pages)}\n")
        examples = [f"Example: {line.strip()}\n" for line in (self.epilog or "").splitlines()[2:]]
        formatter.write(next((line for line in examples if len(line) <= _WIDTH), ""))

    def write_page(self, ctx: click.Context, formatter: click.HelpFormatter, heading: str) -> None:
        """Write usage and options: those under a heading, or all of them if it is empty."""
        self.format_usage(ctx, formatter)
        if not heading:
            self.format_help_text(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {_PLAIN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                sections.setdefault(HEADINGS.get(parameter, _PLAIN), []).append(record)
        for name, records in sections.items():
            if records and heading in {"", name}:
                with formatter.section(name):
                    formatter.write_dl(records)
        if not heading:
            self.format_epilog(ctx, formatter)


def _page_option(name: str) -> click.Option:

    def print_page(context: click.Context, _option: click.Parameter, value: object) -> None:
        command = context.command
        if value and not context.resilient_parsing and isinstance(command, VerbCommand):
            formatter = context.make_formatter()
            command.write_page(context, formatter, PAGES[name])
            click.echo(formatter.getvalue().rstrip("\n"), color=context.color)
            context.exit()

    about = f"options: {PAGES[name]}" if PAGES[name] else "all options"
    return click.Option(
        [name],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_page,
        help=f"Show {about}.",
    )


def _option_row(option: click.Option, ctx: click.Context) -> str:
    """Return a line of the first screen: an option and the begin of its description."""
    record = option.get_help_record(ctx)
    left = f"  {record[0] if record else ''}".ljust(_LEFT)
    return f"{left} {brief(option.help or '', _WIDTH - len(left) - 1)}\n"


def brief(text: str, width: int) -> str:
    """Return the first sentence of a description, or as many of its clauses as fit a width."""
    ends = [match.start() for match in _BOUNDARY.finditer(text)]
    sentence = next((end for end in ends if text[end : end + 1] in {"", "."}), len(text))
    fitting = [end for end in ends if end <= min(sentence, width - 1)]
    return f"{text[: fitting[-1] if fitting else width]}."
