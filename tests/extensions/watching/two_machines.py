"""Hosts of a loopback fleet as if each were a machine of its own."""

import pytest

from volbench.engine.hosts.connected_host import Clock
from volbench.engine.hosts.host_facts import survey_machine
from volbench.execute.agent.facts import Survey
from volbench.execute.protocol import Executor
from volbench.extensions.watching import watch_plan


def tell_hosts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each host a boot ID of its own, by which a watch knows its machine."""

    def survey(executor: Executor) -> tuple[Survey, Clock | None]:
        facts, clock = survey_machine(executor)
        return facts._replace(boot_id=executor.host), clock

    monkeypatch.setattr(watch_plan, "survey_machine", survey)
