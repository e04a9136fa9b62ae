"""What the index shows of volbench: the README and addresses, made from one setting.

hatchling calls `PackageMetadata` when it builds a distribution (pyproject.toml). The setting is
`address` in the table `tool.hatch.metadata.hooks.custom`: who publishes volbench changes that line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(!?)(\[[^\]\n]*\])\((?![a-z]+:|#)([^)\s]+)\)")
NOTE = re.compile(r"^<!-- .* -->\n", re.MULTILINE)


class PackageMetadata(MetadataHookInterface):
    """Fills in the fields of `dynamic`: urls and readme."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add addresses, and the README with absolute links to the files of this version."""
        address = self.config["address"]
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {
            "Repository": address,
            "Documentation": f"{address}/tree/v{metadata['version']}/docs",
            "Changelog": f"{address}/blob/v{metadata['version']}/CHANGELOG.md",
            "Issues": f"{address}/issues",
        }
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(readme, address, f"v{metadata['version']}"),
        }


def absolute_links(text: str, address: str, version: str) -> str:
    """Return Markdown that reads the same outside of the repository, where no file is beside it.

    Pictures come from `raw`, pages from `blob`, in which GitHub and GitLab agree. Comments for the
    tests of the README are left out.
    """

    def absolute(link: re.Match[str]) -> str:
        picture, title, path = link.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}{title}({address}/{kind}/{version}/{path})"

    return RELATIVE_LINK.sub(absolute, NOTE.sub("", text))
