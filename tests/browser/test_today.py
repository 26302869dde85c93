"""Today: the activity of the last day, and what needs a person, each with its button."""

from __future__ import annotations

import time

from playwright.sync_api import expect
from tests.browser.console import Console
from tests.stack.endpoints import Recorder


def test_the_last_day_is_counted_and_drawn(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given two messages that one subscriber accepts and another refuses
    project.push_queue("orders", good=recorder.endpoint(200).url, bad=recorder.endpoint(500).url)
    project.post("orders", "one", "two")
    # When their records are written
    for _ in range(240):
        counted = project.ironmq_project("/activity?hours=2")["hours"]
        if sum(each["failed"] for each in counted) == 2:
            break
        time.sleep(0.5)
    # Then the page counts them, charts the day, and shows what has waited longest
    console.open("today")
    figures = page.locator(".figures")
    expect(figures.get_by_text("Accepted, last day").locator("xpath=..")).to_contain_text("2")
    expect(page.get_by_role("img", name="2 accepted, 2 delivered, 2 attempts failed")).to_be_visible()
    expect(figures.get_by_text("Oldest waiting").locator("xpath=..").get_by_role("link")).to_contain_text("ago")
    # And each number leads to what it counts
    figures.get_by_text("Failing, to be retried").locator("xpath=..").get_by_role("link").click()
    expect(page.get_by_role("region", name="Messages of queues").get_by_role("link")).to_have_count(2)
    # And the charts tell how long answers took, of all, by subscriber and of one, over a time that a person chooses
    console.open("charts")
    expect(page.get_by_role("img", name="the project, the last 24 hours: 2 delivered")).to_be_visible()
    expect(page.get_by_role("img", name="the project, the last 24 hours: half of all attempts within")).to_be_visible()
    page.get_by_label("Period").select_option("7 days")
    expect(page.get_by_role("img", name="the last 168 hours: 2 delivered")).to_be_visible()
    page.get_by_label("Queue").fill("orders")
    page.get_by_role("button", name="Show").click()
    table = page.get_by_role("region", name="By subscriber")
    expect(table.get_by_role("row", name="bad")).to_contain_text("100 %")
    table.get_by_role("link", name="good").click()
    expect(
        page.get_by_role("img", name="good of orders, the last 168 hours: 2 delivered, 0 attempts failed")
    ).to_be_visible()


def test_an_endpoint_that_is_paused_is_resumed_from_here(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    target = {"url": recorder.endpoint(200).url, "disabled": True}
    endpoint = project.webhooks("POST", f"/app/{app}/endpoint", target)["id"]
    console.open("today")
    table = page.get_by_role("region", name="Endpoints that get no messages")
    expect(table.get_by_role("link", name="acme")).to_be_visible()
    table.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It gets messages again.")).to_be_visible()
    expect(table).to_have_count(0)
    assert project.webhooks("GET", f"/app/{app}/endpoint/{endpoint}")["disabled"] is False
