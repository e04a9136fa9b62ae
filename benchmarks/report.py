"""Cost of a report: CPU and memory to make, size, and time until a browser has drawn it.

Eight runs of 20 seconds, and 200 runs of 300 seconds: reads and writes with device samples. With
``--imported``, imported results with logs of 60 seconds, as in `scale.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measured import Figure, compile_sources, cost_of, print_figures, volbench
from playwright.sync_api import sync_playwright
from scale import make_results

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.made_up_campaign import Size, make_campaign
from tests.browser.watched import chromium

SMALL = Size(jobs=4, repeats=2, seconds=20)
LARGE = Size(jobs=40, repeats=5, seconds=300)
IMPORTED = {50: (3.0, 5), 343: (10.0, 8), 1000: (20.0, 12), 3450: (60.0, 25)}
"""Number of imported runs to the maximum of CPU seconds, and of MB of the page."""
TARGET_PEAK_MB = 500
TARGET_OPEN_S = 2


def opened_s(page: Path, *, rounds: int) -> list[float]:
    """Return the seconds from asking for a page until it is laid out and can be used."""
    taken = []
    with sync_playwright() as playwright:
        for _ in range(rounds):
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            started = time.perf_counter()
            tab.goto(page.as_uri())
            tab.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            taken.append(time.perf_counter() - started)
            browser.close()
    return sorted(taken)


def figures_of(
    campaign: Path, *, runs: int, target_s: float, browser_rounds: int, page_mb: float = 10
) -> Iterator[Figure]:
    """Yield the cost of a campaign's report, and what a browser takes to show it."""
    judged = cost_of(volbench("show", campaign))
    yield Figure(f"reading and judging {runs} runs (`show`, first call)", judged.cpu_s, "s")
    cost = cost_of(volbench("report", campaign))
    note = f"wall {cost.wall_s:.1f} s"
    yield Figure(f"`report` of {runs} runs", cost.cpu_s, "s", target_s, note)
    yield Figure(f"`report` of {runs} runs, memory", cost.peak_mb, "MB", TARGET_PEAK_MB)
    page = campaign / "report" / "index.html"
    yield Figure(f"page of {runs} runs", page.stat().st_size / 1e6, "MB", page_mb)
    if browser_rounds:
        taken = opened_s(page, rounds=browser_rounds)
        note = f"at most {taken[-1]:.2f} s"
        yield Figure("opened in Chromium", taken[len(taken) // 2], "s", TARGET_OPEN_S, note)


def main() -> int:
    """Make campaigns of 8 and 200 runs and their reports; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--browser", type=int, default=0, metavar="N", help="open each page N times"
    )
    parser.add_argument(
        "--imported", type=int, nargs="*", default=[], metavar="RUNS", choices=[*IMPORTED]
    )
    given = parser.parse_args()
    compile_sources()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as place:
        for size, target_s in ((SMALL, 5.0), (LARGE, 15.0)):
            runs = size.jobs * size.repeats
            campaign = make_campaign(Path(place), name=f"made-up-{runs}", size=size).root
            figures += figures_of(
                campaign, runs=runs, target_s=target_s, browser_rounds=given.browser
            )
        for runs in given.imported:
            results, campaign = Path(place) / f"results{runs}", Path(place) / f"campaign{runs}"
            make_results(results, runs=runs)
            labels = ("--labels", "{host}/{repeat}/{job}")
            cost_of(volbench("import", results, *labels, "--output", campaign))
            target_s, page_mb = IMPORTED[runs]
            figures += figures_of(
                campaign,
                runs=runs,
                target_s=target_s,
                browser_rounds=given.browser,
                page_mb=page_mb,
            )
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
