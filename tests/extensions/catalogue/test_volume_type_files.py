"""Files of volume types that users write: what is read, and what is refused where."""

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.extensions.catalogue.typed_limits import limits_of
from volbench.errors import InputError
from volbench.extensions.catalogue.volume_type import evaluate
from volbench.extensions.catalogue.volume_types import TypesFile, catalogue, parse_types, read_types
from volbench.model.document.document_model import document_schema
from volbench.model.profile.profile_settings import VolumeOfType

GOOD = """\
provider: lab
checked: 2026-11-21
source: Our own measurements
types:
  fast:
    sizes: {min: 1g, max: 10g}
    iops: {base: 100, per_gib: 10, max: 150}
    bandwidth: [{base: 10MB/s}, {per_iops: 4KiB/s, min: 5MB/s}]
  small: {size: 2g, iops: 50}
  sized: {tiers: [small], title: By size}
"""


def test_a_file_in_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder volume-types here, and one in the configuration, add to the bundled types."""
    configured = tmp_path / "config/volbench/volume-types"
    here = tmp_path / "work/volume-types"
    for folder in (configured, here):
        folder.mkdir(parents=True)
    (configured / "lab.yaml").write_text(GOOD, encoding="utf-8")
    (here / "aws.yaml").write_text(
        GOOD.replace("provider: lab", "provider: aws").replace("  fast:", "  gp2:"),
        encoding="utf-8",
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path / "work")
    types = catalogue()
    assert types["lab/fast"].source.title == "Our own measurements"
    assert limits_of("aws/gp2", size_bytes=2 << 30).iops == 120
    assert limits_of("lab/fast", size_bytes=10 << 30, types=types).iops == 150
    assert limits_of("lab/fast", size_bytes=1 << 30, types=types).bandwidth_bytes_per_s == 5e6
    assert limits_of("lab/sized", size_bytes=1 << 30, types=types).iops == 50
    assert "azure/P15" in types


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("provider: lab", "provider: 9lab", ":1:11: provider", "'9lab'"),
        ("checked: 2026-11-21\n", "", ":4:3: types.fast", "no date"),
        ("source: Our own measurements\n", "", ":4:3: types.fast", "no source"),
        ("  fast:", "  9fast:", ":5:3: types.9fast", "'9fast'"),
        ("sizes:", "size_s:", ":6:5: types.fast.size_s", "did you mean `sizes`?"),
        ("min: 1g, max", "min: 11g, max", ":5:3: types.fast", "minimum size is above"),
        ("base: 10MB/s", "base: 10Mb/s", ":8:24: types.fast.bandwidth.0.base", "ambiguous"),
        ("iops: 50", "note: none", ":9:3: types.small", "has no limit"),
        ("iops: 50", "iops: 50, burst_duration: 1h", ":9:3: types.small", "has no effect without"),
        ("[small]", "[fast]", ":10:19: types.sized.tiers.0", "'fast' is not a fixed-size type"),
        ("{size: 2g,", "{size: 2g, sizes: {min: 1g, max: 2g},", ":9:28: types.small", "either"),
        ("{size: 2g, iops: 50}", "{iops: 50}", ":9:3: types.small", "no size"),
    ],
)
def test_problems_are_reported_with_their_position(
    tmp_path: Path, old: str, new: str, place: str, message: str
) -> None:
    """Each defect is reported with file, line, column and key."""
    assert old in GOOD
    file = tmp_path / "bad.yaml"
    file.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_types(file)
    lines = [line for line in caught.value.message.splitlines() if message in line]
    assert lines, caught.value.message
    assert lines[0].startswith(f"{file}{place}")


def test_the_documented_file_is_valid() -> None:
    """What the reference page shows of a file of types can be read."""
    page = Path(__file__).parents[3] / "docs/reference/volume-types.md"
    (shown,) = re.findall(r"```yaml\n(provider:.*?)```", page.read_text("utf-8"), re.DOTALL)
    types = parse_types(shown, path="shown.yaml")
    assert list(types) == ["lab/fast"]
    limits = evaluate(types["lab/fast"], VolumeOfType(type="lab/fast", size_bytes=100 << 30))
    assert (limits.iops, limits.bandwidth_bytes_per_s) == (700, 100e6)


def test_the_schema_accepts_what_the_loader_accepts() -> None:
    """Editors accept every bundled file, and mark what the loader refuses."""
    schema = document_schema(TypesFile)
    validator = Draft202012Validator(schema)
    for path in sorted((Path(__file__).parents[3] / "volume-types").glob("*.yaml")):
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
        content["checked"] = str(content["checked"])
        assert [error.message for error in validator.iter_errors(content)] == []
    content["types"] = {"x": {"iops": {"provisioned": {}}}}
    assert not validator.is_valid(content)
