"""Every page of the built documentation in a real browser: its header, its sidebar, its width on a phone.

``make docs`` builds the pages and then runs these tests; without built pages they are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BUILT = Path(os.environ.get("GINGHAM_DOCS_BUILT", Path(__file__).parents[2] / "docs" / "_build" / "html"))
PAGES = [
    page
    for page in sorted(BUILT.rglob("*.html"))
    if page.relative_to(BUILT).parts[0] not in ("_modules", "_static", "_downloads", "_sources")
    and page.name not in ("genindex.html", "search.html", "py-modindex.html", "sg_execution_times.html")
]
pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the documentation is not built (make docs): its pages were not opened"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MENU = """return [...document.querySelectorAll('.bd-header .navbar-header-items .navbar-nav > li')]
    .filter(item => item.offsetParent !== null).map(item => item.innerText.trim())"""
SIDEBAR = """return [...document.querySelectorAll('.bd-sidebar-primary a[href]')]
    .filter(link => link.offsetParent !== null).length"""
WIDTH = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """return [...document.querySelectorAll('article p, article dt, article h1')]
    .filter(part => !part.closest('table, .formula'))
    .filter(part => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(part => part.innerText).slice(0, 1)"""


def test_the_header_is_short_and_the_sidebar_filled_on_every_page(browser):
    browser.set_window_size(1360, 900)
    assert len(PAGES) > 100
    for page in PAGES:
        browser.get(page.as_uri())
        menu = browser.execute_script(MENU)
        assert menu == ["Start", "User guide", "Examples", "API", "Background"], (page.name, menu)
        assert browser.execute_script(SIDEBAR) >= 5, f"{page.name} has no sidebar"


def test_no_page_is_wider_than_a_phone(browser):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for page in PAGES:
            browser.get(page.as_uri())
            assert browser.execute_script(WIDTH) <= 1, f"{page.name} is wider than a phone"
            assert not browser.execute_script(CUT), f"text of {page.name} is cut on a phone"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
