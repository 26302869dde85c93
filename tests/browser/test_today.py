"""Today: the activity of the last day, and what needs a person, each with its button."""

from __future__ import annotations

import json

from playwright.sync_api import Route, expect
from tests.browser.console import Console, Project
from tests.stack.endpoints import Recorder
from tests.stack.project import until


def test_the_last_day_is_counted_and_drawn(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given two messages that one subscriber accepts and another refuses
    project.push_queue("orders", good=recorder.endpoint(200).url, bad=recorder.endpoint(500).url)
    project.post("orders", "one", "two")

    # When their records are written
    def counted() -> dict[str, int]:
        hours = project.ironmq_project("/activity?hours=2")["hours"]
        return {name: sum(each[name] for each in hours) for name in ("accepted", "delivered", "failed")}

    until(lambda: {*counted().values()} == {2}, 120, lambda: f"{counted()}")
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


def test_what_a_failing_endpoint_is_owed_is_counted(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    project.webhooks("POST", f"/app/{app}/endpoint", {"url": recorder.endpoint(500).url})
    project.webhooks("POST", f"/app/{app}/msg", {"eventType": "order.new", "payload": {}})
    console.open("today")
    failing = page.locator(".figures").get_by_text("Failing, to be retried").locator("xpath=..")
    expect(failing).to_contain_text("1")
    # And the number leads to it
    failing.get_by_role("link").click()
    expect(page.get_by_role("region", name="Messages of applications").get_by_role("link")).to_have_count(1)


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


def test_the_first_steps_tick_themselves_off_and_go(console: Console, project: Project, recorder: Recorder) -> None:
    # Given a project with nothing in it
    page = console.page
    console.open("today")
    steps = page.locator(".first-steps li")
    expect(steps).to_have_count(4)
    expect(page.locator(".first-steps li.done")).to_have_count(0)
    # When it has a queue and a delivered message, then these are ticked off
    project.push_queue("orders", shop=recorder.endpoint(200).url)
    project.post("orders", "one")
    # Perhaps in an hour that has just begun
    delivered = "/activity?hours=2"
    until(
        lambda: any(each["delivered"] for each in project.ironmq_project(delivered)["hours"]) or None,
        120,
        lambda: "not counted",
    )
    console.open("queues")
    console.open("today")
    expect(page.locator(".first-steps li.done")).to_have_count(3)
    # When the last one is done, then the card is gone, and stays away
    alert = {
        "name": "a",
        "measure": "given_up",
        "threshold": 1,
        "minutes": 60,
        "url": "https://a.example/",
        "format": "json",
    }
    project.ironmq_project("/alerts", {"alert": alert})
    for _ in range(2):
        console.open("queues")
        console.open("today")
        expect(
            page.get_by_role("region", name="Needs a person").or_(page.get_by_text("Nothing is failing."))
        ).to_be_visible()
        expect(steps).to_have_count(0)
    assert console.wrong == []


def test_a_setting_that_is_misspelt_is_told(console: Console, project: Project) -> None:
    project.webhooks("POST", "/app", {"name": "Acme"})
    page = console.page

    # As a newer page or a proxy may send what this hub does not read
    def misspelt(route: Route) -> None:
        asked = json.loads(route.request.post_data or "{}")
        asked["queue"]["serch_fields"] = asked["queue"].pop("search_fields")
        route.continue_(post_data=json.dumps(asked))

    page.route(
        "**/queues/orders", lambda route: misspelt(route) if route.request.method == "PUT" else route.continue_()
    )
    console.open("queues")
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=True).fill("orders")
    page.get_by_label("Type").select_option("pull")
    page.get_by_role("button", name="Create the queue").click()
    reported = page.get_by_role("status").filter(has_text="serch_fields is not read: did you mean search_fields?")
    expect(reported).to_be_visible()
    reported.get_by_role("button", name="Close").click()
    expect(reported).to_have_count(0)
    assert console.wrong == []
