"""volbench k8s storageclass: bundled storage classes."""

from __future__ import annotations

import click

from volbench.cli.options import examples, flag
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.errors import InputError


@click.command(
    "storageclass",
    epilog=examples(
        "volbench k8s storageclass --list",
        "volbench k8s storageclass ebs-gp3-retain | kubectl apply -f -",
    ),
)
@click.argument("names", nargs=-1, metavar="NAME...")
@flag("--list", "List the storage classes instead.", "is_list")
@table_options()
def command(names: tuple[str, ...], *, is_list: bool, shown: TableOutput) -> None:
    """Print the storage classes NAME as manifests.

    All have the reclaim policy Retain: a volume, and what it costs, stays after its claim.
    """
    from volbench.catalogue.storage_class_table import classes_table
    from volbench.plan.storage_classes import read_class, storage_classes

    if bool(names) == is_list:
        raise InputError("name storage classes, or --list", hint="volbench k8s storageclass --list")
    if is_list:
        shown.write(classes_table(storage_classes()))
        return
    text = "---\n".join(read_class(name) for name in names)
    with binary_output(shown.output, default_name="storageclasses.yaml") as sink:
        sink.write(text.encode())
