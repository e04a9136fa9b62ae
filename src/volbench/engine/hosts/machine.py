"""A machine that Runs go to: how it is reached, and what was found on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from volbench.engine.sampling.clock_offset import Clock
from volbench.execute.protocol import Executor


@dataclass(frozen=True)
class Machine:
    """A machine that is ready to run.

    Attributes:
        executor: reaches it.
        fio: path of the binary there; empty when no Run needs it.
        clock: how its clock stands against the controller's.
    """

    executor: Executor
    fio: str = ""
    clock: Clock = field(default_factory=Clock)

    @property
    def name(self) -> str:
        """Its name in the plan."""
        return self.host

    @property
    def host(self) -> str:
        """Its name in the plan."""
        return self.executor.host
