"""Layout of the files that all clients of a host read."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.model.profile.profile_model import Job, Options, Phase, Profile
from volbench.plan.profile.profile_document import effective_options

# Options of a reading section that also apply to the writing of its file: the way to the volume,
# and content that storage may compress or deduplicate
_KEPT = (
    *("ioengine", "direct", "refill_buffers", "scramble_buffers", "zero_buffers", "buffer_pattern"),
    *("buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage"),
)


def layouts(profile: Profile) -> Iterator[Job]:
    """Yield a job for each shared file that writes it completely, before all other jobs."""
    files: dict[tuple[str, str], list[dict[str, str]]] = {}
    for job in profile.jobs:
        for section in effective_options(job, profile.defaults).values():
            if job.shared and section.get("filename") == job.shared:
                files.setdefault((job.role, job.shared), []).append(section)
    for (role, shared), readers in files.items():
        end = max(int(section.get("offset", "0")) + int(section["size"]) for section in readers)
        options: Options = dict.fromkeys(profile.defaults)
        options |= {name: readers[0][name] for name in _KEPT if name in readers[0]}
        # with fallocate an interrupted layout would have its full length already
        options |= {"filename": shared, "rw": "write", "bs": "1048576", "size": str(end)}
        options |= {"fallocate": "none", "end_fsync": "1"}
        yield Job(
            name=f"lay-out-{shared}",
            role=role,
            note=f"Writes {shared}, which all clients of a host read.",
            shared=shared,
            phase=Phase.PRECONDITION,
            options=options,
        )


def is_layout(job: Job) -> bool:
    """Return whether a job writes a shared file."""
    return job.shared is not None and job.phase is Phase.PRECONDITION
