"""Every parser of what comes from users, hosts and fio, with damaged input: words, no traceback."""

import io
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

from tests.execute.fake import FakeExecutor, ScriptedSnapshot
from tests.torture.damaged_texts import damaged_texts
from tests.torture.stored_files import finished_campaign
from volbench.errors import VolbenchError
from volbench.execute.agent.mounts import read_swaps
from volbench.execute.agent.partition_tables import read_table
from volbench.execute.agent.volumes import describe_volumes
from volbench.extensions.catalogue.price_list import parse_prices
from volbench.extensions.catalogue.volume_types import parse_types
from volbench.extensions.lab.scenario import load_scenario
from volbench.fio.jobs.job_file import parse_jobfile
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.logs.log_rows import Log, Recording
from volbench.fio.logs.section_logs import read_series
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import ProgressReader
from volbench.ingest.run_files import read_facts, read_status
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.plan.profile.load_profile import dump_profile, load_profile
from volbench.store.archive import read_campaign
from volbench.store.journal import read_history
from volbench.store.layout import Layout, RunFolder

_ROOT = Path(__file__).parents[2]
_TABLE = shipped_table()
_LARGEST = 100_000
_MOST_CPU_S = 20.0
"""Of one input; what never ends or grows takes longer."""


@dataclass(frozen=True)
class Parser:
    """A parser and what it reads."""

    name: str  # for messages
    # patterns of valid files, from the root of the repository or of a campaign
    files: tuple[str, ...]
    parse: Callable[[bytes], object]  # returns, or raises VolbenchError
    examples: int = 60  # for each case
    is_stored: bool = False  # whether the files are those of a campaign

    @cache  # noqa: B019 - the parsers live as long as the program
    def corpus(self) -> tuple[bytes, ...]:
        """Return the valid files, the large ones cut."""
        root = finished_campaign() if self.is_stored else _ROOT
        paths = sorted(path for pattern in self.files for path in root.glob(pattern))
        assert paths, self.files
        return tuple(path.read_bytes()[:_LARGEST] for path in paths)


def parser_case(chance: random.Random, folder: Path) -> int:
    """Give damaged input to one parser."""
    del folder
    return try_parser(chance.choice(PARSERS), chance.getrandbits(64))


def try_parser(parser: Parser, number: int) -> int:
    """Give damaged input to a parser, with a seed; hypothesis shrinks what fails."""
    count = 0

    @seed(number)
    @settings(
        max_examples=parser.examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged_texts(parser.corpus()))
    def check(content: bytes) -> None:
        nonlocal count
        count += 1
        begun_s = time.process_time()
        with suppress(VolbenchError):
            parser.parse(content)
        assert time.process_time() - begun_s < _MOST_CPU_S

    check()
    return count


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _profile(content: bytes) -> None:
    profile = load_profile(_text(content), path="p.yaml", table=_TABLE)
    again = load_profile(dump_profile(profile), path="p.yaml", table=_TABLE)
    assert again == profile


def _job_file(content: bytes) -> None:
    imported = parse_jobfile(_text(content), path="j.fio", table=_TABLE)
    load_profile(dump_profile(imported.profile), path="p.yaml", table=_TABLE)


def _log(kind: str) -> Callable[[bytes], object]:
    def parse(content: bytes) -> object:
        @contextmanager
        def opened() -> Iterator[io.BytesIO]:
            yield io.BytesIO(content)

        recording = Recording(interval_s=1.0, fio_version=(3, 33), runtime_s=5.0)
        return read_series([Log(kind, 1, f"x_{kind}.1.log", opened)], recording)

    return parse


def _in_file(name: str, parse: Callable[[Path], object]) -> Callable[[bytes], object]:

    def parse_content(content: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return parse(path)

    return parse_content


def _kernel_tables(content: bytes) -> object:
    machine = FakeExecutor(
        files={"/proc/self/mountinfo": _text(content), "/proc/swaps": _text(content)}
    )
    return machine.ask(describe_volumes, []), read_swaps(ScriptedSnapshot(machine))


def _partitions(content: bytes) -> object:
    return read_table(lambda at, length: content[at : at + length], len(content))


def _progress(content: bytes) -> object:
    return ProgressReader(total_s=2.0).feed(_text(content), elapsed_s=1.0)


PARSERS = (
    Parser("profile", ("profiles/*.yaml", "tests/profiles/*/*.yaml"), _profile),
    Parser("job file", ("tests/fio/jobs/jobfiles/*.fio", "tests/cases/*/*/job.fio"), _job_file),
    Parser(
        "fio JSON",
        ("tests/cases/fio-3*/*/stdout", "tests/cases/client-server/*/stdout"),
        lambda content: parse_output(_text(content), path="fio.json"),
    ),
    Parser("bw log", ("tests/cases/fio-*/logs-*/*_bw*.log",), _log("bw")),
    Parser("iops log", ("tests/cases/fio-*/logs-*/*_iops*.log",), _log("iops")),
    Parser("lat log", ("tests/cases/fio-*/logs-*/*_lat*.log",), _log("lat")),
    Parser("histogram log", ("tests/cases/fio-*/logs-*/*_clat_hist*.log",), _log("clat_hist")),
    Parser(
        "inventory",
        ("tests/inventories/*/*.yaml", "tests/plan/inventory/files/*"),
        _in_file("hosts.yaml", load_inventory),
        examples=20,
    ),
    Parser("prices", ("prices/*.yaml",), lambda text: parse_prices(_text(text), path="p.yaml")),
    Parser("types", ("volume-types/*.yaml",), lambda text: parse_types(_text(text), path="t.yaml")),
    Parser(
        "scenario",
        ("src/volbench/extensions/lab/scenarios/*.yaml",),
        lambda text: load_scenario(_text(text), path="s.yaml"),
    ),
    Parser("journal", ("journal.jsonl",), _in_file("journal.jsonl", read_history), is_stored=True),
    Parser(
        "campaign",
        ("campaign.json",),
        _in_file("campaign.json", lambda path: read_campaign(path.parent)),
        is_stored=True,
    ),
    Parser(
        "facts",
        ("runs/*/facts.json",),
        _in_file("runs/r/facts.json", lambda path: read_facts(_run_folder(path))),
        is_stored=True,
    ),
    Parser(
        "status",
        ("runs/*/status.json",),
        _in_file("runs/r/status.json", lambda path: read_status(_run_folder(path))),
        is_stored=True,
    ),
    Parser("progress", ("tests/cases/fio-3*/status-interval/std*",), _progress),
    Parser("kernel tables", ("tests/torture/mountinfo",), _kernel_tables),
    Parser("partition table", ("tests/torture/mountinfo",), _partitions),
)


def _run_folder(path: Path) -> RunFolder:
    return Layout(path.parents[2]).run("r")
