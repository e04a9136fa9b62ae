"""A page in a real browser, watched for errors and for requests that leave it."""

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

WITHIN = ("file:", "data:", "blob:")
_TIMEOUT_MS = 180_000
"""Of every wait: beside other tests, all charts of a page take half a minute to be redrawn."""


def chromium() -> str:
    """Return the browser of the system."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.fail("there is no chromium; scripts/setup dev installs it")
    return found


class Watched:
    """A page, with everything that went wrong in it.

    Attributes:
        page: Playwright's.
        faults: errors on the console, uncaught ones, and requests that leave the file.
    """

    def __init__(self, browser: Browser, file: Path, **context: Any) -> None:  # noqa: ANN401 - Playwright's own options
        self._context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **context}
        )
        self._context.set_default_timeout(_TIMEOUT_MS)
        self.page = self._context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("request", self._request)
        self.page.goto(file.as_uri())

    def close(self) -> None:
        """Close the page."""
        self._context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(WITHIN):
            self.faults.append(f"request: {request.url}")


def axe(page: Page) -> list[str]:
    """Return what axe-core finds wrong, contrast included."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 20
    return [
        f"{violation['id']}: {violation['nodes'][0]['html']}" for violation in found["violations"]
    ]
