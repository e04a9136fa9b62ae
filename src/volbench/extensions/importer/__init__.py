"""Import of results measured by other tools into a campaign folder."""

from volbench.extension import Extension, Verb

extension = Extension(
    name="importer",
    verbs={
        "import": Verb(
            "volbench.extensions.importer.import_verb:import_verb",
            "Import fio results from other sources as a campaign.",
            group="Campaigns",
            after="export",
        )
    },
    campaign_of="volbench.extensions.importer.cached_import:cached_campaign",
)
