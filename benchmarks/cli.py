"""CPU time of commands on a campaign of eight runs, beside `import click` and `import pandas`.

Commands and imports take turns, so that a busy machine slows both; medians are compared. The limits
are those of the design: help, list and completion at most 2x click; show, check, export and a dry
run at most 1.5x pandas; charts and reports in seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

VOLBENCH = [sys.executable, "-m", "volbench"]
COMPLETE = {
    "_VOLBENCH_COMPLETE": "bash_complete",
    "COMP_WORDS": "volbench show --",
    "COMP_CWORD": "2",
}
CLICK, PANDAS = 'python -c "import click"', 'python -c "import pandas"'


@dataclass(frozen=True)
class Measured:
    """A command and what it may take.

    Attributes:
        command: its arguments.
        most: CPU seconds, or a multiple of `beside`.
        beside: name of the measurement that it is compared with; "" for seconds.
        environment: variables beside those of this process.
    """

    command: Sequence[str]
    most: float = 0.0
    beside: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def measurements(folder: Path, campaign: Path) -> dict[str, Measured]:
    """Return every measurement by name."""
    on_campaign = {"show": "show", "check": "check", "export": "export"}
    page, drawn = str(folder / "page.html"), str(folder / "drawn")
    main = "from volbench.cli.main import main; main(prog_name='volbench')"
    return {
        CLICK: Measured([sys.executable, "-c", "import click"]),
        PANDAS: Measured([sys.executable, "-c", "import pandas"]),
        "--help": Measured([*VOLBENCH, "--help"], 2, CLICK),
        "profile list": Measured([*VOLBENCH, "profile", "list"], 2, CLICK),
        "completion": Measured(
            [sys.executable, "-c", main], 2, CLICK, environment=tuple(COMPLETE.items())
        ),
        "run --dry-run": Measured(
            [*VOLBENCH, "run", "quick", "--dry-run", "--on", str(folder)], 1.5, PANDAS
        ),
        **{
            name: Measured([*VOLBENCH, verb, str(campaign)], 1.5, PANDAS)
            for name, verb in on_campaign.items()
        },
        "plot iops": Measured([*VOLBENCH, "plot", "iops", str(campaign), "-o", drawn], 2),
        "plot all": Measured([*VOLBENCH, "plot", "all", str(campaign), "-o", drawn], 8),
        "report": Measured([*VOLBENCH, "report", str(campaign), "-o", page], 5),
    }
