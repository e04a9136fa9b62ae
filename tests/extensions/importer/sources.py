"""Folders of results to import, made of the cases, and what became of them."""

import json
import shutil
from pathlib import Path
from typing import Any

from volbench.api.one_campaign import CampaignData, campaign_data
from volbench.extensions.importer.import_campaign import ImportReport, ImportRequest, staged_import
from volbench.extensions.importer.run_names import parse_labels

CASES = Path(__file__).parents[2] / "cases"
CLIENTS = CASES / "client-server" / "3.33-two-hosts"
JSON = (CASES / "fio-3.33/randrw-jsonplus/stdout").read_text()


def put(path: Path, content: str | bytes) -> Path:
    """Write a file with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def result_of(case: str, *, jobname: str = "", **options: str) -> str:
    """Return the document of a case, its first job under another name and with other options."""
    text = (CASES / case / "stdout").read_text()
    document = json.loads(text[text.index("{\n") :])
    entry = document["jobs"][0]
    entry["jobname"] = jobname or entry["jobname"]
    entry["job options"] = {**entry.get("job options", {}), **options}
    return json.dumps(document, indent=2)


def copy_logs(case: str, folder: Path, *, prefix: str, gone: str = "l") -> None:
    """Copy the logs of a case under another prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((CASES / case).glob(f"{gone}_*.log")):
        shutil.copy(path, folder / (prefix + path.name.removeprefix(gone)))


def take(
    *paths: Path,
    into: Path,
    pattern: str | tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401 - the others of a request, under their names
) -> tuple[ImportReport, CampaignData]:
    """Import paths, and open the campaign."""
    request = ImportRequest(
        paths=paths,
        into=into,
        patterns=(pattern,) if isinstance(pattern, str) else pattern,
        labels=parse_labels(labels),
        **options,
    )
    with staged_import(request) as report:
        pass
    return report, campaign_data(into)
