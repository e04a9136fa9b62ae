"""Options that select hosts, and the verb hosts."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import refuse_untyped_consent, unless_targets_are_given
from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    PATH,
    Decorator,
    Quantity,
    examples,
    flag,
    headed,
    on_option,
    option_group,
    parse_targets,
    schema_option,
)
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.cli.verb_groups import repeat_known_hosts
from volbench.errors import CampaignError, InputError, RefusedError, VolbenchError
from volbench.units import counted_noun, folded_names

if TYPE_CHECKING:
    from volbench.api.campaign_drive import StartPolicy
    from volbench.engine.campaign.host_survey import HostSurvey
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.connect import HostKeyPolicy
    from volbench.execute.protocol import Executor
    from volbench.ingest.run_files import Probed
    from volbench.model.campaign.host import Host, Inventory
    from volbench.model.campaign.planned_run import Volume
    from volbench.model.results.provenance import VolumeFacts


INVENTORY = click.option(
    "--inventory",
    type=PATH,
    metavar="FILE",
    callback=unless_targets_are_given,
    help="List of hosts: volbench's YAML or JSON, or what ansible-inventory --list prints.",
)

LIMIT = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="GROUP|HOST",
    help="Only these hosts: a group, a host, a range, or a pattern such as vm*.",
)


def _parse_policy(text: str) -> StartPolicy | None:
    from volbench.api.campaign_drive import parse_policy

    return parse_policy(text) if text else None


def _policy_option(default: str, text: str) -> Decorator:
    kind = Quantity("POLICY", _parse_policy)
    form = "all|quorum:N|best-effort[,TIME]"
    option = click.option(
        "--policy", type=kind, default=default, show_default=bool(default), metavar=form, help=text
    )
    return headed("Hosts", option)


# Of a new campaign
POLICY = _policy_option(
    "all",
    "How many clients must be ready for a step to start, and how long they wait for a client whose "
    "host has stopped answering (default: 2m).",
)
OWN_POLICY = _policy_option(
    "",
    "How many clients must be reachable to continue, and how long they wait for silent ones. "
    "Default: the policy of the campaign, and 2m.",
)


def _limit_parallel(context: click.Context, _option: click.Parameter, count: int | None) -> None:
    from volbench.execute.scheduler import parallel_limit

    if count is not None:
        context.with_resource(parallel_limit(count))


_FORKS = click.option(
    "--forks",
    type=click.IntRange(1, 1000),
    metavar="N",
    expose_value=False,
    callback=_limit_parallel,
    help="Connect to, survey, prepare and clean up at most N hosts at once; fio still starts on "
    "all hosts together. Default: 64.",
)


def _host_keys(known_hosts: Path | None, accept_new: bool) -> HostKeyPolicy:  # noqa: FBT001 - click passes options by name
    from volbench.execute.connect import HostKeyPolicy

    repeat_known_hosts(known_hosts)
    return HostKeyPolicy(known_hosts, accept_new)


# Options for trusted host keys, as the keyword `host_keys`
HOST_KEYS = option_group(
    "host_keys",
    _host_keys,
    _FORKS,
    click.option(
        "--known-hosts",
        type=PATH,
        metavar="FILE",
        help="volbench's own file of host keys, in addition to ~/.ssh/known_hosts.",
    ),
    flag(
        "--accept-new-host-keys",
        "Add the keys of unknown hosts to that file. A changed key is still refused.",
        "accept_new",
    ),
    heading="Hosts",
)


@dataclass(frozen=True)
class HostSelection:
    """Hosts selected on the command line."""

    host_keys: HostKeyPolicy
    inventory: Path | None = None  # inventory file; None for this machine only
    limits: tuple[str, ...] = ()  # selected groups and hosts of the inventory
    named: str = ""  # content of an inventory of hosts that targets name; empty for none
    takes_turns: bool = False  # whether hosts run one after the other

    @property
    def is_fleet(self) -> bool:
        """Whether hosts are selected instead of this machine."""
        return bool(self.inventory or self.named)

    @contextmanager
    def connected(self) -> Iterator[list[ConnectedHost]]:
        """Yield the selected hosts with open connections, closed at the end of the block."""
        if not self.is_fleet and self.limits:
            raise InputError("--limit needs an inventory", hint="add --inventory FILE")
        listed = self.listed().hosts if self.is_fleet else ()
        turns = enumerate(listed, start=1) if self.takes_turns and len(listed) > 1 else ()
        in_turn = [host.model_copy(update={"turn": turn}) for turn, host in turns]
        with connect(in_turn or listed, self.host_keys) as hosts:
            yield hosts

    def listed(self) -> Inventory:
        """Return the selected hosts, without connecting to them; notes go to stderr."""
        from volbench.plan.inventory.host_names import select
        from volbench.plan.inventory.load_inventory import load_inventory

        inventory = load_inventory(
            self.inventory or "--on",
            self.named,
            on_note=lambda note: click.echo(f"note: {note}", err=True),
        )
        selected = select(inventory, self.limits)
        refuse_untyped_consent(self.inventory, selected.hosts)
        return selected

    def on(
        self, targets: Sequence[str], placement: object = None
    ) -> tuple[HostSelection, list[str]]:
        """Return the hosts with those that targets name, and the targets that all hosts have."""
        from volbench.plan.inventory.named_hosts import named_hosts

        for text in targets:
            _refuse_typo(text)
        named, shared = named_hosts(targets)
        if named and (self.inventory or placement is not None):
            message = "a target names a host, but the hosts are those of --inventory or --k8s"
            raise InputError(message, hint="leave out the host: --on /data")
        return replace(self, named=named), shared


def _refuse_typo(text: str) -> None:
    from volbench.plan.inventory.named_hosts import named_volume

    path, is_named = text.rpartition("=")[2], bool(named_volume(text))
    first, _, rest = path.partition("/")
    hint = f"write ./{path} for the file"
    if not (is_named or Path(first).exists()):
        from volbench.execute.ssh.ssh_config import SshConfig

        if "@" not in first and first not in SshConfig().names:
            return
        hint = f"write {first}:/{rest} for the host, ./{path} for a new file"
    elif not (is_named and Path(path).exists()):
        return
    raise InputError(f"{path} may be a host or a file", hint=hint)


# Options that select hosts, as the keyword `where`
on_hosts = option_group("where", HostSelection, INVENTORY, LIMIT, HOST_KEYS, heading="Hosts")
# The same, for verbs whose hosts are named in targets only
on_named_hosts = option_group("where", HostSelection, HOST_KEYS, heading="Hosts")


@contextmanager
def connect(hosts: Sequence[Host], host_keys: HostKeyPolicy) -> Iterator[list[ConnectedHost]]:
    """Yield connected hosts; this machine if none are given."""
    from volbench.engine.hosts.connected_host import ConnectedHost, this_machine
    from volbench.execute.connect import connect_hosts

    if not hosts:
        yield [this_machine()]
        return
    with connect_hosts(hosts, host_keys=host_keys) as executors:
        yield [ConnectedHost(*pair) for pair in zip(hosts, executors, strict=True)]


@click.command(
    "hosts",
    cls=VerbCommand,
    epilog=examples(
        "volbench hosts",
        "volbench hosts --on /dev/sdb --cold",
        "volbench hosts --on root@vm1:/dev/sdb --on 'vm[2-9]:/data' --save fleet.yaml",
        "volbench hosts --inventory fleet.yaml",
        "volbench hosts --inventory fleet.yaml --list",
        "volbench hosts --inventory fleet.yaml --clean",
    ),
)
@on_option("Volume to describe, of other hosts as for scp.")
@flag("--cold", "Read a sample of each volume twice: is it cold, or was it never written?")
@flag("--list", "Check the inventory and list its hosts; no connection is made.", "is_list")
@flag("--clean", "End and remove what campaigns left on the hosts, once you have confirmed it.")
@flag("--yes", "Skip the confirmation of --clean.")
@click.option("--save", metavar="FILE", help="Write the hosts of --on as an inventory.")
@schema_option("an inventory", "volbench.plan.inventory.host_document:json_schema")
@table_options()
@on_hosts
def hosts(
    targets: tuple[str, ...],
    *,
    cold: bool,
    is_list: bool,
    clean: bool,
    yes: bool,
    save: str | None,
    table_output: TableOutput,
    where: HostSelection,
) -> None:
    """Show this machine, or volumes: model, size, scheduler, filesystem, contents.

    Facts that are unknown are shown with --wide. With an inventory, or hosts in --on such as
    vm[1-3]:/data, these and their volumes instead: reachability, version of fio, clock offset,
    contents of the disks. Each host rehearses a run without I/O; no volume is written to.
    """
    where, own = where.on(targets)
    if save is not None:
        if not where.named:
            raise InputError("--save writes hosts: name some", hint="such as --on vm1:/data")
        with binary_output(save, default_name="fleet.yaml") as sink:
            sink.write(where.named.encode())
    if where.is_fleet:
        if (targets and where.inventory) or cold:
            raise InputError(
                "--inventory surveys the volumes of its hosts, without --on and --cold",
                hint="name volumes in the inventory; run volbench hosts --cold on the host itself",
            )
        if clean:
            _clean(where, yes=yes)
        elif is_list:
            from volbench.present.tables.hosts_tables import hosts_table

            table_output.write(hosts_table(where.listed()))
        else:
            _show_survey(where, table_output)
        return
    if is_list or clean:
        option = "--list shows" if is_list else "--clean cleans"
        raise InputError(f"{option} the hosts of an inventory", hint="add --inventory FILE")
    if cold and not targets:
        raise InputError("--cold probes volumes, but none is named", hint="add --on TARGET")
    _show_machine(own, table_output, with_cold=cold)


def _clean(where: HostSelection, *, yes: bool) -> None:
    """End and remove what campaigns left on hosts in reach; their folders here may be lost."""
    from volbench.engine.campaign.cleanup import left_on, remove_left
    from volbench.engine.hosts.connected_host import raise_all
    from volbench.execute.scheduler import on_each

    with where.connected() as hosts:
        found = on_each(hosts, left_on)
        left = [each for own in found if not isinstance(own, VolbenchError) for each in own]
        for each in left:
            click.echo(f"{each.host.name}: {each.words}")
        if attended := [each for each in left if each.is_attended]:
            names = folded_names([each.host.name for each in attended])
            raise RefusedError(
                f"a controller runs {posixpath.basename(attended[0].work)} on {names} now: "
                "nothing was removed",
                hint=f"end it where it runs (Ctrl-C); who that is: fuser -v {attended[0].work} on "
                f"{attended[0].host.name}; other hosts: --limit",
            )
        if left and not yes and not (sys.stdin.isatty() and click.confirm("Remove this?")):
            raise RefusedError("nothing was removed", hint="to confirm, add --yes")
        removed = on_each(left, remove_left)
        for path in (path for paths in removed if isinstance(paths, list) for path in paths):
            click.echo(f"note: {path} stays: something else is in it", err=True)
        raise_all([*hosts, *(each.host for each in left)], [*found, *removed])
    click.echo("no campaign is on the hosts", err=True)


def _show_machine(targets: Sequence[str], table_output: TableOutput, *, with_cold: bool) -> None:
    """Show this machine, or targets; with --cold, people get one line for each target."""
    from volbench.engine.hosts.host_facts import probe_host
    from volbench.execute.local import LocalExecutor
    from volbench.model.profile.fio_defects import known_defects
    from volbench.present.tables.hosts_tables import facts_table

    executor = LocalExecutor()
    host = probe_host(executor)
    looks = list(_looks(executor, targets, with_cold=with_cold))
    volumes = [facts.model_dump(mode="json") for facts, _ in looks]
    for record, (_, probed) in zip(volumes, looks, strict=True):
        if probed is not None:
            record |= {"cold": probed.model_dump(mode="json")["cold"], "cold_reason": probed.reason}
    document = {"host": host.model_dump(mode="json"), "volumes": volumes}
    machine = host.model_dump() | {"fio_defects": known_defects(host.fio_version)}
    shown = {facts.target: facts.model_dump() for facts, _ in looks} or {"this machine": machine}
    first, *more = (facts_table(*each, is_whole=table_output.is_wide) for each in shown.items())
    answers = "".join(f"{facts.target}: {probed.words}\n" for facts, probed in looks if probed)
    text = (lambda *_: answers) if with_cold else None
    table_output.write(replace(first, document=document), *more, text=text)


def _looks(
    executor: Executor, targets: Sequence[str], *, with_cold: bool
) -> Iterator[tuple[VolumeFacts, Probed | None]]:
    from volbench.engine.guard.volume_targets import find_volume, probe_volume

    for text in targets:
        for role, target in parse_targets([text]).items():
            volume = find_volume(executor, role=role, target=target)
            # The probe first: looking for a signature reads blocks, which are warm then.
            probed = _probe(executor, volume) if with_cold else None
            yield probe_volume(executor, volume), probed


def _probe(executor: Executor, volume: Volume) -> Probed:
    from volbench.engine.conditioning.cold_probe import probe_cold
    from volbench.engine.hosts.host_facts import require_fio
    from volbench.engine.run.stop_request import StopRequest
    from volbench.execute.local import probe_folder
    from volbench.store.layout import ProbeFolder

    with probe_folder() as folder:
        return probe_cold(
            executor, volume, ProbeFolder(folder), fio=require_fio(executor), stop=StopRequest()
        )


def _show_survey(where: HostSelection, table_output: TableOutput) -> None:
    """Survey every host, print one table, and fail if a host cannot take part."""
    from volbench.engine.campaign.host_survey import shared_machines, shared_volumes, survey
    from volbench.engine.hosts.connected_host import by_cause
    from volbench.model.profile.fio_defects import known_defects
    from volbench.present.tables.hosts_tables import survey_row, survey_table

    with where.connected() as hosts:
        surveys = survey(hosts)
    is_folded = table_output.is_for_people
    rows = [_row(each) for each in surveys if each.host or not is_folded]
    silent = [(each.name, each.problem) for each in surveys if not each.host and is_folded]
    rows += [survey_row(names, reason) for names, reason, _ in by_cause(silent)]
    table_output.write(survey_table(rows, [*map(_survey_record, surveys)]))
    if table_output.is_for_people:
        for names in shared_machines(surveys):
            click.echo(f"note: {', '.join(names)} are the same machine", err=True)
        for names in shared_volumes(surveys):
            click.echo(f"note: {', '.join(names)} are the same volume", err=True)
        for version in sorted({each.host.fio_version for each in surveys if each.host}):
            if words := known_defects(version):
                click.echo(f"note: known defects of {version}: {words}", err=True)
    bad = [survey for survey in surveys if survey.problem or survey.volume_problems]
    if bad:
        hints = {survey.hint for survey in bad if survey.hint}
        troubles = [(s.name, s.problem or next(iter(s.volume_problems.values()))) for s in bad]
        raise CampaignError(
            f"{len(bad)} of {counted_noun(len(surveys), 'host')} cannot take part: "
            f"{', '.join(names for names, _, _ in by_cause(troubles))}",
            hint=hints.pop() if len(hints) == 1 else "see the table",
        )


def _survey_record(survey: HostSurvey) -> dict[str, object]:
    return {
        "name": survey.name,
        "problem": survey.problem,
        "host": None if survey.host is None else survey.host.model_dump(mode="json"),
        "clock": None if survey.clock is None else asdict(survey.clock),
        "volumes": {role: facts.model_dump(mode="json") for role, facts in survey.volumes.items()},
        "volume_problems": survey.volume_problems,
    }


def _row(survey: HostSurvey) -> dict[str, str]:
    from volbench.present.tables.hosts_tables import clock_words, survey_row

    problems = [survey.problem] if survey.problem else []
    problems += [f"{role}: {problem}" for role, problem in survey.volume_problems.items()]
    clock = "unknown" if (c := survey.clock) is None else clock_words(c.offset_s, c.bound_s)
    return survey_row(survey.name, "; ".join(problems), survey.host, clock, survey.volumes)
