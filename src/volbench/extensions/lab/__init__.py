"""Simulated volumes with known behaviour, served by nbdkit."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="lab",
    verbs={
        "lab": Verb(
            "volbench.extensions.lab.lab_verbs:lab",
            "Simulate volumes whose behaviour is known.",
            group="Set-up",
        )
    },
)
