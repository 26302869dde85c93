"""Names chosen by tenants break neither the report nor its readers, and a failure in drawing only costs its part."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.page import charts
from glue_jobs.delivery_report.page import rendering as page
from glue_jobs.delivery_report.page.results import Results
from glue_jobs.delivery_report.page.wording import shortened
from glue_jobs.delivery_report.storage.files import write_text
from pyspark.sql import SparkSession
from tests.glue.lives import HOUR, NOON, Lives
from tests.glue.runs import asked

HOSTILE = (
    "$\\foo$",
    "$x^{$",
    "\\frac{1}{0}",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]><svg onload=alert(1)>",
    "&lt;b&gt;",
    '=HYPERLINK("http://x","y")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "{0} %s %n ${jndi:ldap://x}",
    "_private",
    "\N{RIGHT-TO-LEFT OVERRIDE}sredro",
    "注文 \N{FACE WITH TEARS OF JOY}",
    "w" * 255,
)

HARMLESS = frozenset(
    re.findall(
        r"[\w:]+",
        """
        a b bdi body br code details div footer h1 h2 h3 head html main meta nav p span style
        summary svg table title td th tr
        path text
        """,
    )
)


class Elements(HTMLParser):
    """The elements of a page and their attributes, as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def hostile_lives() -> list[Lives]:
    """A queue and a subscriber of every name, all failing alike, in more than one hour."""
    made = []
    for n, name in enumerate(HOSTILE * 2):
        lives = Lives(project=f"p{n}", queue=name)
        for k in range(22):
            at = NOON + HOUR * (k % 2) + k
            delivery = lives.post(at, (f"s{n}",))[0]
            lives.attempt(lives.attempt(delivery, 503, name=name), 500, name=name)
        made.append(lives)
    return made


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("hostile")
    whole = Lives()
    for lives in hostile_lives():
        whole.records += lives.records
    whole.write(folder / "records")
    return job.run(spark, asked(folder, now="2026-11-18T16:00:00"))


def html_of(made: Results) -> str:
    return Path(made.page.removeprefix("file://")).read_text(encoding="utf-8")


def test_names_are_text_all_over_the_page(hostile: Results) -> None:
    html = html_of(hostile)
    seen = Elements(html)
    assert seen.tags <= HARMLESS
    assert not [each for each in seen.attributes if each.startswith("on")]
    assert "missing" not in re.findall(r'class="(\w+)"', html)
    for name in HOSTILE:
        assert shortened(name, 32) in "".join(seen.words), name
    # Nothing reverses the direction of the text beside it
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in html


def test_names_come_out_of_the_tables_as_they_went_in(spark: SparkSession, hostile: Results) -> None:
    folder = Path(hostile.path.removeprefix("file://"))
    listed = json.loads((folder / "queues.json").read_text(encoding="utf-8"))
    assert {row["queue"] for row in listed} == set(HOSTILE)
    stored = spark.read.parquet(f"{hostile.arguments.output}/curated/deliveries").select("queue").distinct().collect()
    assert {row["queue"] for row in stored} == set(HOSTILE)
    # A spreadsheet would take a name for a formula, but there is no file for one to open
    assert {each.suffix for each in folder.rglob("*") if each.is_file()} == {".json", ".html"}


def test_equally_sick_subscribers_come_in_the_order_of_their_names(hostile: Results) -> None:
    # All fail all attempts, so the one that is listed is also drawn
    found = [(row["project"], row["queue"], row["subscriber_id"]) for row in hostile.rows["sickest"]]
    everyone = sorted((lives.project, lives.queue, f"s{n}") for n, lives in enumerate(hostile_lives()))
    assert found == everyone[: len(found)]


def failing(*_: object) -> str:
    """A chart that quotes a name in its error.

    Raises:
        ValueError: Always.
    """
    raise ValueError("queue 'x'\nConserved: everything")


def test_a_part_that_fails_is_missing_and_nothing_else(
    hostile: Results, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a chart that fails, and a table that is not there
    whole = page.render(hostile)
    monkeypatch.setattr(charts, "fates_by_hour", failing)
    rows = {name: each for name, each in hostile.rows.items() if name != "attempts_needed"}
    with caplog.at_level(logging.INFO):
        replace(hostile, rows=rows).publish(page.render)
    # Then the page lacks these two parts, and says so
    html = html_of(hostile)
    assert "Not drawn: Traffic and speed (ValueError)" in html
    assert "Not drawn: Does another try help? (KeyError)" in html
    assert html.count("<h2") == whole.count("<h2")
    latest = json.loads((Path(hostile.path.removeprefix("file://")).parent / "latest.json").read_text())
    assert latest["page"] == hostile.page
    # And no line of the log quotes the name
    assert "everything" not in caplog.text
    assert "Not drawn: Traffic and speed (ValueError)" in caplog.text


def test_a_page_that_cannot_be_made_leaves_no_older_one(hostile: Results) -> None:
    hostile.publish(page.render)
    hostile.publish(failing)
    assert not Path(hostile.page.removeprefix("file://")).exists()
    latest = json.loads((Path(hostile.path.removeprefix("file://")).parent / "latest.json").read_text())
    assert (latest["page"], latest["verdict"]["sentence"]) == (None, hostile.verdict["sentence"])


def test_the_newest_report_names_no_page_that_is_not_there(hostile: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *rest: Any) -> None:
        if path.endswith(".html"):
            raise OSError
        write_text(path, *rest)

    monkeypatch.setattr("glue_jobs.delivery_report.page.results.write_text", refuse)
    hostile.publish(page.render)
    latest = json.loads((Path(hostile.path.removeprefix("file://")).parent / "latest.json").read_text())
    assert latest["page"] is None
    assert latest["verdict"]["sentence"] == hostile.verdict["sentence"]
