"""What hatchling adds when it builds volbench: manual pages, and the script that draws charts.

pyproject.toml names this file. The script is that of the bokeh that the table `build-system` pins;
an editable installation gets it into the checkout, where git ignores it.
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "src" / "volbench" / "present" / "renderers" / "interactive" / "bokeh.min.js"


class BuildHook(BuildHookInterface[Any]):
    """Adds what is no source of volbench."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the script; add a manual page for each command, except to an editable wheel."""
        copy_script()
        self.folder = TemporaryDirectory()
        if version == "editable":
            return
        sys.path.insert(0, str(ROOT / "scripts"))
        from man_pages import write_pages  # noqa: PLC0415 - beside this file

        for page in write_pages(Path(self.folder.name)):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the pages that are in the wheel now."""
        del version, build_data, artifact_path
        self.folder.cleanup()


def copy_script() -> None:
    """Copy BokehJS out of the installed bokeh, without importing it."""
    spec = find_spec("bokeh")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("bokeh is not installed; pyproject.toml names its version")
    shutil.copyfile(Path(spec.origin).parent / "server" / "static" / "js" / SCRIPT.name, SCRIPT)
