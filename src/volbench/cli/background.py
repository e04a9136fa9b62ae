"""Controller of a campaign in the background."""

from __future__ import annotations

import os
import sys
import time

import click
from pydantic import TypeAdapter

from volbench.api.campaign_drive import ResumeRequest
from volbench.errors import CampaignError, quoted
from volbench.present.terminal.controller_log import open_log
from volbench.store.archive import is_held
from volbench.store.layout import Layout

# Time limit for a background controller to lock its campaign: hosts may be slow.
# Noticed by: tests/fleet/test_detach.py
_BEGIN_S = 60.0
_POLL_S = 0.05


_REQUEST = TypeAdapter(ResumeRequest)


def resume_in_background(layout: Layout, request: ResumeRequest) -> None:
    """Start a controller for a stored campaign in a new session; it reads the request on stdin."""
    log = open_log(layout)
    stdin, request_pipe = os.pipe()
    # Without -P, a module in the current folder, which may be another user's, would be run instead.
    argv = [sys.executable, "-P", "-m", "volbench", "resume", str(layout.root.resolve())]
    argv += ["--from-stdin"]
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
            lines = layout.controller_log.read_text(encoding="utf-8", errors="replace").splitlines()
            errors = [line for line in lines if line.startswith("volbench: ")]
            raise CampaignError(
                f"the controller of {layout.root} ended immediately:"
                f" {errors[-1] if errors else 'see its log'}",
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
