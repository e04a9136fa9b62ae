"""Rule of replays: replay-falls-short."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import Observation, rule
from volbench.analyse.frames.run_view import RunView


@rule(
    "the replay differs from its recording",
    looks_at=(
        "Requests, bytes and read share (1 %), the lag of arrivals (p50 and p99, 1 ms) and the"
        " utilization (5 points) of a replay, against the trace in its campaign folder."
    ),
    why=(
        "A load that arrives later, or with other requests, is not the recorded load: its"
        " latencies do not show what the recorded one would see on this volume."
    ),
    advice=(
        "Look at the measures with volbench fidelity. Replay on an idle host; on a slower volume,"
        " stretch the load with --speed 0.5."
    ),
)
def replay_falls_short(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the measures that are beyond their limits."""
    for text in dict.fromkeys(row["replay_shortfall"] for row in view.results):
        if isinstance(text, str) and text:
            yield Observation(
                f"Beyond the limits: {text}.", {"measures": float(text.count(";") + 1)}
            )
