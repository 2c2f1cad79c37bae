"""The report in a real browser: hover, search, tabs, no console errors, names shown as text.

Runs when chromium and its driver are installed (Debian: chromium, chromium-driver); says so when they are not.
"""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import gingham as gg
from gingham.report import summarize, write
from model_kinds import write_tables

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the browser tests did not run")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed: the browser tests did not run"
    ),
    # Sockets to the driver are closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

NASTY = {
    "script": "<script>document.title='broken'</script>",
    "quotes": "quotes \" and ' and `, commas, and\nnew\nlines",
    "arabic": "مرحبا بالعالم",
    "image": "</script><img src=x onerror=\"document.title='broken'\">",
}


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(1280, 860)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def planted_page(tmp_path_factory) -> Path:
    """1,000 × 2,000 items in 4 × 5 planted clusters; the first names are nasty."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 1000, 60_000), rng.integers(0, 2000, 60_000)
    rows[:1000], columns[:2000] = np.arange(1000), np.arange(2000)
    answers = rng.integers(1, 6, (4, 5))
    y = np.clip(answers[rows % 4, columns % 5] + rng.integers(-1, 2, 60_000), 1, 5)
    names = np.array([*NASTY.values(), *[f"viewer {k}" for k in range(996)]], dtype=object)
    titles = np.array([f"film {k}" for k in range(2000)], dtype=object)
    X = np.column_stack([names[rows], titles[columns]])
    model = gg.CoClusteringRegressor((4, 5), alphabet=range(1, 6), random_state=0, max_iter=30).fit(X, y)
    page = tmp_path_factory.mktemp("pages") / "planted.html"
    certificate = gg.certify(model, X, y)
    write(summarize(model.posterior_, model.sample(X, y), title="Planted", certificates={"rows": certificate}), page)
    return page


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory) -> Path:
    """The report of the demo's readable model, on a part of the digits."""
    demo = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "demo.py"))
    digits, truths = demo["load_images"]()
    digits = digits[:300]
    names = [f"no. {image:04d}, a {truth}" for image, truth in enumerate(truths[:300])]
    visible = np.random.default_rng(0).random(digits.shape) < 0.4
    X, y = demo["tuples"](digits, visible, names)
    model = gg.CoClusteringRegressor((10, 20), alphabet=range(17), beta=0.2, random_state=0, max_iter=30).fit(X, y)
    page = tmp_path_factory.mktemp("pages") / "demo.html"
    write(summarize(model.posterior_, model.sample(X, y), title="Digits", label="grey level"), page)
    return page


def open_page(browser, page: Path) -> None:
    browser.get(page.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "[role=tab]"))


def tab(browser, name: str) -> None:
    browser.find_element(By.ID, f"tab-{name}").click()
    assert browser.find_element(By.ID, f"panel-{name}").is_displayed()


def problems(browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.mark.parametrize("which", ["demo_page", "planted_page"])
def test_hover_search_and_tabs_without_errors(browser, which, request):
    open_page(browser, request.getfixturevalue(which))
    for name in ("clusters", "cells", "certificate", "map", "items", "overview", "checkerboard"):
        tab(browser, name)
    canvas = browser.find_element(By.CSS_SELECTOR, "#panel-checkerboard canvas")
    tip = browser.find_element(By.ID, "tip")

    def hovered(b):
        ActionChains(b).move_to_element_with_offset(canvas, 31, 17).move_to_element_with_offset(
            canvas, 30, 20
        ).perform()
        return "answers" in tip.text

    WebDriverWait(browser, 20).until(hovered)
    assert "observed" in tip.text
    tab(browser, "items")
    wanted = "no. 0007" if which == "demo_page" else "film 77"
    browser.find_element(By.ID, "query").send_keys(wanted)
    browser.find_element(By.CSS_SELECTOR, "#results button").click()
    card = browser.find_element(By.ID, "item").text
    assert wanted in card
    for part in ("Belongs to", "Most alike", "Highest predictions", "Prediction by cluster"):
        assert part in card
    assert problems(browser) == []


@pytest.mark.parametrize("kind", sorted(NASTY))
def test_nasty_names_are_shown_as_text(browser, planted_page, kind):
    open_page(browser, planted_page)
    tab(browser, "items")
    word = {"script": "<script>", "quotes": "commas", "arabic": "مرحبا", "image": "<img"}[kind]
    browser.find_element(By.ID, "query").send_keys(word)
    browser.find_element(By.CSS_SELECTOR, "#results button").click()
    shown = browser.execute_script("return document.querySelector('#item h3 bdi').textContent")
    assert shown == NASTY[kind]
    assert browser.title == "Planted"
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main script") == []
    assert problems(browser) == []


def test_keyboard_alone(browser, planted_page):
    open_page(browser, planted_page)
    browser.find_element(By.ID, "tab-overview").click()
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    assert browser.find_element(By.ID, "panel-checkerboard").is_displayed()
    browser.execute_script("document.querySelector('#panel-checkerboard canvas').focus()")
    ActionChains(browser).send_keys("+", Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    assert "answers" in browser.find_element(By.ID, "readout").text


def test_phone_and_dark_fit_the_screen(browser, planted_page):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        open_page(browser, planted_page)
        for name in ("overview", "checkerboard", "clusters", "cells", "certificate", "map", "items"):
            browser.execute_script("arguments[0].click()", browser.find_element(By.ID, f"tab-{name}"))
            wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, name
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert max(int(v) for v in background[4:-1].split(",")) < 80
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert problems(browser) == []


@pytest.fixture(scope="module")
def pages_of_kinds(tmp_path_factory) -> dict[str, Path]:
    """The page of every kind of model, made on the command line; item names are nasty where they can be."""
    from gingham.cli.app import run

    folder = tmp_path_factory.mktemp("kinds")
    pages = {}
    for kind, case in write_tables(folder).items():
        if kind == "ranking":  # has a page of its own, without scripts: gingham recommend --page
            continue
        model, pages[kind] = folder / f"{kind}.gingham", folder / f"{kind}.html"
        assert run(case.fit(model)) == 0
        assert run(["report", str(model), str(case.file), "--out", str(pages[kind])]) == 0
    return pages


def test_the_page_of_every_kind(browser, pages_of_kinds):
    for kind, page in pages_of_kinds.items():
        open_page(browser, page)
        for name in ("clusters", "cells", "certificate", "map", "overview", "checkerboard", "items"):
            tab(browser, name)
            assert "null" not in browser.find_element(By.ID, f"panel-{name}").text, (kind, name)
            assert "undefined" not in browser.find_element(By.ID, f"panel-{name}").text, (kind, name)
        name = browser.execute_script("return data.modes[0].items.names[2]")
        browser.find_element(By.ID, "query").send_keys(name)
        browser.find_element(By.CSS_SELECTOR, "#results button").click()
        card = browser.find_element(By.ID, "item").text
        assert "Belongs to" in card, kind
        assert "Most alike" in card, kind
        assert problems(browser) == [], kind
