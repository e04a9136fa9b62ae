"""Command line of scripts/torture."""

import argparse
import os
import secrets
import signal
import sys
import tempfile

from tests.torture.kinds import FLEET_KINDS, KINDS, NEIGHBOUR_KINDS
from tests.torture.runner import case_folder, chance_of, table, torture


def main() -> int:
    """Torture volbench, print figures, and return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="scripts/torture", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=3, help="for all kinds (3)")
    parser.add_argument("--seed", default="", help="any text; random by default")
    every = (*KINDS, *NEIGHBOUR_KINDS, *FLEET_KINDS)
    names = [kind.name for kind in every]
    parser.add_argument("--only", choices=names, action="append", help="may be repeated")
    parser.add_argument("--fleet", action="store_true", help="campaigns on fleets instead")
    parser.add_argument("--neighbours", action="store_true", help="beside another user instead")
    parser.add_argument("--long", action="store_true", help="go on to the least number of cases")
    parser.add_argument("--case", type=int, help="try this case only, with --only and --seed")
    given = parser.parse_args()
    usual = FLEET_KINDS if given.fleet else NEIGHBOUR_KINDS if given.neighbours else KINDS
    chosen = given.only or [kind.name for kind in usual]
    kinds = [kind for kind in every if kind.name in chosen]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends with the figures so far
    seed = given.seed or secrets.token_hex(4)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        if given.case is not None:
            for kind in kinds:
                with case_folder() as folder:
                    kind.case(chance_of(seed, kind, given.case), folder)
            return 0
        tallies = torture(kinds, seed=seed, seconds=60 * given.minutes, long=given.long)
    print(f"seed {seed}\n{table(tallies)}")  # noqa: T201 - the figures are what is asked for
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
