"""volbench lab: simulated volumes with known behaviour, for trials and tests."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from volbench.cli.options import (
    AS_YAML,
    Quantity,
    bundled,
    completed_by,
    examples,
    flag,
    output_option,
    schema_option,
)
from volbench.cli.output import TableOutput, table_options
from volbench.cli.verb_groups import VerbGroup
from volbench.errors import VolbenchError, quoted
from volbench.units import parse_size

if TYPE_CHECKING:
    from volbench.extensions.lab.server import LabVolume

_SCENARIO = click.argument(
    "scenario",
    metavar="SCENARIO",
    shell_complete=completed_by(bundled("extensions/lab/scenarios"), or_file=True),
)
_LOOK_S = 0.2
_QUICK_BYTES = 64 * 1024**2  # Size of the bundled profile quick


def scenario_schema() -> object:
    """Return the JSON Schema of scenarios."""
    from volbench.extensions.lab.scenario import Scenario
    from volbench.model.document.document_model import document_schema

    return document_schema(Scenario, title="volbench lab scenario")


@click.group("lab", cls=VerbGroup)
@schema_option("a scenario", "volbench.extensions.lab.lab_verbs:scenario_schema")
def lab() -> None:
    """Simulate volumes with known behaviour: cold, throttled, with credits, caches, stalls."""


@lab.command("list", epilog=examples("volbench lab list"))
@table_options()
def list_scenarios(*, table_output: TableOutput) -> None:
    """List the bundled scenarios."""
    from volbench.extensions.lab.scenario import read_scenario, scenario_names
    from volbench.extensions.lab.scenario_tables import scenarios_table

    table_output.write(scenarios_table([read_scenario(name) for name in scenario_names()]))


@lab.command(
    "show",
    epilog=examples("volbench lab show p15", "volbench lab show p15 --yaml > my-volume.yaml"),
)
@_SCENARIO
@AS_YAML
@table_options()
def show(scenario: str, *, as_yaml: bool, table_output: TableOutput) -> None:
    """Show the expected results of SCENARIO.

    SCENARIO is a bundled name or a YAML file.
    """
    from volbench.extensions.lab.scenario import read_scenario, scenario_text
    from volbench.extensions.lab.scenario_tables import truth_table

    if as_yaml:
        click.echo(scenario_text(scenario)[0], nl=False)
        return
    table_output.write(truth_table(read_scenario(scenario)))


@lab.command(
    "up", epilog=examples("volbench lab up p15", "volbench lab up my-volume.yaml --device")
)
@_SCENARIO
@flag("--device", "Also create a block device; needs root.")
@output_option(
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for socket and logs; it is kept. Default: a temporary folder.",
)
@click.option(
    "--size",
    "size_bytes",
    type=Quantity("SIZE", parse_size),
    help="Size of the volume, such as 256m. Default: that of the scenario.",
)
def up(scenario: str, output: Path | None, size_bytes: int | None, *, device: bool) -> None:
    """Serve SCENARIO as a volume until you press Ctrl-C.

    Every start resets the volume. Standard output has the NBD URI, and the device if there is one.
    """
    from volbench.engine.run.stop_request import stop_on_signals
    from volbench.extensions.lab.scenario import read_scenario
    from volbench.extensions.lab.server import check_tools, serve

    check_tools(device=device)
    served = read_scenario(scenario)
    served = served if size_bytes is None else served.resized(size_bytes)
    temporary = TemporaryDirectory(prefix="volbench-lab-") if output is None else None
    with stop_on_signals() as stop, temporary or nullcontext(output) as folder:
        with serve(served, Path(str(folder)), device=device) as volume:
            _announce(volume, scenario)
            while not stop.requested:
                if volume.ended(within_s=_LOOK_S):
                    raise VolbenchError(
                        f"nbdkit exited: {volume.last_words() or 'no output'}",
                        hint="serve the scenario again; this resets its volume",
                    )
        click.echo("volume removed", err=True)


def _announce(volume: LabVolume, named: str) -> None:
    """Print the address of the volume, and commands to try on it."""
    click.echo(volume.uri + (f"\n{volume.device}" if volume.device else ""))
    sys.stdout.flush()
    scenario, address = volume.scenario, quoted(volume.device or volume.uri)
    target = f"--on {address} --allow-destroy {address}"
    size = f"--set size={min(scenario.size_bytes, _QUICK_BYTES)}"
    curve = (
        f"--set size={scenario.size_bytes} --set first-pass.runtime=90s"
        " --set first-pass.until.window=10s --set first-pass.until.block=1s"
        " --set second-pass.runtime=10s"
    )
    curve += " --set rw=randread" if scenario.restored and scenario.first_read_s > 0 else ""
    lines = [
        f"{scenario.name}: {scenario.description}",
        "Try one in another terminal; it holds no data of yours. A restart makes it cold again:",
        f"  volbench run quick {target} {size}",
        f"  volbench run warmup-curve {target} {curve}",
        f"Expected results: volbench lab show {quoted(named)}",
        "Press Ctrl-C to stop.",
    ]
    click.echo("\n".join(lines), err=True)
