"""Detailed performance statistics of AWS: log page 0xD0 of EBS volumes and of instance stores.

The page counts for how long the load was above the limits of the volume and of the instance, and
how long reads and writes took. Its layout is that of the Amazon EBS User Guide ("Amazon EBS
detailed performance statistics") and, for instance stores, of the plugin ``amzn`` of nvme-cli. It
is read with an NVMe admin command that changes nothing (Get Log Page), as root.
"""

import array
import errno
import fcntl
import os
import re
import struct

PAGE_BYTES = 4096
MAGIC = 0x3C23B510
LOCAL_MAGIC = 0xEC2C0D7E  # Of an instance store, which counts its own limits as the instance's
# Other vendors use page 0xD0 for something else
_MODELS = (b"Amazon Elastic Block Store", b"Amazon EC2 NVMe Instance Storage")
_NAMESPACE = re.compile("nvme[0-9]+n[0-9]+")
_ADMIN_COMMAND = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD of linux/nvme_ioctl.h
_GET_LOG_PAGE = 0x02
_PAGE = 0xD0
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")  # struct nvme_passthru_cmd
# Magic number, 4 bytes of padding, 6 totals; then microseconds above the IOPS and the bandwidth of
# the volume, and above those of the instance, and I/Os in the queue
_FIELDS = struct.Struct("<I4x6Q5Q")
_HISTOGRAMS = (("read", 512), ("write", 2056))  # Where they begin: a number of bins, then these
_COUNT = struct.Struct("<Q")
_BIN = struct.Struct("<QQI4x")  # Lower and upper end in microseconds, number of I/Os
_MAX_BINS = 64


def ebs_namespaces(names: "list[str]") -> "list[str]":
    """Return the kernel names of whole disks of AWS whose page can be read."""
    return [
        name
        for name in names
        if _NAMESPACE.fullmatch(name) and _model(name).startswith(_MODELS) and read_page(name)
    ]


def _model(name: str) -> bytes:
    try:
        with open("/sys/class/block/{}/device/model".format(name), "rb") as file:
            return file.read(64)
    except OSError:
        return b""


def read_page(name: str) -> bytes:
    """Return the page of a device; empty without permission, or where the device has none."""
    page = array.array("B", bytes(PAGE_BYTES))
    words = _PAGE | (PAGE_BYTES // 4 - 1) << 16
    command = _COMMAND.pack(
        *(_GET_LOG_PAGE, 0, 0, 1, 0, 0, 0, page.buffer_info()[0], 0, PAGE_BYTES),
        *(words, 0, 0, 0, 0, 0, 0, 0),
    )
    try:
        descriptor = os.open("/dev/" + name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        status = fcntl.ioctl(descriptor, _ADMIN_COMMAND, command)
        return page.tobytes() if status is not None else b""
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTTY, errno.EIO}:
            return b""
        raise
    finally:
        os.close(descriptor)


def counters(page: bytes) -> "tuple[int, ...]":
    """Return the microseconds above each of four limits, and the queue; empty if damaged."""
    if len(page) != PAGE_BYTES:
        return ()
    magic, *fields = _FIELDS.unpack_from(page)
    return tuple(fields[6:]) if magic in {MAGIC, LOCAL_MAGIC} else ()


def histograms(page: bytes) -> "dict[str, list[tuple[int, int]]]":
    """Return the bins of an undamaged page that are not empty: upper end and number of I/Os."""
    found = {}
    for direction, begin in _HISTOGRAMS:
        (count,) = _COUNT.unpack_from(page, begin)
        places = range(begin + _COUNT.size, begin + _COUNT.size + _MAX_BINS * _BIN.size, _BIN.size)
        bins = [_BIN.unpack_from(page, place)[1:] for place in places][:count]
        found[direction] = [(upper, ios) for upper, ios in bins if ios]
    return found
