"""Request to continue a stored campaign, and a controller in the background that carries it out."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import click
from pydantic import TypeAdapter

from volbench.cli.controller import last_error_of, open_log
from volbench.engine.campaign.campaign_state import Settings
from volbench.errors import CampaignError, quoted
from volbench.execute.connect import HostKeyPolicy
from volbench.model.campaign.planned_run import Consent
from volbench.store.archive import is_held
from volbench.store.layout import Layout

# Time limit for a background controller to lock its campaign: hosts may be slow.
# Noticed by: tests/fleet/test_detach.py
_BEGIN_S = 60.0
_POLL_S = 0.05


@dataclass(frozen=True)
class ResumeRequest:
    """How a stored campaign is continued."""

    execution: Settings = field(default_factory=Settings)
    host_keys: HostKeyPolicy = field(default_factory=HostKeyPolicy)
    # what extensions keep of their options, by keyword
    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    # for devices of the plan that are not, or hold not, what they did
    consent: Consent = field(default_factory=Consent)
    allow_exec: bool = False  # accept options that run programs or leave the run's folder
    redo_steps: tuple[str, ...] = ()  # numbers of steps, and ``unfinished``
    limits: tuple[str, ...] = ()  # hosts to continue on; all without one


_REQUEST = TypeAdapter(ResumeRequest)


def resume_in_background(layout: Layout, request: ResumeRequest) -> None:
    """Start a controller for a stored campaign in a new session; it reads the request on stdin."""
    log = open_log(layout)
    stdin, request_pipe = os.pipe()
    argv = [sys.executable, "-m", "volbench", "resume", str(layout.root.resolve()), "--from-stdin"]
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, log, number) for number in (1, 2)]
    try:
        pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)
        with open(request_pipe, "wb") as pipe:  # noqa: PTH123 - a descriptor
            pipe.write(_REQUEST.dump_json(request))
    finally:
        os.close(stdin)
        os.close(log)
    until_s = time.monotonic() + _BEGIN_S
    while not is_held(layout) and time.monotonic() < until_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended and status:
            raise CampaignError(
                f"the controller of {layout.root} ended immediately: {last_error_of(layout)}",
                hint=f"see {layout.controller_log}",
            )
        if ended:
            break
        time.sleep(_POLL_S)
    click.echo(
        f"Running in the background (PID {pid}).\n"
        f"Follow it: volbench status {quoted(layout.root)} --follow; or see: "
        f"volbench status {quoted(layout.root)}",
        err=True,
    )


def read_request() -> ResumeRequest:
    """Return the request that `resume_in_background` wrote to standard input."""
    return _REQUEST.validate_json(sys.stdin.buffer.read())
