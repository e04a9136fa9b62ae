"""Volumes of a campaign: all that the guard and the archive must know of them, at one instant."""

import os
import re

from volbench.execute.agent import block_reads
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.block_devices import BlockDevice, Devices, SharedStorage
from volbench.execute.agent.mounts import (
    Mount,
    mount_numbers,
    mount_of,
    mount_points,
    number_under,
    read_loop_files,
    read_mounts,
    read_swaps,
    swap_numbers,
    unmounted_above,
)
from volbench.execute.agent.signatures import read_content, read_whole
from volbench.execute.agent.snapshot import Snapshot, Stat, parent_of

_MAX_NAMES = 2000  # In a folder whose names are listed beside a missing path: a trade-off

_CHOSEN = re.compile(r"\[(.+)\]")
_IN_MEMORY = ("tmpfs", "ramfs")


def describe_volumes(
    volumes: "list[dict[str, object]]",
    campaign_dir: str = "/",
    space: "list[str] | None" = None,
    flush_s: float = 0.0,
    *,
    by_sudo: bool = False,
    snapshot: "Snapshot | None" = None,
) -> "dict[str, object]":
    """Return what the guard must know of volumes, all at one instant.

    Args:
        volumes: requests: ``target`` (absolute path); ``files`` that a run may use; ``allow``: what
            may be overwritten, as the user named it; ``folder`` that must exist;
            ``private_folder``; and ``details`` to add of a device: ``content``, ``edges`` (digest
            of its first and last MiB), ``use`` (by others); or of any volume ``access``.
        campaign_dir: whose disk must not be overwritten; it may not exist yet.
        space: paths whose free space is needed.
        flush_s: time to write back dirty pages of each volume before the look; 0 for no flush.
        by_sudo: whether fio runs as root regardless of the login user.
        snapshot: of this machine; for tests.

    Returns:
        ``mounts_known``: False where the mount table cannot be read, and nothing else is there;
        ``user``: who may write to a folder besides root; ``boot_id``; ``free_bytes`` of `space`;
        ``flush_problems``: why dirty pages of a volume were not written back, or empty texts;
        ``volumes``: see `_describe`, in the order of the requests.
    """
    snapshot = snapshot or Snapshot()
    problems = []
    if flush_s:
        problems = [block_reads.flush(str(each["target"]), flush_s, snapshot) for each in volumes]
        snapshot.forget()
    try:
        if volumes:
            read_mounts(snapshot)
    except AgentError:
        return {"mounts_known": False}
    describer = _Describer(snapshot, campaign_dir)
    return {
        "mounts_known": True,
        "user": _login_user(snapshot, by_sudo=by_sudo),
        "free_bytes": [snapshot.free_bytes(snapshot.nearest(path)) for path in space or []],
        "flush_problems": problems,
        "volumes": [describer.describe(**request) for request in volumes],  # type: ignore[arg-type]  # what the controller sends
    }


def _login_user(snapshot: Snapshot, *, by_sudo: bool) -> int:
    """Return the user who logged in, also where sudo started the agent."""
    process = snapshot.stat("/proc/self")
    user = 0 if process is None else process.owner
    login = os.environ.get("SUDO_UID", "")
    return int(login) if by_sudo and not user and login.isdigit() else user


class _Describer:
    """Descriptions of volumes from one snapshot."""

    def __init__(self, snapshot: Snapshot, campaign_dir: str) -> None:
        self._snapshot = snapshot
        self._devices = Devices(snapshot)
        self._campaign_dir = campaign_dir

    def describe(
        self,
        target: str,
        files: "list[str]",
        allow: "list[str]",
        folder: str,
        private_folder: str,
        details: "list[str]",
    ) -> "dict[str, object]":
        """Return the description of one volume; only ``denied`` where access is denied.

        ``real``: path with all symlinks resolved; ``stat``: see `_stat`; ``exists_at_real``;
        ``nearest``: the path or its nearest existing parent, with its ``mount`` and ``free_bytes``;
        ``room_bytes``: free space for the first of the files that does not exist;
        ``real_mount_point``: of the resolved path; ``parent``: folder of the resolved path, its
        kind, mount point and nearest existing parent; ``similar``: names of devices for a path
        below /dev, and what is beside a path that does not exist; ``unmounted``: mount point of
        fstab at or above it where nothing is mounted;
        ``folder``: kind of the required folder, and owner and mode of it and all its parents;
        ``private_folder``: its identity; ``files``: see `file`; ``device``: see `_device`, the
        block device that it is or is on; ``access``: see `_access`.
        """
        snapshot = self._snapshot
        try:
            real, stat, nearest = (
                snapshot.real_path(target),
                snapshot.stat(target),
                snapshot.nearest(target),
            )
            parent = parent_of(real)
            is_device = stat is not None and stat.kind == "block"
            number = (
                stat.rdev if stat is not None and is_device else number_under(snapshot, nearest)
            )
            device = None if number is None else self._devices.with_number(number)
            mount = mount_of(snapshot, nearest)
            if is_device:
                mount = self._newest_mount(number)
            return {
                "denied": "",
                "real": real,
                "stat": _stat(stat),
                "exists_at_real": snapshot.stat(real) is not None,
                "nearest": nearest,
                "mount": mount and _mount(mount),
                "free_bytes": snapshot.free_bytes(nearest),
                "room_bytes": self._room_bytes(files),
                "real_mount_point": self._mount_point(real),
                "parent": {
                    "path": parent,
                    "kind": self._kind(parent),
                    "mount_point": self._mount_point(parent),
                    "nearest": snapshot.nearest(parent),
                },
                "similar": [] if is_device else self._similar(real, parent, stat),
                "unmounted": unmounted_above(snapshot, target),
                "access": self._access(target, stat, files) if "access" in details else "",
                "folder": self._folder(folder),
                "private_folder": _identity(snapshot.stat(private_folder, follow=False)),
                "files": [self.file(path, allow) for path in files],
                "device": device
                and self._device(device, target if is_device else "", allow, details),
            }
        except AgentError as error:
            return {"denied": error.message}

    def _access(self, target: str, stat: "Stat | None", files: "list[str]") -> str:
        """Return why a target cannot be opened, or a missing file not created; empty if it can."""
        snapshot = self._snapshot
        if stat is not None and stat.kind in ("file", "block"):
            error = snapshot.open_error(target)
            if error:
                return "{} cannot be opened: {}".format(target, error)
        missing = next((path for path in files if snapshot.stat(path) is None), "")
        folder = snapshot.nearest(missing) if missing else ""
        error = snapshot.create_error(folder) if folder else ""
        return "files cannot be created in {}: {}".format(folder, error) if error else ""

    def _room_bytes(self, files: "list[str]") -> "int | None":
        missing = next((path for path in files if self._snapshot.stat(path) is None), "")
        return self._snapshot.free_bytes(self._snapshot.nearest(missing)) if missing else None

    def _kind(self, path: str) -> str:
        stat = self._snapshot.stat(path)
        return "" if stat is None else stat.kind

    def _mount_point(self, path: str) -> str:
        mount = mount_of(self._snapshot, path)
        return "" if mount is None else mount.mount_point

    def _similar(self, real: str, parent: str, stat: "Stat | None") -> "list[str]":
        """Return names of devices, or those in the folder of a missing path, directories with /."""
        if real.startswith("/dev/"):
            return [name.replace("!", "/") for name in self._snapshot.names("/sys/class/block")]
        names = self._snapshot.names(parent) if stat is None else []
        if len(names) > _MAX_NAMES:
            return []
        kinds = {name: self._kind(parent + "/" + name) for name in names}
        return [name + "/" * (kind == "directory") for name, kind in kinds.items()]

    def _newest_mount(self, number: "tuple[int, int] | None") -> "Mount | None":
        mounts = reversed(read_mounts(self._snapshot))
        return next(
            (each for each in mounts if number in mount_numbers(self._snapshot, each)), None
        )

    def _folder(self, path: str) -> "dict[str, object]":
        """Return the kind of a folder, and path, owner and mode of it and each of its parents."""
        here = self._snapshot.real_path(path or "/")
        parents = []
        while path:
            stat = self._snapshot.stat(here)
            if stat is not None:
                parents.append([here, stat.owner, stat.mode])
            if here == "/":
                break
            here = parent_of(here)
        return {"kind": self._kind(path) if path else "", "parents": parents}

    def file(self, path: str, allow: "list[str]") -> "dict[str, object]":
        """Return what is known of a file that a run may use.

        ``real``: with all symlinks resolved; ``placed``: with those of its folder resolved;
        ``stat``; ``identity`` of the path itself, even if it is a symlink; ``user`` in the kernel:
        ``swap PATH``, ``loop NAME`` or nothing; ``named``: whether the user named it.
        """
        snapshot = self._snapshot
        real, stat, link = (
            snapshot.real_path(path),
            snapshot.stat(path),
            snapshot.stat(path, follow=False),
        )
        return {
            "real": real,
            "placed": snapshot.real_path(parent_of(path)).rstrip("/")
            + "/"
            + path.rpartition("/")[2],
            "stat": _stat(stat),
            "identity": _identity(link),
            "user": "" if stat is None else self._kernel_user(stat),
            "named": any(snapshot.real_path(entry) == real for entry in allow),
        }

    def _kernel_user(self, file: Stat) -> str:
        users = [("swap " + path, path) for path in read_swaps(self._snapshot)]
        users += [("loop " + name, path) for name, path in read_loop_files(self._snapshot).items()]
        for user, path in users:
            used = self._snapshot.stat_visible(path)
            if used is not None and (used.device, used.inode) == (file.device, file.inode):
                return user
        return ""

    def _attributes(self, device: BlockDevice) -> "dict[str, object]":
        """Return the attributes of a block device; details are for `_device` to add."""
        devices = self._devices
        disk, below = devices.whole_disk(device), devices.below(device, through_files=True)
        scheduler = devices.attribute(disk, "queue/scheduler")
        chosen = _CHOSEN.search(scheduler)
        rotational = devices.attribute(disk, "queue/rotational")
        serial, model = devices.serial_and_model(disk)
        return {
            "name": device.name,
            "number": list(device.number),
            "is_partition": disk != device,
            "serial": serial,
            "model": model,
            "size_bytes": devices.size_bytes(device),
            "read_only": devices.attribute(device, "ro") == "1",
            "rotational": rotational == "1" if rotational else None,
            "scheduler": chosen.group(1) if chosen else scheduler,
            "logical_block_bytes": devices.number_in(disk, "queue/logical_block_size"),
            "physical_block_bytes": devices.number_in(disk, "queue/physical_block_size"),
            "write_cache": devices.attribute(disk, "queue/write_cache"),
            "backing": [lower.name for lower in below],
            "memory_below": self._memory_below([device, *below]),
            "pin": None,
            "named": False,
            "edges": None,
            "content": None,
            "use": None,
        }

    def _device(
        self, device: BlockDevice, target: str, allow: "list[str]", details: "list[str]"
    ) -> "dict[str, object]":
        """Return the attributes of a block device, and more of one that is the target.

        ``pin``: its identity over time; ``named``: whether the user named it; ``content``: see
        `read_content`; ``use``: see `_use`.
        """
        description = self._attributes(device)
        if not target:
            return description
        description["pin"] = self._devices.identity(device, target)
        description["named"] = self._is_named(device, target, allow)
        if "edges" in details:
            description["edges"] = self._snapshot.edges(target, self._devices.size_bytes(device))
        if "content" in details:
            description["content"] = read_content(self._snapshot, self._devices, device, target)
        if "use" in details:
            description["use"] = self._use(device, target)
        return description

    def _memory_below(self, devices: "list[BlockDevice]") -> str:
        """Return the filesystem in memory that holds the file of a loop device; empty for none."""
        for device in devices:
            path = self._devices.attribute(device, "loop/backing_file")
            mount = mount_of(self._snapshot, self._snapshot.nearest(path)) if path else None
            if mount is not None and mount.filesystem in _IN_MEMORY:
                return "{} under {}".format(mount.filesystem, device.name)
        return ""

    def _is_named(self, device: BlockDevice, target: str, allow: "list[str]") -> bool:
        """Return whether the user named this device, by its resolved path and its number."""
        real = self._snapshot.real_path(target)
        for entry in allow:
            stat = self._snapshot.stat_visible(entry)
            is_same = stat is not None and stat.kind == "block" and stat.rdev == device.number
            if is_same and self._snapshot.real_path(entry) == real:
                return True
        return False

    def _use(self, device: BlockDevice, target: str) -> "dict[str, object]":
        """Return the uses of a device, under any of its names.

        ``disk_of``: which of ``/`` and the campaign folder are on its disks; ``mounted_at``;
        ``is_swap``; ``held_by``: kernel names of devices built on it; ``loops`` on it; ``members``:
        disks of which it is a partition, as `read_whole` describes them; ``exclusive``: the error
        of an exclusive open; ``others``: node and the same error of its independent names.
        """
        snapshot, devices = self._snapshot, self._devices
        shared = SharedStorage(snapshot, devices, device)
        used = shared.overlapping + shared.elsewhere
        numbers = {part.number for part in used}
        below = devices.below(device, through_files=False)
        stack_numbers = {part.number for part in [device, *below]}
        own_names = {part.name for part in [device, *below]}
        disk = devices.whole_disk(device)
        family = {part.number for part in [device, disk, *devices.partitions(device)]}
        files = devices.loops().items()
        return {
            "disk_of": [
                path
                for path in ("/", self._campaign_dir)
                if stack_numbers & {part.number for part in self._under(path)}
            ],
            "mounted_at": list(dict.fromkeys(mount_points(snapshot, numbers))),
            "is_swap": bool(numbers & swap_numbers(snapshot)),
            "held_by": sorted({n for part in used for n in devices.holders(part)} - own_names),
            "loops": [name for name, f in files if f.kind == "block" and f.rdev in family],
            "members": [read_whole(snapshot, devices, whole) for whole in shared.wholes],
            "exclusive": snapshot.exclusive_error(target),
            "others": [[o.node, snapshot.exclusive_error(o.node)] for o in shared.independent],
        }

    def _under(self, path: str) -> "list[BlockDevice]":
        return self._devices.of_path(self._snapshot.nearest(self._snapshot.real_path(path)))


def describe_files(
    paths: "list[str]", allow: "list[str] | None" = None, snapshot: "Snapshot | None" = None
) -> "list[dict[str, object]]":
    """Return what is known of files; see `_Describer.file`."""
    describer = _Describer(snapshot or Snapshot(), "/")
    return [describer.file(path, allow or []) for path in paths]


def file_identities(
    paths: "list[str]", snapshot: "Snapshot | None" = None
) -> "list[list[int] | None]":
    """Return the identities of files, even if they are symlinks; None for missing ones."""
    snapshot = snapshot or Snapshot()
    return [_identity(snapshot.stat(path, follow=False)) for path in paths]


def folder_contents(path: str, snapshot: "Snapshot | None" = None) -> "list[list[object]]":
    """Return path and identity of everything in a directory; empty if it does not exist."""
    snapshot = snapshot or Snapshot()
    paths = ["{}/{}".format(path, name) for name in snapshot.names(path)]
    return [[each, _identity(snapshot.stat(each, follow=False))] for each in paths]


def _identity(stat: "Stat | None") -> "list[int] | None":
    return None if stat is None else stat.identity


def _mount(mount: Mount) -> "dict[str, object]":
    return {
        "filesystem": mount.filesystem,
        "mount_point": mount.mount_point,
        "options": mount.options,
    }


def _stat(stat: "Stat | None") -> "dict[str, object] | None":
    if stat is None:
        return None
    return {
        "kind": stat.kind,
        "device": list(stat.device),
        "rdev": list(stat.rdev),
        "inode": stat.inode,
        "size_bytes": stat.size_bytes,
        "born_ns": stat.born_ns,
        "owner": stat.owner,
        "mode": stat.mode,
    }
