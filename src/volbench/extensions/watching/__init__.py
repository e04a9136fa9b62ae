"""Watched loads: disks of hosts under a load that volbench does not make itself."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="watching",
    verbs={
        "watch": Verb(
            "volbench.extensions.watching.watch_verbs:watch",
            "Record the activity of disks under any load.",
            group="Volumes",
            after="audit",
        )
    },
    sentences=("volbench.extensions.watching.watch_summary:summary_lines",),
    options={"resume": "volbench.extensions.watching.ended_watch:ENDED_WATCH"},
)
