"""Offers beside their prices: costs, ranks and the front by hand-computed cases."""

import math

import pandas as pd
import pytest

from volbench.errors import InputError
from volbench.extensions.catalogue.catalogue_tables import market_table
from volbench.extensions.catalogue.price_list import Metered, Price, Prices
from volbench.extensions.catalogue.price_performance import Market, market, on_frontier
from volbench.extensions.catalogue.priced_runs import Billing, performance, priced_runs
from volbench.model.profile.profile_settings import Limits

GIB = 1 << 30
ONE = pd.DataFrame({"run": ["0"]})
PRICES = Prices(
    path="p.yaml",
    currency="USD",
    flavors={
        "a": Price(name="a", monthly=10, family="x"),
        "b": Price(name="b", monthly=20, family="x"),
        "c": Price(name="c", monthly=40, family="y"),
        "d": Price(name="d", hourly=0.1, family="y"),
    },
)


def runs(*repeats: tuple[str, float], rw: str = "randread") -> pd.DataFrame:
    """Return rows of runs: a flavor and its IOPS each, on a host of its own for each flavor."""
    return pd.DataFrame(
        [
            {
                "run": f"{place}",
                "rw": rw,
                "host": f"host-{flavor}",
                "volume": "/dev/sdb",
                "steady": True,
                "judged": True,
                "iops": iops,
                "bw_bytes_per_s": iops * 4096,
            }
            for place, (flavor, iops) in enumerate(repeats)
        ]
    )


def billed(rows: pd.DataFrame) -> dict[str, Billing]:
    """Return what was bought for each run."""
    return {
        run: Billing(
            flavor=host.removeprefix("host-"), volume_type="", size_bytes=100 * GIB, limits=Limits()
        )
        for run, host in zip(rows["run"], rows["host"], strict=True)
    }


def offered(rows: pd.DataFrame, prices: Prices = PRICES, *by: str) -> Market:
    """Return the market of some runs."""
    summary = summary_of(rows)
    priced, notes = priced_runs(rows, summary, billed(rows), prices)
    return market(priced, currency="USD", summary=summary, by=by, notes=notes)


def summary_of(rows: pd.DataFrame, **values: list[str]) -> pd.DataFrame:
    """Return the summary of some runs, with what they did."""
    named = rows[["run", "rw"]].assign(block_bytes=4096, iodepth=8, numjobs=1, direct=True)
    named = named.assign(job=named["rw"], group=named["rw"], direction="read", import_folder=None)
    return named.assign(ioengine="libaio", **values)


SPREAD = (990.0, 1000.0, 1010.0)


def spread(flavor: str, factor: float = 1) -> list[tuple[str, float]]:
    """Return three repeats around 1,000 IOPS."""
    return [(flavor, factor * iops) for iops in SPREAD]


def test_cost_of_steady_performance() -> None:
    """10 a month for 1,000 IOPS of 4 KiB on 100 GiB, by hand."""
    (offer,) = offered(runs(*spread("a"))).offers
    assert (offer.name, offer.family, offer.monthly) == ("a", "x", (10, 10))
    assert offer.cost_per_1000_iops.estimate == pytest.approx(10, rel=1e-3)
    assert offer.cost_per_100_mb_per_s.estimate == pytest.approx(10 * 100 / 4.096, rel=1e-3)
    assert offer.cost_per_gib.estimate == pytest.approx(0.1)
    assert offer.iops.low < 1000 < offer.iops.high
    assert offer.cost_per_1000_iops.low < 10 < offer.cost_per_1000_iops.high


def test_ranks_mark_volumes_that_cannot_be_distinguished() -> None:
    """A and C cost 10 for 1,000 IOPS, B costs 20: two firsts and a third."""
    found = offered(runs(*spread("a"), *spread("b"), *spread("c", 4)))
    by_name = {offer.name: offer for offer in found.offers}
    assert {name: offer.rank for name, offer in by_name.items()} == {"a": 1, "c": 1, "b": 3}
    assert by_name["a"].indistinct == ("c",)
    assert by_name["c"].indistinct == ("a",)
    assert by_name["b"].indistinct == ()
    assert {name for name, offer in by_name.items() if offer.is_on_front} == {"a", "c"}
    assert found.offers[-1].name == "b"


def test_the_frontier_marks_volumes_not_significantly_faster() -> None:
    """B costs twice as much as A and is a hair faster, which noise may be; C is faster."""
    found = offered(runs(*spread("a"), *spread("b", 1.0001), *spread("c", 4)))
    by_name = {offer.name: offer for offer in found.offers}
    assert all(offer.is_on_front for offer in found.offers)
    slower = {name: offer.no_faster_than for name, offer in by_name.items()}
    assert slower == {"a": (), "b": ("a",), "c": ()}


def test_two_repeats_are_too_few_for_a_rank() -> None:
    """Ranks follow the estimates, offers are shown to differ in nothing; a row adds up."""
    found = offered(runs(("a", 1000), ("a", 3000), ("b", 4000), ("b", 3999)))
    assert [(offer.rank, offer.indistinct) for offer in found.offers] == [(1, ()), (2, ())]
    first = found.offers[0]
    assert math.isnan(first.cost_per_1000_iops.low)
    assert first.cost_per_1000_iops.estimate == pytest.approx(5)
    assert first.cost_per_100_mb_per_s.estimate == pytest.approx(5 * 100 / 4.096)
    texts = [column.show(first) for column in market_table(found).columns if column.show]
    assert {"a (*)", "too few repeats to compare"} <= {*texts}
    assert "repeats to compare (volbench run --repeat 5)" in market_table(found).notes[1]


def test_jobs_are_ranked_separately() -> None:
    """Who is cheap for small reads may be dear for large ones."""
    rows = pd.concat(
        [runs(*spread("a"), *spread("b")), runs(*spread("a"), *spread("b", 9), rw="randwrite")],
        ignore_index=True,
    )
    rows["run"] = [str(place) for place in range(len(rows))]
    found = offered(rows)
    assert [(offer.workload, offer.name, offer.rank) for offer in found.offers] == [
        ("randread 4k, queue depth 8", "a", 1),
        ("randread 4k, queue depth 8", "b", 2),
        ("randwrite 4k, queue depth 8", "b", 1),
        ("randwrite 4k, queue depth 8", "a", 2),
    ]


def test_families_are_compared() -> None:
    """Flavors of one family are one offer, whose cost is a range."""
    rows = runs(*spread("a"), *spread("b"), *spread("d"))
    families = offered(rows, PRICES, "family")
    found = {offer.name: offer for offer in families.offers}
    assert found["x"].monthly == (10, 20)
    assert found["x"].volumes == 2
    pooled = "x: one row for 2 volumes, host-a /dev/sdb and host-b /dev/sdb; to list each: --by"
    assert f"{pooled} family,volume" in families.notes
    assert list(found["y"].monthly) == [pytest.approx(73), pytest.approx(73)]


def test_volumes_without_a_price_are_kept_and_reported() -> None:
    """A flavor that the file does not know keeps its speed, without cost or rank."""
    rows = runs(*spread("a"), *spread("z"))
    found = offered(rows)
    last = found.offers[-1]
    assert (last.name, last.rank) == ("z", None)
    assert math.isnan(last.monthly[0])
    assert last.iops.estimate == pytest.approx(1000, rel=1e-2)
    assert "the price list has no flavor z" in found.notes
    assert not last.is_on_front


def test_volumes_are_paid_by_size_and_by_what_is_provisioned() -> None:
    """100 GiB at 0.08, and 3,000 IOPS above the 3,000 that are included, are 23 a month."""
    volume = Price(name="aws/gp3", per_gib_month=0.08, iops=Metered(monthly=0.005, included=3000))
    prices = Prices(path="p.yaml", currency="USD", volume_types={"aws/gp3": volume})
    rows = runs(("a", 6000))
    reported = {"0": Billing("", "aws/gp3", 100 * GIB, Limits(iops=6000, name="aws/gp3"))}
    priced, notes = priced_runs(rows, ONE, reported, prices)
    assert priced["monthly"].tolist() == [pytest.approx(23)]
    assert notes == ()
    faster = priced_runs(runs(("a", 6400)), ONE, reported, prices)[1]
    assert "1 of 1 runs were faster than the declared IOPS" in "".join(faster)
    nameless = {"0": Billing("", "aws/gp3", None, Limits())}
    priced, notes = priced_runs(rows, ONE, nameless, prices, size_bytes=50 * GIB)
    assert math.isnan(priced["monthly"][0])
    assert notes[-1].endswith("by provisioned IOPS, which is unknown: declare it in limits")
    assert "by size, which is unknown: set" in priced_runs(rows, ONE, nameless, prices)[1][0]
    only_size = Price(name="cheapco/basic", per_gib_month=0.05)
    for limits, said in ((Limits(iops=2000), 1), (Limits(iops=2000, name="aws/gp2"), 0)):
        for is_folder, cost in ((False, 5), (True, 2.5)):
            bill = {"0": Billing("", "cheapco/basic", 100 * GIB, limits, is_folder)}
            basic = Prices(path="", currency="USD", volume_types={"cheapco/basic": only_size})
            priced, notes = priced_runs(rows, ONE, bill, basic, size_bytes=50 * GIB)
            assert priced["monthly"].tolist() == [pytest.approx(cost)]
            unused = "--size is not used for a volume of known size: 100 GiB"
            assert notes[0] == ("folders are counted as 50 GiB" if is_folder else unused)
            unpriced = "no price in the list, so no cost here: 2,000 declared IOPS of cheapco/basic"
            assert [note for note in notes if note == unpriced] == [unpriced] * said
            assert notes[-1].startswith("1 of 1 runs were faster than the declared IOPS")


def test_only_steady_runs_count() -> None:
    """A Run that was not steady is left out and told, or counted when that is asked for."""
    rows = runs(("a", 1000), ("a", 9000))
    rows["steady"] = [True, False]
    summary = summary_of(rows)
    priced, _ = priced_runs(rows, summary, billed(rows), PRICES)
    steady = market(priced, currency="USD", summary=summary)
    assert steady.offers[0].runs == 1
    assert steady.offers[0].iops.estimate == pytest.approx(1000)
    assert steady.notes == (
        "1 of 2 runs were not shown to be steady and are not counted; --unsteady adds their means",
    )
    rows["host"] = ["host-a", "host-b"]
    assert offered(rows).notes[-1].endswith("means, and b in randread 4k, queue depth 8")
    both = market(priced, currency="USD", summary=summary, keep_unsteady=True).offers[0]
    assert (both.runs, both.unsteady) == (2, 1)
    rows["steady"] = False
    priced, _ = priced_runs(rows, summary, billed(rows), PRICES)
    with pytest.raises(InputError, match="none of 2 runs was steady"):
        market(priced, currency="USD", summary=summary)


def test_workloads_are_matched_across_job_names() -> None:
    """Imported jobs have a name for each configuration; equal ones compete all the same."""
    named = runs(*spread("a"), *spread("b"))
    jobs = ["fio-on-a-1", "fio-on-a-2", "fio-on-a-3", "b-4k", "b-4k", "b-4k"]
    summary = summary_of(named).assign(job=jobs, group=jobs, import_folder="results")
    priced, _ = priced_runs(named, summary, billed(named), PRICES)
    first, second = market(priced, currency="USD", summary=summary).offers
    assert first.workload == second.workload == "randread 4k, queue depth 8"
    assert (first.rank, second.rank, second.is_on_front) == (1, 2, False)
    engines = summary.assign(ioengine=["sync"] * 3 + ["psync"] * 3)  # no comparable ones
    found = market(priced, currency="USD", summary=engines)
    assert [offer.rank for offer in found.offers] == [None, None]
    assert "ranked: results differ in engine: sync in a, psync in b." in found.notes[-1]
    other = summary.assign(iodepth=[8] * 3 + [16] * 3)
    assert [offer.rank for offer in market(priced, currency="USD", summary=other).offers] == [1, 1]


def test_an_asked_rate_is_no_bargain() -> None:
    """What fio was asked to do has no rank, comes last, and is on no front."""
    rows = runs(*spread("a", 3), *spread("b"))
    summary = summary_of(rows, rate_iops=["3000"] * 3 + ["not set"] * 3)
    priced, _ = priced_runs(rows, summary, billed(rows), PRICES)
    found = market(priced, currency="USD", summary=summary)
    assert [(offer.name, offer.rank, offer.asked) for offer in found.offers] == [
        ("b", 1, ""),
        ("a", None, "rate_iops=3000"),
    ]
    assert [offer.is_on_front for offer in found.offers] == [True, False]
    by_rate = market(priced, currency="USD", summary=summary, by=("rate_iops",))
    assert [offer.name for offer in by_rate.offers] == ["not set", "3000"]


@pytest.mark.parametrize(
    ("costs", "gains", "front"),
    [
        ([1, 2, 3], [10, 20, 30], [True, True, True]),
        ([1, 2, 3], [30, 20, 10], [True, False, False]),
        ([2, 1, 2], [20, 20, 30], [False, True, True]),
        ([1, 1], [10, 10], [True, True]),
        ([1, math.nan, 2], [10, 99, math.nan], [True, False, False]),
        ([], [], []),
    ],
)
def test_only_undominated_volumes_are_on_the_pareto_frontier(
    costs: list[float], gains: list[float], front: list[bool]
) -> None:
    """Dear and slow is beaten, equal offers are not, and the unknown is never on the front."""
    assert on_frontier(costs, gains) == front


def frames(*, ends_steady: bool = True) -> dict[str, pd.DataFrame]:
    """Return the frames of a run that bursts at 3,000 IOPS and ends at 300, reads and writes."""
    both = [("read", 2), ("write", 1)]
    summary = pd.DataFrame(
        {
            "run": "1",
            "job": "mix",
            "host": "h",
            "volume": "/dev/sdb",
            "phase": "measured",
            "status": "finished",
            "direction": direction,
            "iops": 500.0 * share,
            "bw_bytes_per_s": 500.0 * share * 8192,
        }
        for direction, share in both
    )
    verdicts = pd.DataFrame(
        {
            "run": "1",
            "direction": direction,
            "steady_iops": 100.0 * share if ends_steady else math.nan,
        }
        for direction, share in both
    )
    return {"summary": summary, "verdicts": verdicts}


def test_the_steady_stretch_gives_the_rate() -> None:
    """A burst before it does not count; directions are added."""
    (row,) = performance(frames()).to_dict("records")
    assert (row["steady"], row["iops"]) == (True, 300)
    assert row["bw_bytes_per_s"] == pytest.approx(300 * 8192)
    (row,) = performance(frames(ends_steady=False)).to_dict("records")
    assert (row["steady"], row["iops"]) == (False, 1500)
