"""Object storage: campaigns in buckets, and queries over many of them."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="object_storage",
    verbs={
        "upload": Verb(
            "volbench.extensions.object_storage.storage_verbs:upload",
            "Upload a campaign to object storage.",
        ),
        "sql": Verb(
            "volbench.extensions.object_storage.storage_verbs:sql",
            "Run SQL queries over many campaigns.",
        ),
    },
)
