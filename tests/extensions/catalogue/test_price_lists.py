"""Files of prices: what they say, what they add up to, and what is refused where."""

import re
from pathlib import Path

import pytest

from volbench.errors import InputError
from volbench.extensions.catalogue.price_list import Price, load_prices, parse_prices

GIB = 1 << 30
# The table of the article: a price an hour and a price a month.
TABLE = {
    "2ACPU-4GB": (0.022, 16.06),
    "2BCPU-4GB": (0.053, 38.69),
    "2DCPU-4GB": (0.088, 64.24),
    "2TCPU-4GB": (0.022, 16.06),
    "Standard_A2_v2": (0.076, 55.48),
    "Standard_B2s": (0.042, 30.66),
    "Standard_F2": (0.099, 72.27),
    "Standard_F2s_v2": (0.085, 62.05),
}
GOOD = """\
currency: EUR
checked: 2026-11-21
source: Price list of the lab
region: here
flavors:
  small: {hourly: 0.05, family: cheap}
  large: {monthly: 72}
volume_types:
  aws/gp3:
    per_gib_month: 0.08
    iops: {monthly: 0.005, included: 3000}
    bandwidth: {monthly: 0.04, per: 1MiB/s, included: 125MiB/s}
  disk: {monthly: 10, source: {title: Elsewhere, url: "https://example.org"}, checked: 2026-01-31}
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Return a file that has everything."""
    file = tmp_path / "prices.yaml"
    file.write_text(GOOD, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", TABLE)
def test_the_published_price_table_is_reproduced_to_the_cent(name: str) -> None:
    """Hours and months are as printed, and 730 of the one make the other."""
    prices = load_prices("kamatera-azure")
    hourly, monthly = TABLE[name]
    price = prices.flavors[name]
    assert (price.hourly, price.monthly, prices.currency) == (hourly, monthly, "USD")
    assert set(prices.flavors) == set(TABLE)
    by_hours = Price(name=name, hourly=hourly).month()
    assert f"{by_hours:.2f}" == f"{monthly:.2f}"


def test_the_monthly_price_of_a_volume(good: Path) -> None:
    """What is included costs nothing; size, IOPS and bandwidth are added up."""
    price = load_prices(str(good)).volume_types["aws/gp3"]
    small = price.month(size_bytes=100 * GIB, iops=3000, bandwidth_bytes_per_s=125 << 20)
    assert small == pytest.approx(8.0)
    large = price.month(size_bytes=500 * GIB, iops=6000, bandwidth_bytes_per_s=250 << 20)
    assert large == pytest.approx(40 + 15 + 5)
    with pytest.raises(InputError, match="neither bundled nor a file"):
        load_prices("nothing")


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("currency: EUR\n", "", ":1:1: currency", "is missing"),
        ("currency: EUR", "currency: euro", ":1:11: currency", "'euro'"),
        ("checked: 2026-11-21", "checked: soon", ":2:10: checked", "'soon'"),
        ("checked: 2026-11-21\n", "", ":5:3: flavors.small", "no date"),
        ("source: Price list of the lab\n", "", ":5:3: flavors.small", "no source"),
        ("hourly: 0.05", "hourly: -1", ":6:19: flavors.small.hourly", "'-1'"),
        ("hourly: 0.05, ", "", ":6:3: flavors.small", "no price"),
        ("{monthly: 72}", "{monthly: 72, per_gib_month: 1}", ":7:24: flavors.large", "unknown"),
        ("flavors:", "flavours:", ":5:1: flavours", "did you mean `flavors`?"),
    ],
)
def test_problems_are_reported_with_their_position(
    good: Path, old: str, new: str, place: str, message: str
) -> None:
    """Each defect is reported with file, line, column and key."""
    assert old in GOOD
    good.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_prices(str(good))
    lines = [line for line in caught.value.message.splitlines() if message in line]
    assert lines, caught.value.message
    assert lines[0].startswith(f"{good}{place}"), lines[0]


def test_the_documented_price_lists_are_valid() -> None:
    """Every price list in the documentation can be read."""
    root = Path(__file__).parents[3] / "docs"
    shown = [
        text
        for page in sorted(root.rglob("*.md"))
        for text in re.findall(r"```yaml\n(currency:.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    assert len(shown) > 1
    for text in shown:
        assert parse_prices(text, path="shown.yaml").currency == "USD"
