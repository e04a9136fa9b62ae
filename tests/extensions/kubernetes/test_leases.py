"""Locks of pods, in a cluster that is a dictionary."""

from typing import cast

from volbench.extensions.kubernetes.cluster import Cluster, Manifest, RequestError
from volbench.extensions.kubernetes.leases import LeaseLocks


class Objects:
    """Objects of a namespace."""

    def __init__(self, *campaigns: str) -> None:
        self.kept: dict[tuple[str, str], Manifest] = {("ConfigMap", name): {} for name in campaigns}

    def create(self, manifest: Manifest) -> Manifest:
        """Keep an object, unless there is one of that name."""
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self.kept:
            raise RequestError("already exists", status=409)
        self.kept[key] = manifest
        manifest["metadata"]["uid"] = str(len(self.kept))
        return manifest

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return an object."""
        return self.kept.get((kind, name))

    def list(self, kind: str, selector: str) -> list[Manifest]:
        """Return the objects with a label."""
        label, _, value = selector.partition("=")
        found = [m for (of, _), m in self.kept.items() if of == kind]
        return [m for m in found if m["metadata"]["labels"].get(label) == value]

    def delete(self, kind: str, name: str, *, uid: str = "") -> None:
        """Remove an object."""
        del uid
        self.kept.pop((kind, name), None)


def locks(objects: Objects, campaign: str, *, node: str = "n1") -> LeaseLocks:
    """Return the locks of a node, as a campaign sees them."""
    return LeaseLocks(cast("Cluster", objects), node=node, campaign=campaign)


def test_a_device_has_one_campaign() -> None:
    """Pods of one node see each other's locks; those of another node have other devices."""
    objects = Objects("a", "b")
    first, second = locks(objects, "a"), locks(objects, "b")
    assert first.answer("take", "8:16", "ka") == ""
    assert first.answer("take", "8:16", "ka") == ""  # another pod of the campaign
    assert second.answer("take", "8:16", "kb") == "ka"
    assert second.answer("show", "8:16", "-") == "ka"
    assert locks(objects, "b", node="n2").answer("take", "8:16", "kb") == ""
    second.answer("free", "8:16", "kb")
    assert second.answer("show", "8:16", "-") == "ka"
    first.answer("free", "8:16", "ka")
    assert second.answer("take", "8:16", "kb") == ""


def test_a_lock_ends_with_its_campaign() -> None:
    """A lock whose campaign was removed holds nobody."""
    objects = Objects("a", "b")
    locks(objects, "a").answer("take", "8:16", "ka")
    objects.delete("ConfigMap", "a")
    assert locks(objects, "b").answer("take", "8:16", "kb") == ""


def test_campaigns_on_a_filesystem_see_each_other() -> None:
    """A file system may be shared, and each campaign sees the others."""
    objects = Objects("a", "b")
    first, second = locks(objects, "a"), locks(objects, "b")
    assert first.answer("join", "disk-8:1", "ka") == ""
    assert second.answer("join", "disk-8:1", "kb") == "ka"
    first.answer("leave", "disk-8:1", "ka")
    assert second.answer("join", "disk-8:1", "kb") == ""
