"""Command lines of fio, read as fio reads them: with getopt_long_only, options in order.

Measured with fio 3.33, and the same code in 3.42 (``parse_cmd_line`` in its ``init.c``): options
before the first ``--name`` are defaults of all jobs, also of a job file, wherever the file stands.
An option of an engine is known only after the ``--ioengine`` that has it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.errors import InputError, Problems
from volbench.fio.jobs.job_syntax import SectionText, Setting, split_sections
from volbench.model.profile.fio_options import OptionKind, OptionTable
from volbench.model.profile.option_policy import unknown_option

_OTHERS = "version help cmdhelp enghelp debug cpuclock-test crctest memcpytest inflate-log"
_TRIGGERS = "trigger trigger-file trigger-remote trigger-timeout"

# fio's own option to what volbench has instead
_REFUSED = {
    **dict.fromkeys(("client", "server", "remote-config"), "name the hosts: --on HOST:PATH"),
    **dict.fromkeys(_TRIGGERS.split(), "use --detach, and volbench status DIR in a script"),
    **dict.fromkeys((*_OTHERS.split(), "merge-blktrace-only"), "run fio itself, without volbench"),
    "daemonize": "volbench runs in the background with --detach",
    "aux-path": "fio's state is kept in the campaign folder: -o DIR",
    "idle-prof": "volbench records the CPU time of each run: usr_cpu and sys_cpu",
    "latency-log": "fio refuses it too; volbench records latencies itself",
    "parse-only": "volbench run --dry-run checks the command and shows the plan",
    "showcmd": "volbench profile render --as-commands prints commands",
}

# Words before fio as people paste them
_BEFORE = re.compile(r"[$#%]|sudo|time|env|exec|nohup|command|-[EnH]|[A-Za-z_][A-Za-z0-9_]*=.*")
# What replaces a program that starts fio
_WRAPPERS = {
    "taskset": "use --cpus_allowed",
    "numactl": "use --numa_cpu_nodes and --numa_mem_policy",
    "ionice": "use --prioclass and --prio",
    "nice": "use --nice",
    "timeout": "use --runtime",
    "ssh": "name the host: --on HOST:PATH",
    "kubectl": "volbench makes the pod: --k8s",
    **dict.fromkeys(("docker", "podman"), "run volbench in the container"),
}
# Comment, or begin of what a shell does with the output
_REST = re.compile(r"#.*|(\d?>|&>|\|(?!\|)).*", re.DOTALL)
_NEXT_LINE = re.compile(r"\n\s*(sudo\s+)?(\S*/)?fio\s")
_CONTINUED = re.compile(r"\\[ \t\r]*\n|\N{NO-BREAK SPACE}")
# Words that web pages and shells make of others, what they are, and what to do. Names such as
# $jobname are fio's, as is all of a program that it runs.
_PASTED = (
    (re.compile("(&&?|[|][|]|.*;)$"), "ends the command", "give one command at a time"),
    (re.compile("[\u2010-\u2015\u2212]"), "begins with a typographic dash", "write two hyphens"),
    (re.compile(".*[\u2018-\u201f]"), "has typographic quotes", "write plain quotes, or none"),
    (
        re.compile(r"(?!-*exec_)[^`$]*(`|\$(?!(jobname|jobnum|filenum|clientuid)\b)[({A-Za-z_])"),
        "has what only a shell replaces",
        "write the value, or leave out the quotes around the command",
    ),
)


@dataclass
class FioCommand:
    """What a command line of fio asks for."""

    sections: list[SectionText] = field(default_factory=list)  # of the command itself
    files: list[str] = field(default_factory=list)  # job files; ``-`` for standard input
    chosen: list[str] = field(default_factory=list)  # names of sections; empty for all
    is_in_turn: bool = False  # each section by itself, as one ``fio --section=NAME`` each
    is_readonly: bool = False  # sections that write are refused
    is_placed: bool = False  # its volumes are replaced by one
    output: str = ""  # file for fio's JSON
    left_out: list[str] = field(default_factory=list)  # options without effect in volbench

    @property
    def is_nameless(self) -> bool:
        """Whether it has no job of its own."""
        return all(section.is_global for section in self.sections)

    @property
    def name(self) -> str:
        """Name of its first job."""
        names = [section.name for section in self.sections if not section.is_global]
        return next(iter(names), "fio")


def is_command(text: str) -> bool:
    """Return whether a text is a command line of fio, and no file of that name exists."""
    is_named = any(PurePosixPath(word).name == "fio" for word in text.split())
    return is_named and not os.path.exists(text)  # noqa: PTH110 - a command may be too long for a path


def _words_of(text: str) -> list[str]:
    """Return the arguments of fio in a command, without words that people paste with it."""
    text = _CONTINUED.sub(" ", text)
    if _NEXT_LINE.search(text):
        raise InputError("there are several commands", hint="give one command at a time")
    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"the command cannot be split into words: {error}"
        raise InputError(message, hint="check its quotes") from error
    while words and PurePosixPath(words[0]).name != "fio":
        word = words.pop(0)
        if not _BEFORE.fullmatch(word):
            instead = _WRAPPERS.get(PurePosixPath(word).name, "write the command of fio alone")
            raise InputError(f"{word!r} before fio: volbench starts fio itself", hint=instead)
    number = next((n for n, word in enumerate(words) if _REST.fullmatch(word)), len(words))
    for word in words[1:number]:
        for pattern, meaning, hint in _PASTED:
            if pattern.match(word):
                raise InputError(f"{word!r} {meaning}", hint=hint)
    if number < 2:
        message = "a command of fio needs a job: --name=NAME with its options, or a job file"
        hint = "for example: volbench run -- fio --name=reads --rw=randread --bs=4k --size=1g"
        raise InputError(message, hint=hint)
    return words[1:number]


def parse_command(text: str, table: OptionTable) -> FioCommand:
    """Return what a command line asks for.

    Raises:
        InputError: fio would refuse it, or volbench has something else instead.
    """
    reader = _CommandReader(_words_of(text), table)
    for name, value in reader.options():
        reader.take(name, value)
    command, is_json = reader.command, "json" in reader.output_format
    if command.output and is_json:
        command.left_out = [each for each in command.left_out if "output-format" not in each]
    elif command.output:
        command.output = ""
        command.left_out.append("--output")
    return command


def as_command(job_file: str) -> str:
    """Return the command line of fio that does the same as a job file."""
    words = ["fio"]
    for section in split_sections(job_file, Problems(), []):
        words.append(f"--name={section.name}")
        words += [f"--{each.name}={each.value or 1}" for each in section.in_order()]
    return shlex.join(words)


class _CommandReader:
    """State of fio while it reads its command line."""

    def __init__(self, words: list[str], table: OptionTable) -> None:
        self.command = FioCommand()
        self.output_format = ""
        self._words = words
        self._table = table
        self._letters = {getopt[0]: name for name, getopt in table.own.items()}
        self._label = ""  # of the present option in messages
        self._section: SectionText | None = None
        self._engine = self._default_engine = "psync"

    def options(self) -> Iterator[tuple[str, str | None]]:
        """Yield name and value of each option, as getopt_long_only finds them."""
        while self._words:
            word = self._words.pop(0)
            if word == "--":
                self.command.files += self._words
                return
            if len(word) == 1 or not word.startswith("-"):
                self.command.files.append(word)
                continue
            text, equals, value = word.removeprefix("--" if word[1] == "-" else "-").partition("=")
            is_letter = word[1] in self._letters
            name = "" if len(word) == 2 and is_letter else self._long_name(word, text)
            if name:
                self._label = f"--{name}"
                yield name, self._value(name, value if equals else None)
            elif is_letter:
                yield from self._short_options(word[1:])
            elif option := self._table.find(text):
                message = f"fio knows {word} only after the ioengine that has it"
                raise InputError(message, hint=f"write --ioengine={option.engines[0]} before it")
            else:
                raise unknown_option(self._table, text, self._table.own)

    def _short_options(self, letters: str) -> Iterator[tuple[str, str | None]]:
        """Yield short options; the letters after an option with an argument are its argument."""
        while letters:
            name = self._letters.get(letters[0])
            if name is None:
                raise InputError(f"fio has no option -{letters[0]}", hint="see fio --help")
            has_argument = ":" in self._table.own[name]
            self._label = f"-{letters} (--{name} to fio)"
            yield name, self._value(name, letters[1:] or None if has_argument else None)
            letters = "" if has_argument else letters[1:]

    def _long_name(self, word: str, text: str) -> str:
        """Return the long option that a text names or begins; empty if there is none."""
        names = [name for name in self._known_names() if name.startswith(text)]
        if text in names or len(names) < 2:
            return text if text in names else "".join(names)
        shown = ", ".join(f"--{name}" for name in sorted(names)[:4])
        message = f"{word} is ambiguous in fio: it begins {len(names)} options ({shown}...)"
        raise InputError(message, hint="write the whole name")

    def _known_names(self) -> set[str]:
        """Return the names of all options that fio knows at this point of the command."""
        named = {
            name
            for option in self._table.options.values()
            if not option.engines or self._engine in option.engines
            for name in (option.name, *option.aliases)
        }
        return {*named, *self._table.own, *self._table.withdrawn}

    def _value(self, name: str, value: str | None) -> str | None:
        option, getopt = self._table.find(name), self._table.own.get(name, "")
        if name in _REFUSED or name in self._table.withdrawn:
            hint = _REFUSED.get(name, "it does nothing for a job of fio")
            raise InputError(f"--{name} cannot be used in volbench", hint=hint)
        if value is not None and getopt and ":" not in getopt:
            raise InputError(f"--{name} takes no value", hint=f"write --{name}")
        is_needed = option.kind is not OptionKind.FLAG if option else getopt[1:] == ":"
        if value is None and is_needed and self._words:
            value = self._words.pop(0)
        if is_needed and not value:
            raise InputError(f"--{name} has no value", hint=f"write --{name}=VALUE")
        return value

    def take(self, name: str, value: str | None) -> None:
        """Take an option: of fio itself, or of the present section."""
        match name:
            case "readonly":
                self.command.is_readonly = True
            case "section":
                self.command.chosen.append(value or "")
            case "output":
                self.command.output = value or ""
            case _ if name in self._table.own:
                self.command.left_out.append(self._label)
                if name == "output-format":
                    self.output_format = value or ""
            case "name":
                self._begin_job(value or "")
            case _:
                section = self._section or self._begin_section("global")
                section.settings.append(Setting(name, value, 0))
                if name == "ioengine":
                    self._engine = value or ""
                    self._default_engine = (
                        self._engine if section.is_global else self._default_engine
                    )

    def _begin_job(self, name: str) -> None:
        """Begin a job; fio gives the options of one that is not chosen to all later jobs."""
        self._section = None
        if name.startswith("global"):
            self._begin_section("global")
        elif not self.command.chosen or name in self.command.chosen:
            self._begin_section(name)

    def _begin_section(self, name: str) -> SectionText:
        self._section = SectionText(name, 0, is_typed=True)
        self.command.sections.append(self._section)
        self._engine = self._default_engine
        return self._section
