"""A fresh project with nothing set up: an order is found by its number and sent again, and everything is listed."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Request, Route, expect
from tests.browser.console import PHONE, Console
from tests.stack.endpoints import Recorder
from tests.stack.project import until

MOST_REQUESTS = 6


def asked_for(console: Console) -> set[str]:
    """Requests to the APIs from now on: what is asked again as time goes on, or for more on a busy machine, counts
    once.
    """
    asked: set[str] = set()

    def note(request: Request) -> None:
        if any(each in request.url for each in ("/3/", "/api/")):
            asked.add(re.sub("after=[^&]*", "", request.url))

    console.page.on("request", note)
    return asked


def test_an_order_is_found_by_its_number_and_sent_again_with_three_clicks(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given a message that one subscriber took and the other gave up, and nothing that anybody named
    bad = recorder.endpoint(500, 200)
    push = {
        "subscribers": [{"name": "good", "url": recorder.endpoint(200).url}, {"name": "bad", "url": bad.url}],
        "retries": 0,
    }
    project.ironmq("PUT", "/orders", {"queue": {"push": push}})
    (message,) = project.post("orders", json.dumps({"order": {"number": 4711}}))
    bad.wait()
    (other,) = project.post("orders", json.dumps({"order": {"number": 4712}}))

    def given_up() -> Any:
        found = project.find("4711")
        return found if found and found[0]["state"] == "exhausted" else None

    until(given_up, 120, lambda: "it was not found as given up")
    # When its number is typed
    console.open("reports")
    page.get_by_role("searchbox").click()
    asked = asked_for(console)
    page.keyboard.type("4711")
    page.keyboard.press("Enter")
    found = page.get_by_role("region", name="Found")
    expect(found.get_by_role("link", name=message)).to_be_visible()
    expect(found).to_contain_text("order.number")
    expect(found).to_contain_text("bad exhausted")
    expect(found).to_contain_text('{"order": {"number": 4711}}')
    assert len(asked) <= MOST_REQUESTS, asked
    assert console.violations() == []
    # Then it is sent again with two more clicks, to the one that gave it up
    found.get_by_role("button", name="Send again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Sent again: 1 delivery.")).to_be_visible()
    bad.wait(3)
    # And both are listed, the delivered one, too, and selected by their state
    asked = asked_for(console)
    console.open("events")
    table = page.get_by_role("region", name="Messages")
    expect(table.get_by_role("link", name=other)).to_be_visible()
    expect(table.get_by_role("link", name=message)).to_be_visible()
    assert len(asked) <= MOST_REQUESTS, asked
    assert (console.too_wide(), console.violations()) == (False, [])
    page.get_by_label("Name or id").fill("nothing")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No such message in the last week.")).to_be_visible()


READ_BACK_TO = "2026-01-02T03:04:05.000Z"
HIT: dict[str, Any] = {
    "kind": "queue",
    "queue": "orders",
    "message_id": "7600000000000000001",
    "field": "number",
    "type": None,
    "excerpt": "4711",
    "accepted_at": READ_BACK_TO,
    "state": "queued",
    "deliveries": [],
}


def answered_in_parts(console: Console, parts: int, found: list[Any], held: int = 0) -> list[str]:
    """Searches by value are answered as by a hub that reads little in each request: the last of some parts says what is
    found, and one may never be answered. Returns where each request wants to go on.
    """
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(parse_qs(urlsplit(route.request.url).query).get("after", [""])[0])
        if len(asked) == held:
            return
        last = len(asked) == parts
        route.fulfill(
            json={
                "found": found if last else [],
                "after": None if last else f"~bodies#20455#{len(asked)}",
                "read_back_to": None if last else READ_BACK_TO,
            }
        )

    console.page.route("**/search?*", answer)
    return asked


def test_a_search_that_is_answered_in_parts_goes_on_by_itself(console: Console) -> None:
    page = console.page
    # Given a hub that finds a message with its fourth answer
    asked = answered_in_parts(console, 4, [HIT])
    # When it is searched, then it comes without a click
    console.open("search")
    page.goto(f"{console.link('search')}?id=4711")
    expect(page.get_by_role("region", name="Found").get_by_role("link", name=HIT["message_id"])).to_be_visible()
    assert asked == ["", *(f"~bodies#20455#{part}" for part in (1, 2, 3))]
    expect(page.get_by_role("button", name="Look further")).to_have_count(0)
    expect(page.get_by_text("looking further")).to_have_count(0)


def test_after_ten_parts_with_nothing_a_person_decides_whether_to_look_further(console: Console) -> None:
    page = console.page
    asked = answered_in_parts(console, 21, [])
    console.open("search")
    page.goto(f"{console.link('search')}?id=4711")
    further = page.get_by_role("button", name="Look further")
    expect(page.get_by_text("None until there.")).to_be_visible()
    expect(page.get_by_text("Messages with many values were read back to")).to_be_visible()
    assert len(asked) == 10
    # When they want that, then it goes on from there, as far again
    further.click()
    console.until(lambda: len(asked) >= 20, lambda: f"{asked}")
    expect(further).to_be_enabled()
    assert (len(asked), asked[10]) == (20, "~bodies#20455#10")
    further.click()
    expect(page.get_by_text("No message of the last week has this")).to_be_visible()
    expect(further).to_have_count(0)


@pytest.mark.parametrize(("held", "clicks"), [(3, 0), (13, 1)])
def test_leaving_the_page_ends_a_search(console: Console, held: int, clicks: int) -> None:
    page = console.page
    # Given a search, the page's own or one that a person asked for, with an answer that does not come
    asked = answered_in_parts(console, 100, [], held)
    console.open("search")
    page.goto(f"{console.link('search')}?id=4711")
    for _ in range(clicks):
        page.get_by_role("button", name="Look further").click()
    # Then it is told how far it is
    expect(page.get_by_text("Nothing yet, looking further. Messages with many values were read back")).to_be_visible()
    console.until(lambda: len(asked) == held, lambda: f"{asked}")
    # When the page is left, then nothing is asked any more
    with page.expect_event("requestfailed", lambda request: "/search?" in request.url):
        console.open("queues")
    assert len(asked) == held


def test_the_filter_of_events_takes_one_row_and_on_a_phone_only_its_name(console: Console) -> None:
    page = console.page
    # When events are shown on a wide page, then all fields of the filter are in one row, at their names' width
    console.open("events")
    filters = page.get_by_role("search", name="Events")
    expect(filters.get_by_label("To")).to_be_visible()
    tops = {each.bounding_box()["y"] for each in filters.locator("input, select").all()}
    assert len(tops) == 1
    # When they are shown on a phone, then the fields take no room until they are asked for
    page.set_viewport_size(PHONE)
    page.reload()
    folded = page.get_by_text("Filter", exact=True)
    expect(folded).to_be_visible()
    expect(filters).to_be_hidden()
    folded.click()
    expect(filters.get_by_label("To")).to_be_visible()
    assert (console.too_wide(), console.violations()) == (False, [])


def test_today_counts_every_queue_with_few_requests(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    for number in range(110):
        project.ironmq("PUT", f"/a{number:03}", {"queue": {"type": "pull"}})
    push = {
        "subscribers": [{"name": "bad", "url": recorder.endpoint(500).url}],
        "retries": 0,
        "error_queue": "zz-errors",
    }
    project.ironmq("PUT", "/zz-errors", {"queue": {"type": "pull"}})
    project.ironmq("PUT", "/zz", {"queue": {"push": push}})
    project.post("zz", "one")
    project.post("a109", "one", "two")
    until(lambda: project.ironmq("GET", "/zz-errors")["queue"]["size"], 120, lambda: "nothing was reported")
    asked = asked_for(console)
    console.open("today")
    expect(page.get_by_role("region", name="Error queues").get_by_role("link", name="zz-errors")).to_be_visible()
    expect(page.get_by_text("112 queues counted")).to_be_visible()
    expect(page.locator(".figures").get_by_text("Waiting for consumers").locator("xpath=..")).to_contain_text("3")
    assert len(asked) <= MOST_REQUESTS, asked
