"""Storage classes of a cluster, and what an account lacks to measure them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from volbench.errors import InputError, quoted
from volbench.execute.scheduler import on_each
from volbench.extensions.kubernetes.cluster import Cluster, ForbiddenError, Manifest, RequestError
from volbench.extensions.kubernetes.manifests import rights
from volbench.extensions.kubernetes.pod_status import few_names
from volbench.present.tables.table import Table, text_table

ALL = "all"  # Value of --storage-class: every class that can be measured without a trace
FOLDER = "storage-classes"  # of the bundled ones
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_BY_HAND = "kubernetes.io/no-provisioner"


def measured_classes(cluster: Cluster, named: Sequence[str]) -> tuple[str, ...]:
    """Return storage classes, with all that can be measured in place of `ALL`."""
    if ALL not in named:
        return tuple(named)
    reasons = {each["metadata"]["name"]: _obstacle(each) for each in cluster.list("StorageClass")}
    chosen = [name for name in reasons if not reasons[name]]
    left_out = ", ".join(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    if not chosen:
        raise InputError(
            f"no storage class makes volumes and deletes them again: {left_out or 'there is none'}",
            hint="name those to measure: --storage-class NAME",
        )
    more = f"; left out: {left_out}" if left_out else ""
    click.echo(f"storage classes: {', '.join(chosen)}{more}", err=True)
    return tuple(chosen)


def classes_table(cluster: Cluster, pod: Sequence[str], *, image: str) -> Table[Any]:
    """Return the storage classes of a cluster, what is missing, and the next command for a pod."""
    drivers: dict[str, list[str]] = {}
    for node in _list_if_allowed(cluster, "CSINode"):
        for driver in node["spec"].get("drivers") or ():
            drivers.setdefault(driver["name"], []).append(node["metadata"]["name"])
    snapshots: dict[str, list[str]] = {}
    for each in _list_if_allowed(cluster, "VolumeSnapshotClass"):
        snapshots.setdefault(each["driver"], []).append(each["metadata"]["name"])
    rows = [_class_row(each, drivers, snapshots) for each in cluster.list("StorageClass")]
    notes = [*_missing_rights(cluster), *_image_notes(cluster, image)]
    words = [f"--pod {quoted(each)}" for each in (pod if image else (*pod, "image=IMAGE"))]
    options = " ".join((f"--storage-class {ALL} --claim-size 4Gi", *words, cluster.options))
    notes.append(f"Next: volbench run quick --k8s {options}")
    return text_table("storage-classes", rows, identity="class", notes=notes)


def _class_row(
    each: Manifest, drivers: dict[str, list[str]], snapshots: dict[str, list[str]]
) -> dict[str, str]:
    metadata, driver = each["metadata"], each["provisioner"]
    is_default = (metadata.get("annotations") or {}).get(_DEFAULT) == "true"
    nodes = drivers.get(driver, [])
    inside = driver.startswith("kubernetes.io/")
    return {
        "class": metadata["name"] + (" (default)" if is_default else ""),
        "driver": driver,
        "binding": each.get("volumeBindingMode", "Immediate"),
        "reclaim": each.get("reclaimPolicy", "Delete"),
        "nodes": few_names(nodes) or ("built in" if inside else "none known"),
        "snapshot classes": ", ".join(snapshots.get(driver, ())),
        f"in {ALL}": f"no: {reason}" if (reason := _obstacle(each)) else "yes",
    }


def _obstacle(storage_class: Manifest) -> str:
    """Return why `ALL` leaves out a class; empty if it does not."""
    stays = "its disks would stay" if storage_class.get("reclaimPolicy") == "Retain" else ""
    return "volumes made by hand" if storage_class["provisioner"] == _BY_HAND else stays


def _list_if_allowed(cluster: Cluster, kind: str) -> list[Manifest]:
    """Return the objects of a kind; none if the account may not list them, or there is no kind."""
    try:
        return cluster.list(kind)
    except (ForbiddenError, RequestError):
        return []


def _missing_rights(cluster: Cluster) -> Iterator[str]:
    """Yield what the account may not do that campaigns need."""
    wanted = [*rights(cluster.namespace)]
    allowed = on_each(wanted, cluster.may)
    denied: dict[str, list[str]] = {}
    for right, is_allowed in zip(wanted, allowed, strict=True):
        if is_allowed is False:
            resource = "/".join(filter(None, (right["resource"], right["subresource"])))
            denied.setdefault(resource, []).append(right["verb"])
    words = "; ".join(f"{'/'.join(verbs)} {resource}" for resource, verbs in denied.items())
    lack = f"Rights that this account lacks: {words}. See: volbench k8s render --role NAME"
    yield lack if denied else "Rights: all that campaigns need."


def _image_notes(cluster: Cluster, image: str) -> Iterable[str]:
    """Yield which nodes have the image of the pods; its first pod on another node pulls it."""
    if not image:
        return ["Image: none is named; see: --pod image=IMAGE"]
    nodes = [
        node["metadata"]["name"]
        for node in _list_if_allowed(cluster, "Node")
        if any(image in (held.get("names") or ()) for held in node["status"].get("images") or ())
    ]
    return [f"Image {image}: {f'on {few_names(nodes)}' if nodes else 'not seen on a node yet'}."]
