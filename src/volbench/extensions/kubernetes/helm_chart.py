"""Helm chart of a schedule: its manifests with values in place of what differs between clusters.

Templates have only substitutions such as ``{{ .Values.image }}``. Format of a chart: helm.sh/docs,
"Charts", apiVersion v2.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from volbench import __version__
from volbench.errors import InputError
from volbench.extensions.kubernetes.schedules import ScheduleSpec, schedule_objects
from volbench.model.document.yaml_text import yaml_documents
from volbench.present.formatting import printable
from volbench.store.atomic_files import unwritable, write_atomic

# Options of volbench run whose texts become values, if they are given once
_OPTIONS = {"--storage-class": "storageClass", "--size": "size", "--image": "fioImage"}
_SAFE = re.compile(r"[^\"'\\{}\n]*")  # may stand between quotes of YAML and of JSON
_ESCAPED = '{{ "{{" }}'  # two braces that are no template
_VALUES_HEAD = """\
# Values of a schedule of volbench; a changed profile or another option of run needs a new chart.
# volbench run {}
"""


def write_chart(folder: Path, spec: ScheduleSpec) -> None:
    """Write the chart of a schedule into a new folder.

    Raises:
        InputError: the folder exists, or a value has quotes, braces or backslashes.
        ArchiveError: the folder cannot be written.
    """
    if folder.exists():
        raise InputError(f"{folder} exists", hint="name a new folder for the chart")
    values = {
        "image": spec.image,
        "namespace": spec.namespace,
        "schedule": spec.cron,
        "timeZone": spec.time_zone,
        "bucket": spec.upload,
    }
    options, of_options = _split(spec.arguments)
    values |= of_options
    if wrong := next((text for text in values.values() if not _SAFE.fullmatch(text)), ""):
        raise InputError(
            f"{wrong!r} cannot be a value of a chart", hint="leave out quotes, braces, backslashes"
        )
    chart = {
        "apiVersion": "v2",
        "name": spec.name,
        "description": "Scheduled storage benchmark campaigns with volbench",
        "type": "application",
        "version": "1.0.0",
        "appVersion": __version__,
    }
    plain = replace(
        spec,
        image=_token("image"),
        namespace=_token("namespace"),
        cron=_token("schedule"),
        time_zone=_token("timeZone"),
        upload=f"s3://{_token('bucket')}",
        arguments=options,
    )
    files = {"Chart.yaml": yaml_documents([chart])}
    command = printable(shlex.join([*spec.profiles, *spec.arguments]))
    files["values.yaml"] = _VALUES_HEAD.format(command) + yaml_documents([values])
    for manifest in schedule_objects(plain):
        text = yaml_documents([manifest]).replace("{{", _ESCAPED)
        files[f"templates/{manifest['kind'].lower()}.yaml"] = _with_values(text, values)
    try:
        (folder / "templates").mkdir(parents=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    for name, text in files.items():
        write_atomic(folder / name, text)


def _token(value: str) -> str:
    """Return a text that stands for a value and is valid wherever that is."""
    return f"volbench-value-{value.lower()}"


def _split(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return options with tokens in place of values, and the values by name."""
    options, values = list(arguments), dict[str, str]()
    for option, value in _OPTIONS.items():
        places = [at for at, text in enumerate(options[:-1]) if text == option]
        if len(places) == 1:
            values[value] = options[places[0] + 1]
            options[places[0] + 1] = _token(value)
    return tuple(options), values


def _with_values(text: str, values: Mapping[str, str]) -> str:
    """Return a manifest with templates in place of tokens, in quotes where one is a whole text."""
    for name in values:
        token = ("s3://" if name == "bucket" else "") + _token(name)
        template = f"{{{{ .Values.{name} }}}}"
        whole = re.compile(rf"^(\s*(?:- |\w+: )){re.escape(token)}$", re.MULTILINE)
        text = whole.sub(rf'\g<1>"{template}"', text).replace(token, template)
    return text
