"""Traces: every I/O of a load, recorded from the kernel or imported, in one Parquet file."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="traces",
    verbs={
        "replay": Verb(
            "volbench.extensions.traces.replay_verb:replay",
            "Replay a trace on a volume, and score it.",
        ),
        "fidelity": Verb(
            "volbench.extensions.traces.replay_verb:fidelity",
            "Show how close a replay came to its recording.",
        ),
        "trace": Verb(
            "volbench.extensions.traces.trace_verbs:trace",
            "Show and import traces: a row for each I/O.",
        ),
    },
)
