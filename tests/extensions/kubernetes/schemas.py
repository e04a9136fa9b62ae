"""Strict schemas of several Kubernetes versions."""

import re
from functools import cache
from typing import Any

import jsonschema
from kubernetes_validate.utils import all_versions, major_minor, schema_contents
from referencing import Registry, Resource

from volbench.extensions.kubernetes.cluster import Manifest

BY_MINOR = {major_minor(version): version for version in all_versions()}
NEWEST = list(BY_MINOR.values())[-3:]


@cache
def validator(version: str, kind: str, api: str) -> Any:  # noqa: ANN401 - jsonschema has no public type
    """Return the validator of a kind that refuses unknown fields, too."""
    folder = f"kubernetes-json-schema/v{version}-local-strict"
    group = re.sub(r"^(\w+)(\.[^/]*)?/", r"\1-", api)
    schema = schema_contents(f"{folder}/{kind.lower()}-{group}.json", version)
    shared = Resource.from_contents(schema_contents(f"{folder}/_definitions.json", version))
    registry = shared @ (Resource.from_contents(schema) @ Registry())
    return jsonschema.Draft202012Validator(schema, registry=registry)


def problems(manifest: Manifest, version: str) -> list[str]:
    """Return what a version's schema finds wrong with a manifest."""
    found = validator(version, str(manifest["kind"]), str(manifest["apiVersion"]))
    return [error.message for error in found.iter_errors(manifest)]
