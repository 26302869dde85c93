"""The delivery report's own page in a browser: on a desktop and on a phone, in light and in dark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.console import AXE, DESKTOP, PHONE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report's page, generated in the job's environment, which can draw its charts."""
    environment = (sys.executable, "local/environment.py", ".venv-glue", "requirements/glue.txt")
    subprocess.run(environment, cwd=ROOT, check=True, capture_output=True)
    made = (".venv-glue/bin/python", "-m", "tests.glue.pages")
    path = {**os.environ, "PYTHONPATH": "layers/pushhub:."}
    page = subprocess.run(made, cwd=ROOT, env=path, check=True, capture_output=True, text=True).stdout
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


@pytest.fixture(params=[("desktop", "light"), ("phone", "light"), ("phone", "dark")], ids="-".join)
def page(request: pytest.FixtureRequest, chromium: Browser, report: str) -> Iterator[Page]:
    """The report in a tab."""
    size, scheme = request.param
    context = chromium.new_context(viewport=PHONE if size == "phone" else DESKTOP, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(report)
    yield opened
    context.close()


def test_the_report_is_read_without_scrolling_the_page_sideways_and_by_a_screen_reader(page: Page) -> None:
    # Given a report with long names and charts
    assert page.locator("svg").count() >= 2
    # Then the page is no wider than the screen, and no text is cut off at its edge
    width = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width[0] <= width[1] + 1, width
    wide = page.evaluate(
        """() => [...document.querySelectorAll("h1, h2, h3, p, svg")]
             .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
             .map((each) => each.textContent.slice(0, 80))"""
    )
    assert wide == []
    # And axe finds nothing wrong with it
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [f"{each['id']}: {json.dumps([node['target'] for node in each['nodes']])}" for each in found] == []
