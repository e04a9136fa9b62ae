"""A real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.watched import chromium


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    """Return Chromium, without a window; no other module's tests meet its event loop."""
    # Without a GPU, an emulated one costs a fifth of the CPU that a page takes.
    args = ["--no-sandbox", "--disable-gpu", "--disable-gpu-compositing"]
    args += ["--disable-accelerated-2d-canvas"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=args)
        yield browser
        browser.close()
