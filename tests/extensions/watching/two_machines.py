"""Hosts of a loopback fleet as if each were a machine of its own."""

from __future__ import annotations

import pytest

from volbench.engine.hosts.host_facts import Survey, survey_machine
from volbench.execute.protocol import Executor
from volbench.extensions.watching import watch_plan


def tell_hosts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each host a boot ID of its own, by which a watch knows its machine."""

    def survey(executor: Executor) -> Survey:
        return survey_machine(executor).model_copy(update={"boot_id": executor.host})

    monkeypatch.setattr(watch_plan, "survey_machine", survey)
