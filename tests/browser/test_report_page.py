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


CUT = """() => {
  const overflow = (each) => getComputedStyle(each).overflowX;
  const scrolls = (each) => each && (/auto|scroll/.test(overflow(each)) || scrolls(each.parentElement));
  const written = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const outside = (box) => box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
  const hidden = (each) => /hidden|clip/.test(overflow(each)) && each.scrollWidth > each.clientWidth + 1;
  return [...document.querySelectorAll("body *")]
    .filter((each) => hidden(each) ||
      ((written(each) || each.matches("svg")) && outside(each.getBoundingClientRect()) && !scrolls(each)))
    .map((each) => `${each.tagName}: ${each.textContent.slice(0, 80)}`);
}"""
"""What is written beyond the edges of the screen, where nobody can scroll to it, or hidden by what it stands in."""

SPOILED = """() => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter((each) => each.textContent.trim())
    .map((each) => [each.textContent, each.getBoundingClientRect()]);
  const over = ([, a], [, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  return texts.flatMap((one, place) => [
    ...(one[1].right > frame.right + 1 || one[1].left < frame.left - 1 ? [`cut: ${one[0]}`] : []),
    ...texts.slice(place + 1).filter((other) => over(one, other)).map((other) => `${one[0]} over ${other[0]}`),
  ]);
})"""
"""Texts of charts that leave the chart, or that lie over another."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report's page, generated in the job's environment, which can draw its charts."""
    environment = (sys.executable, "local/environment.py", ".venv-glue", "requirements/glue.txt")
    subprocess.run(environment, cwd=ROOT, check=True, capture_output=True)
    command = (".venv-glue/bin/python", "-m", "tests.glue.pages")
    path = {**os.environ, "PYTHONPATH": "layers/pushhub:."}
    page = subprocess.run(command, cwd=ROOT, env=path, check=True, capture_output=True, text=True).stdout
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
    assert page.locator("svg").count() == 1
    # Then the page is no wider than the screen, and no text is cut off at its edge
    width = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width[0] <= width[1] + 1, width
    assert page.evaluate(CUT) == []
    # And in no chart is a text cut off or printed over another
    assert page.evaluate(SPOILED) == []
    # And axe finds nothing wrong with it
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [f"{each['id']}: {json.dumps([node['target'] for node in each['nodes']])}" for each in found] == []
