"""A support person at three in the morning: "order 4711 never arrived"."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.console import DESKTOP, PHONE, Console, Project, new_project, tab
from tests.stack.endpoints import Endpoint, Recorder
from tests.stack.project import until
from tests.stack.running import RunningStack

QUEUES = 40
MESSAGES = 400
"""Fifty times as many are found as quickly (docs/figures/search.md), and take minutes to post."""
MOST_CLICKS = 8


@pytest.fixture(scope="module")
def crowd(stack: RunningStack) -> Iterator[tuple[Project, Endpoint, Endpoint, str]]:
    """A project with 40 queues, three protocols and 400 messages, one of which was given up at one of two
    subscribers of its queue: the project, the subscriber that has it, the one that gave it up, and its id.
    """
    project = new_project(stack)
    with Recorder() as recorder, ThreadPoolExecutor(8) as threads:
        good, down = recorder.endpoint(200), recorder.endpoint(500, 503, 404, 200)
        subscribers = [{"name": "warehouse", "url": good.url}, {"name": "billing", "url": down.url}]
        push = {"subscribers": subscribers, "retries": 2, "retries_delay": 3, "error_queue": "failed"}
        orders = {"type": "multicast", "push": push, "search_fields": ["order.number"]}
        project.ironmq("PUT", "/orders", {"queue": orders})
        (lost,) = project.post("orders", json.dumps({"order": {"number": 4711}}))

        def fill(number: int) -> None:
            name, each = f"other-{number:03d}", MESSAGES // QUEUES
            project.ironmq("PUT", f"/{name}", {"queue": {"type": "pull", "search_fields": ["order.number"]}})
            first = 10_000 + number * each
            project.post(name, *[json.dumps({"order": {"number": first + place}}) for place in range(each)])

        list(threads.map(fill, range(QUEUES - 1)))
        app = project.webhooks("POST", "/app", {"name": "acme", "searchFields": ["number"]})["id"]
        project.webhooks("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"number": 4712}})
        project.hub("POST", "/messages", {"message": "order:new", "payload": {"order": {"number": "4713"}}})
        given_up = "/orders/deliveries?state=exhausted"
        until(lambda: project.ironmq("GET", given_up)["deliveries"] or None, 120, lambda: "it was not given up")
        # What is accepted is found when it has been recorded, and its error queue accepts what was given up last.
        until(lambda: len(project.find("4711")) == 2, 120, lambda: "its error queue's copy is not found")
        until(lambda: project.find("4712") and project.find("4713"), 120, lambda: "the others are not found")
        yield project, good, down, lost


def counted_clicks(console: Console) -> list[str]:
    """What is clicked from now on."""
    clicks: list[str] = []
    console.page.expose_function("clicked", lambda text: clicks.append(text))  # noqa: PLW0108 (Playwright marks it)
    reported = "(event) => event.isTrusted && event.detail && clicked(event.target.textContent)"
    console.page.evaluate(f"addEventListener('click', {reported}, true)")
    return clicks


def test_an_order_that_never_arrived_is_found_understood_and_sent_again_to_one_subscriber_alone(
    stack: RunningStack, chromium: Browser, crowd: tuple[Project, Endpoint, Endpoint, str]
) -> None:
    project, good, down, lost = crowd
    with tab(stack, chromium, project, viewport=DESKTOP, color_scheme="dark") as console:
        page = console.page
        console.open("reports")
        clicks = counted_clicks(console)
        # When the number is typed, then the one message is found among all queues, with what became of it, and what its
        # error queue says of it
        page.get_by_role("searchbox").click()
        page.keyboard.type("4711")
        page.keyboard.press("Enter")
        found = page.get_by_role("region", name="Found")
        expect(found.get_by_role("row").nth(1)).to_contain_text("billing exhausted")
        expect(found.get_by_role("row").nth(2)).to_contain_text("Queue failed")
        expect(found.get_by_role("row")).to_have_count(3)
        assert console.violations() == []
        # And its page shows every attempt at each subscriber
        found.get_by_role("link", name=lost).click()
        life = page.get_by_role("list", name="History")
        for status in (500, 503, 404):
            expect(life.get_by_text(f"billing: HTTP {status}")).to_be_visible()
        expect(life.get_by_text("warehouse: HTTP 200")).to_be_visible()
        # When it is sent again, with a button that is in sight on a small screen, then to that subscriber alone
        page.set_viewport_size({"width": 1024, "height": 768})
        edge = page.get_by_role("button", name="Send again").bounding_box()
        assert edge is not None
        assert edge["x"] + edge["width"] <= 1024
        page.get_by_role("button", name="Send again").click()
        page.get_by_role("dialog").get_by_role("button", name="Send again").click()
        expect(page.get_by_role("img", name="billing: delivered")).to_be_visible()
        assert (len(down.wait(4)), len(good.pushes)) == (4, 1)
        # And the subscriber is paused and resumed
        page.get_by_role("link", name="billing").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.get_by_text("billing is paused.")).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("billing is resumed.")).to_be_visible()
        assert len(clicks) <= MOST_CLICKS, clicks


def test_the_same_on_a_phone_with_a_hub_that_is_busy_for_a_moment(
    stack: RunningStack, chromium: Browser, crowd: tuple[Project, Endpoint, Endpoint, str]
) -> None:
    project, _, _, lost = crowd
    with tab(stack, chromium, project, viewport=PHONE, has_touch=True, is_mobile=True) as console:
        page = console.page
        console.open("reports")
        left = [503, 503]
        page.route(
            "**/search?*",
            lambda route: route.fulfill(status=left.pop(), body="{}") if left else route.continue_(),
        )
        # When the search is reached and made by keyboard
        page.get_by_role("button", name="Menu").press("Enter")
        page.get_by_role("searchbox").focus()
        page.keyboard.type("4711")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Found").get_by_role("link", name=lost)).to_be_visible()
        assert (left, console.too_wide(), console.violations()) == ([], False, [])
        # And an order that went to an application is found in the same way
        page.goto(f"{console.link('search')}?id=4712")
        expect(page.get_by_role("region", name="Found")).to_contain_text("Application acme")


def test_what_happened_is_found_in_the_records_of_the_past(
    stack: RunningStack, chromium: Browser, crowd: tuple[Project, Endpoint, Endpoint, str]
) -> None:
    project, _, _, lost = crowd
    found = until_recorded(project, lost)
    assert found
    with tab(stack, chromium, project, viewport=PHONE, color_scheme="dark") as console:
        page = console.page
        console.open("search")
        page.goto(f"{console.link('search')}?id={lost}")
        # When the records are searched, by keyboard, then each attempt is there, with a link to its message
        page.get_by_role("button", name="Search the past").press("Enter")
        past = page.get_by_role("region", name="In the past")
        expect(past.get_by_text("HTTP 404").first).to_be_visible()
        expect(past.get_by_text("exhausted").first).to_be_visible()
        expect(past.get_by_role("link", name=lost).first).to_be_visible()
        assert (console.too_wide(), console.violations()) == (False, [])
        # And where nothing fits, that is said
        page.goto(f"{console.link('search')}?subscriber=nobody")
        page.get_by_role("button", name="Search the past").click()
        expect(page.get_by_text("No record of that time fits.")).to_be_visible()


def until_recorded(project: Project, lost: str) -> Any:
    """The events of a message in the records, once it is told there that it was given up."""

    def given_up() -> Any:
        # A search reads what is recorded when it begins.
        search = project.ironmq_project("/past", {"message_id": lost, "state": "exhausted"})["id"]
        return until(lambda: ended(search), 120, lambda: "the search does not end")["found"]

    def ended(search: str) -> Any:
        answer = project.ironmq_project(f"/past/{search}")
        return answer if answer["found"] or answer["state"] != "running" else None

    return until(given_up, 120, lambda: "it was not recorded")


def test_what_no_field_names_is_found_by_words_of_it(
    stack: RunningStack, chromium: Browser, crowd: tuple[Project, Endpoint, Endpoint, str]
) -> None:
    project, _, _, _ = crowd
    project.ironmq("PUT", "/notes", {"queue": {"type": "pull"}})
    (noted,) = project.post("notes", "ask Anna about parcel 99")
    with tab(stack, chromium, project, viewport=DESKTOP) as console:
        page = console.page
        console.open("search")
        page.get_by_label("Id or value").fill("parcel 98")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.get_by_text("No message of the last week has this")).to_be_visible()
        # Streams are read every few seconds.
        until(lambda: project.find("parcel 99") or None, 120, lambda: "it was not found")
        page.get_by_label("Id or value").fill("parcel 99")
        page.get_by_role("button", name="Search", exact=True).click()
        found = page.get_by_role("region", name="Found")
        expect(found.get_by_role("link", name=noted)).to_be_visible()
        expect(found).to_contain_text("ask Anna about parcel 99")


def test_fields_are_named_in_the_settings_and_shown_in_the_lists(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    project.push_queue("orders", billing=recorder.endpoint(500).url)
    console.open("queues", "orders", "settings")
    page.get_by_label("Fields to find messages by").fill("order.number")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert project.ironmq("GET", "/orders")["queue"]["search_fields"] == ["order.number"]
    time.sleep(3)
    project.post("orders", json.dumps({"order": {"number": "A-1"}}))
    until(lambda: project.ironmq("GET", "/orders")["queue"]["size"], 120, lambda: "it did not fail")
    console.open("queues", "orders")
    table = page.get_by_role("region", name="Messages")
    expect(table.get_by_role("columnheader", name="order.number")).to_be_visible()
    expect(table.get_by_role("cell", name="A-1", exact=True)).to_be_visible()
