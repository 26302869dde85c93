"""Queues and their messages, as a person creates, changes and follows them."""

from __future__ import annotations

import json

from playwright.sync_api import expect
from tests.browser.console import HOSTILE, HOSTILE_BODY, Console
from tests.stack.endpoints import Recorder
from tests.stack.project import until


def test_a_queue_is_made_posted_to_and_its_message_followed_to_its_subscribers(
    console: Console, recorder: Recorder
) -> None:
    page = console.page
    good, bad = recorder.endpoint(200), recorder.endpoint(500)
    # Given a queue created by a person
    console.open("queues")
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=True).fill("orders")
    page.get_by_label("First subscriber's URL").fill(good.url)
    page.get_by_role("button", name="Create the queue").click()
    expect(page.get_by_role("heading", name="orders", exact=True)).to_be_visible()
    # And a second subscriber, which fails
    page.get_by_role("link", name="Subscribers").click()
    page.get_by_role("button", name="Add a subscriber").click()
    page.get_by_label("Name", exact=True).fill("billing")
    page.get_by_label("URL").fill(bad.url)
    page.get_by_label("Headers").fill("X-Team: billing")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("cell", name="billing", exact=True)).to_be_visible()
    # When a message is posted
    page.get_by_role("button", name="Post a message").click()
    page.get_by_label("Body").fill('{"order": "SO-1"}')
    page.get_by_role("button", name="Post", exact=True).click()
    # Then its history is shown: accepted, delivered to one, failed at the other, and when that is retried
    life = page.get_by_role("list", name="Its life")
    expect(life.get_by_text("Accepted")).to_be_visible()
    expect(life.get_by_text("first: HTTP 200")).to_be_visible()
    expect(life.get_by_text("billing: HTTP 500")).to_be_visible()
    expect(life.get_by_text("billing: the next try")).to_be_visible()
    expect(page.get_by_role("img", name="billing: retrying")).to_be_visible()
    (push,) = good.wait()
    assert json.loads(push.body) == {"order": "SO-1"}
    assert bad.wait()[0].headers["X-Team"] == "billing"


def test_what_a_subscriber_missed_is_counted_and_sent_again(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given a subscriber that refused the only try of a message
    down = recorder.endpoint(500, 200)
    push = {"subscribers": [{"name": "billing", "url": down.url}], "retries": 0}
    project.ironmq("PUT", "/orders", {"queue": {"type": "multicast", "push": push}})
    (posted,) = project.post("orders", "one")
    down.wait()
    given_up = "/orders/deliveries?state=exhausted"
    until(lambda: project.ironmq("GET", given_up)["deliveries"] or None, 60, lambda: "it was not given up")
    # When a person opens it, then it shows what was not delivered
    console.open("queues", "orders", "subscribers", "billing")
    missed = page.get_by_role("region", name="What it has not accepted")
    expect(missed.get_by_role("link", name=posted)).to_be_visible()
    # And what a replay would send and, after it, what was sent
    page.get_by_role("button", name="Count only").click()
    expect(page.get_by_text("1 was given up and can still be delivered.")).to_be_visible()
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.get_by_text("1 is tried again, once.")).to_be_visible()
    down.wait(2)
    assert console.violations() == []


def test_what_the_api_refuses_is_told_beside_the_field_it_names(console: Console, recorder: Recorder) -> None:
    page = console.page
    console.project.push_queue("orders", first=recorder.endpoint(200).url)
    console.open("queues", "orders", "settings")
    page.get_by_label("Seconds between tries").fill("1")
    page.get_by_role("button", name="Save").click()
    # Then the field says what is wrong, and a screen reader hears it with the field
    field = page.get_by_label("Seconds between tries")
    expect(field).to_have_attribute("aria-invalid", "true")
    described = (field.get_attribute("aria-describedby") or "").split()[-1]
    expect(page.locator(f"#{described}")).to_contain_text("retries_delay")
    # When it is corrected, then it is saved
    field.fill("30")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert console.project.ironmq("GET", "/orders")["queue"]["push"]["retries_delay"] == 30


def test_queues_are_paged_and_found_by_the_beginning_of_their_names(console: Console) -> None:
    page = console.page
    for number in range(33):
        console.project.ironmq("PUT", f"/q{number:02d}", {"queue": {"type": "pull"}})
    console.open("queues")
    expect(page.get_by_role("link", name="q29", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="q30", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("link", name="q32", exact=True)).to_be_visible()
    page.get_by_label("Name begins with").fill("q1")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("link", name="q19", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="q20", exact=True)).to_have_count(0)


def test_a_queue_is_cleared_and_deleted_after_a_question(console: Console) -> None:
    page = console.page
    console.project.post("audit", "one", "two")
    console.open("queues", "audit", "settings")
    # When a person is asked and cancels, nothing happens
    page.get_by_role("button", name="Clear the queue").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert console.project.ironmq("GET", "/audit")["queue"]["size"] == 2
    # When they are sure, it does
    page.get_by_role("button", name="Clear the queue").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear the queue").click()
    expect(page.get_by_text("Cleared.")).to_be_visible()
    assert console.project.ironmq("GET", "/audit")["queue"]["size"] == 0
    page.get_by_role("button", name="Delete the queue").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the queue").click()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    assert console.project.ironmq("GET", "")["queues"] == []


def test_names_and_bodies_are_shown_as_text_whatever_they_hold(console: Console, recorder: Recorder) -> None:
    page = console.page
    # Given a tenant whose names and messages would be scripts if rendered as markup
    hostile = HOSTILE.replace("/", "")
    console.project.push_queue(hostile, **{HOSTILE: recorder.endpoint(500).url})
    console.project.push_queue("plain", first=recorder.endpoint(200).url)
    (refused,) = console.project.post(hostile, HOSTILE_BODY)
    # When each page that shows it is opened
    console.open("queues")
    expect(page.get_by_role("link", name=hostile)).to_be_visible()
    page.get_by_role("link", name=hostile).click()
    expect(page.get_by_role("heading", name=hostile)).to_be_visible()
    console.open("queues", hostile, "subscribers")
    expect(page.get_by_role("cell", name=HOSTILE, exact=True)).to_be_visible()
    console.open("queues", hostile, "messages", refused)
    # Then it is shown literally (and the fixture checks that nothing ran and that the policy had nothing to block)
    expect(page.locator("pre.body")).to_contain_text("<script>alert('body')</script><img src=x onerror=alert(1)>")
    expect(page.get_by_role("list", name="Its life").get_by_text(f"{HOSTILE}: HTTP 500")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
