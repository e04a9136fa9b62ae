"""Cost of a report: CPU and memory to make, size, and time until a browser has drawn it.

Issue 11 asks for at most 5 s of CPU for eight runs (--jobs 4 --repeats 2 --seconds 20), and at most
15 s for 200 runs (the default).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.made_up import Size, make_campaign
from tests.browser.watched import chromium

MAKE = "from volbench.cli.main import main; main()"


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


def chart_s(page: Path) -> float:
    """Return the seconds from scrolling to the first chart until it is drawn."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        started = time.perf_counter()
        tab.locator("figure").first.scroll_into_view_if_needed()
        tab.locator(".panel[data-drawn]").first.wait_for()
        taken = time.perf_counter() - started
        browser.close()
    return taken


def main() -> None:
    """Make a campaign and its report, and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        size = Size(jobs=asked.jobs, repeats=asked.repeats, seconds=asked.seconds)
        campaign = make_campaign(Path(place), size=size).root
        for words in ("reading and judging (show)", "the whole report"):
            verb = "show" if "show" in words else "report"
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            started = time.perf_counter()
            subprocess.run(  # noqa: S603 - fixed above
                [sys.executable, "-c", MAKE, verb, str(campaign)],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            wall_s = time.perf_counter() - started
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            peak_mb = after.ru_maxrss / 1000
            print(f"{words:28} {wall_s:6.1f} s, CPU {cpu_s:6.1f} s, peak {peak_mb:5.0f} MB")
        page = campaign / "report" / "index.html"
        print(f"{'size':28} {page.stat().st_size / 1e6:6.2f} MB")
        taken = opened_s(page, rounds=asked.rounds)
        print(f"{'opened':28} median {taken[len(taken) // 2]:.2f} s, at most {taken[-1]:.2f} s")
        print(f"{'first chart after scrolling':28} {chart_s(page):6.2f} s")


if __name__ == "__main__":
    main()
