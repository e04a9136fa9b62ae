"""Scripts of pages: their types are right, and nothing in them can end the script element."""

import shutil
import subprocess
from pathlib import Path

import pytest

import volbench.present.renderers.interactive as package


@pytest.mark.slow
def test_typescript_finds_no_errors_in_the_scripts() -> None:
    """TypeScript's compiler finds nothing wrong in the scripts and their JSDoc types."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.fail("there is no tsc; scripts/setup dev installs it")
    folder = Path(package.__file__).parent
    done = subprocess.run(
        [compiler, "--project", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0


def test_scripts_stay_inside_their_element() -> None:
    """Neither a closing tag nor code that is made at run time, which the policy would stop."""
    folder = Path(package.__file__).parent
    scripts = "".join(path.read_text() for path in folder.glob("*.js") if "bokeh" not in path.name)
    assert "</script" not in scripts
    assert "eval(" not in scripts
    assert "new Function" not in scripts
    assert "innerHTML" not in scripts
