"""Catalogue: prices, volume types and machine types."""

from volbench.extension import Extension, LimitSource, Verb

extension = Extension(
    name="catalogue",
    verbs={
        "price": Verb(
            "volbench.extensions.catalogue.catalogue_verbs:price",
            "Rank configurations by price-performance.",
            group="Volumes",
        )
    },
    methods={"price": "volbench.extensions.catalogue.priced_runs:price_of"},
    limit_sources=(
        LimitSource(
            type_names="volbench.extensions.catalogue.volume_types:catalogue",
            list_types="volbench.extensions.catalogue.catalogue_verbs:list_types",
            types_schema="volbench.extensions.catalogue.catalogue_verbs:types_schema",
            declared_limits="volbench.extensions.catalogue.volume_types:declared_limits",
            known_limits="volbench.extensions.catalogue.volume_types:known_limits",
            check_machine="volbench.extensions.catalogue.machine_types:find_machine",
            within_machine="volbench.extensions.catalogue.machine_types:within_machine",
            label_limits="volbench.extensions.catalogue.class_limits:label_limits",
            disk_limits="volbench.extensions.catalogue.class_limits:disk_limits",
            class_limits="volbench.extensions.catalogue.class_limits:class_limits",
        ),
    ),
)
