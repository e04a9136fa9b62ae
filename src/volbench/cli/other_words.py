"""Words that people type for verbs, options and campaigns, and the commands that they mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from volbench.errors import did_you_mean, nearest, quoted

# Command to the words for it that are not verbs
_VERBS = {
    "volbench compare DIR DIR": ("diff",),
    "volbench hosts": ("doctor", "info", "ping", "probe", "ssh"),
    "volbench hosts --on TARGET --cold": ("cold",),
    "volbench plot all DIR": ("chart", "charts", "draw", "graph", "graphs"),
    "volbench profile check FILE": ("lint", "validate"),
    "volbench profile show quick --yaml > mine.yaml": ("init", "new"),
    "volbench report DIR": ("html", "page", "summary"),
    "volbench run -- fio --name=NAME ...": ("fio",),
    "volbench run quick --on TARGET": ("bench", "benchmark", "speed", "start", "test"),
    "volbench status": ("list", "ls", "results"),
    "volbench status DIR --clean": ("cancel", "clean", "cleanup", "kill", "stop"),
    "volbench status DIR --clean; rm -r DIR": ("delete", "rm"),
    "volbench status DIR --follow": ("attach", "logs", "tail"),
    "volbench warmup --on TARGET": ("fill", "precondition", "prefill"),
    "volbench watch": ("iostat", "monitor", "top"),
}
# Option to the words for it, with the value where they stand for one
_OPTIONS = {
    "--format csv": ("--csv",),
    "volbench export DIR --format xlsx -o FILE": ("--excel", "--xlsx"),
    "--inventory": ("--hosts", "-i"),
    "--iodepth": ("--depth", "--qd", "--queue-depth"),
    "--numjobs": ("--jobs", "--thread", "--threads"),
    "--on": ("--device", "--dir", "--disk", "--path", "--target", "--volume", "-d"),
    "--repeat": ("--repeats", "--runs", "-n"),
    "--runtime 10s": ("--duration", "--time", "-t"),
    "--rw PATTERN": ("--mode", "--pattern", "--randread", "--randwrite", "--read", "--write"),
    "volbench run FILE --on TARGET": ("--config", "--file", "-c", "-f"),
    "volbench report DIR --open": ("--browser", "--open"),
    "--set repeat.until=5%": ("--until", "--within"),
}
# Similarity from which an option is taken for a misspelt one: --detach is not --iodepth.
# Noticed by: tests/cli/test_failures.py::test_every_mistake_on_the_command_line_has_a_hint
_ALIKE = 0.8


def verb_hint(name: str, verbs: Collection[str], profiles: Collection[str], otherwise: str) -> str:
    """Return the hint for a word that is not a verb: a synonym, a target, a file or a profile."""
    command = next((known for known, words in _VERBS.items() if name in words), "")
    if name.endswith((".fio", ".yaml", ".yml")) or name in profiles:
        command = f"volbench run {quoted(name)} --on TARGET"
    elif any(any(Path(name).glob(plan)) for plan in ("campaign.json", "*/campaign.json")):
        command = f"volbench show {quoted(name)}"
    elif name.startswith(("/", "./")) or Path(name).exists():
        command = f"volbench measure --on {quoted(name)}"
    return f"did you mean `{command}`?" if command else did_you_mean(name, verbs, otherwise)


def option_hint(name: str, known: Collection[str], otherwise: str) -> str:
    """Return the hint for an unknown option: a synonym, or else a name that is nearly the same."""
    if (ending := name.removeprefix("--")) in {"html", "pdf", "png", "svg"}:
        place = "--chart" if "--chart" in known else "--output" if "--theme" in known else ""
        place = place or f"volbench {'report' if ending == 'html' else 'plot'} DIR --output"
        return f"did you mean `{place} chart.{ending}`?"
    for option, words in _OPTIONS.items():
        if name in words and option.partition(" ")[0] in {"volbench", *known}:
            return f"did you mean `{option}`?"
    near = nearest(name, known, alike=_ALIKE)
    return f"did you mean `{near}`?" if near else otherwise


def target_hint(command: str, arguments: Sequence[str]) -> str:
    """Return the command with its target as an option, if a path stands among its arguments."""
    path = next((w for w in arguments if w[:1] in "/." or ":/" in w or Path(w).exists()), "")
    return f"did you mean `{command} --on {quoted(path)}`?" if path else ""
