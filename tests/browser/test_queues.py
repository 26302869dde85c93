"""Queues and their messages, as a person creates, changes and follows them."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Route, expect
from tests.browser.console import HOSTILE, HOSTILE_BODY, Console, Project
from tests.fakes.private_keys import identity
from tests.fakes.verifier import symmetric
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
    life = page.get_by_role("list", name="History")
    expect(life.get_by_text("Accepted")).to_be_visible()
    expect(life.get_by_text("first: HTTP 200")).to_be_visible()
    expect(life.get_by_text("billing: HTTP 500")).to_be_visible()
    expect(life.get_by_text("billing: the next attempt")).to_be_visible()
    expect(page.get_by_role("img", name="billing: retrying")).to_be_visible()
    (push,) = good.wait()
    assert json.loads(push.body) == {"order": "SO-1"}
    assert bad.wait()[0].headers["X-Team"] == "billing"


def give_up(project: Project, name: str, *bodies: str, **subscribers: str) -> list[str]:
    """Post messages to a queue that tries once; returns their ids when something was given up of each."""
    listed = [{"name": each, "url": url} for each, url in subscribers.items()]
    project.ironmq("PUT", f"/{name}", {"queue": {"type": "multicast", "push": {"subscribers": listed, "retries": 0}}})
    ids = project.post(name, *bodies)
    given_up = f"/{name}/deliveries?state=exhausted"

    def all_given_up() -> bool:
        return {each["message_id"] for each in project.ironmq("GET", given_up)["deliveries"]} == set(ids)

    until(all_given_up, 120, lambda: "not all were given up")
    return ids


def test_a_message_is_sent_again_to_the_one_subscriber_that_gave_it_up(console: Console, recorder: Recorder) -> None:
    page = console.page
    good, down = recorder.endpoint(200), recorder.endpoint(500, 200)
    # Given a message that one of two subscribers refused
    (posted,) = give_up(console.project, "orders", "one", shop=good.url, billing=down.url)
    console.open("queues", "orders", "messages", posted)
    # When a person asks for a resend, then the question says to whom, and nothing is sent before the answer
    page.get_by_role("button", name="Send again").click()
    dialog = page.get_by_role("dialog", name="Send this message again to billing?")
    expect(dialog).to_contain_text("To this subscriber alone")
    assert console.violations() == []
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Send again").click()
    dialog.get_by_role("button", name="Send again").click()
    # Then it alone gets it, once
    expect(page.get_by_role("img", name="billing: delivered")).to_be_visible()
    expect(page.get_by_role("button", name="Send again")).to_have_count(0)
    assert (len(down.wait(2)), len(good.wait())) == (2, 1)
    # And its last two attempts stand side by side, with what differs marked
    compared = page.get_by_role("region", name="Two attempts compared")
    expect(compared.locator("mark").filter(has_text="HTTP 500")).to_be_visible()
    expect(compared.locator("mark").filter(has_text="HTTP 200")).to_be_visible()
    page.get_by_label("This one", exact=True).select_option(label="billing, attempt 2")
    expect(page.get_by_text("They are alike.")).to_be_visible()
    expect(compared.locator("mark")).to_have_count(0)
    assert (console.too_wide(), console.violations()) == (False, [])
    # And a copy for all is posted only after a question that says to how many
    page.get_by_role("button", name="Post a copy").click()
    page.get_by_role("dialog", name="Post a copy to 2 subscribers?").get_by_role("button", name="Cancel").click()
    assert console.project.ironmq("GET", "/orders")["queue"]["total_messages"] == 1


def test_all_subscribers_that_gave_a_message_up_get_it_again_at_once(console: Console, recorder: Recorder) -> None:
    page = console.page
    good, down, broken = recorder.endpoint(200), recorder.endpoint(500, 200), recorder.endpoint(500, 200)
    (posted,) = give_up(console.project, "orders", "one", shop=good.url, billing=down.url, crm=broken.url)
    console.open("queues", "orders", "messages", posted)
    page.get_by_role("button", name="Send again to all 2").click()
    dialog = page.get_by_role("dialog", name="Send this message again to 2 subscribers?")
    expect(dialog).to_contain_text("billing, crm")
    dialog.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Sent again to 2 subscribers.")).to_be_visible()
    assert [len(down.wait(2)), len(broken.wait(2)), len(good.wait())] == [2, 2, 1]


def test_chosen_messages_are_sent_again_to_a_subscriber(console: Console, recorder: Recorder) -> None:
    page = console.page
    down = recorder.endpoint(500, 500, 500, 200)
    first, second, third = give_up(console.project, "orders", "one", "two", "three", billing=down.url)
    console.open("queues", "orders", "subscribers", "billing")
    expect(page.get_by_role("button", name="Send again what is chosen")).to_be_disabled()
    page.get_by_role("checkbox", name=first).check()
    page.get_by_role("checkbox", name=third).check()
    page.get_by_role("button", name="Send again what is chosen").click()
    assert console.violations() == []
    dialog = page.get_by_role("dialog", name="Send 2 messages again to billing?")
    dialog.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("2 messages sent again.")).to_be_visible()
    again = {each.message_id for each in down.wait(5)[3:]}
    assert again == {first, third}
    assert second not in again


def test_what_a_subscriber_missed_in_a_time_is_counted_asked_for_and_sent_again(
    console: Console, recorder: Recorder
) -> None:
    page = console.page
    # Given a subscriber that refused the only attempt at a message
    down = recorder.endpoint(500, 200)
    (posted,) = give_up(console.project, "orders", "one", billing=down.url)
    # When a person opens it, then it shows what was not delivered
    console.open("queues", "orders", "subscribers", "billing")
    missed = page.get_by_role("region", name="What it has not accepted")
    expect(missed.get_by_role("link", name=posted)).to_be_visible()
    # And of a time in which nothing was given up, nothing is sent
    page.get_by_label("Accepted before").fill("2026-01-01T00:00")
    page.get_by_role("button", name="Count and send again").click()
    expect(page.get_by_text("Nothing was given up that can still be delivered.")).to_be_visible()
    # But of all times one message is, after a question
    page.get_by_label("Accepted before").fill("")
    page.get_by_role("button", name="Count and send again").click()
    dialog = page.get_by_role("dialog", name="Send 1 message again to billing?")
    dialog.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("1 message is sent again, once each.")).to_be_visible()
    down.wait(2)
    assert console.violations() == []


def test_what_the_api_refuses_is_told_beside_the_field_it_names(console: Console, recorder: Recorder) -> None:
    page = console.page
    console.project.push_queue("orders", first=recorder.endpoint(200).url)
    console.open("queues", "orders", "settings")
    page.get_by_label("Seconds between attempts").fill("1")
    page.get_by_role("button", name="Save").click()
    # Then the field says what is wrong, and a screen reader hears it with the field
    field = page.get_by_label("Seconds between attempts")
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
    expect(page.get_by_role("list", name="History").get_by_text(f"{HOSTILE}: HTTP 500")).to_be_visible()
    assert page.locator("main img, main script").count() == 0


def test_what_was_given_up_is_counted_and_leads_to_the_messages_and_the_error_queue(
    console: Console, recorder: Recorder
) -> None:
    page = console.page
    # Given a queue that gave up two deliveries, and nothing that waits
    down = recorder.endpoint(500)
    first, second = give_up(console.project, "orders", "one", "two", billing=down.url)
    console.project.ironmq("PATCH", "/orders", {"queue": {"push": {"error_queue": "orders-failed"}}})
    console.open("queues", "orders")
    # Then its page says so, and where to look
    expect(page.get_by_text("No delivery waits to be retried. 2 deliveries were given up")).to_be_visible()
    expect(page.locator(".figures").get_by_role("link", name="orders-failed")).to_be_visible()
    page.locator(".figures").get_by_text("Given up").locator("xpath=..").get_by_role("link", name="2").click()
    table = page.get_by_role("region", name="Given up")
    expect(table.get_by_role("link", name=first)).to_be_visible()
    expect(table.get_by_role("link", name=second)).to_be_visible()
    expect(table.get_by_role("cell", name="HTTP 500")).to_have_count(2)
    assert console.violations() == []
    table.get_by_role("link", name="billing").first.click()
    expect(page.get_by_role("heading", name="billing")).to_be_visible()


def test_a_subscriber_is_paused_and_resumed(console: Console, recorder: Recorder) -> None:
    page = console.page
    down = recorder.endpoint(200)
    console.project.push_queue("orders", billing=down.url)
    console.open("queues", "orders", "subscribers", "billing")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog", name="Pause billing?").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("billing is paused.")).to_be_visible()
    # When messages come meanwhile, then they wait, in sight
    time.sleep(3)
    (posted,) = console.project.post("orders", "one")
    until(
        lambda: console.project.ironmq("GET", "/orders/health")["subscribers"][0]["health"]["waiting"] == 1,
        120,
        lambda: "not held",
    )
    console.open("queues", "orders", "messages", posted)
    expect(page.get_by_text("The subscriber is paused: this waits until it is resumed.")).to_be_visible()
    console.open("queues", "orders")
    expect(page.get_by_text("Paused. 1 delivery waits.")).to_be_visible()
    page.get_by_role("link", name="billing").click()
    assert down.pushes == []
    assert console.violations() == []
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("billing is resumed.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_what_a_subscriber_demands_is_set_and_removed(console: Console) -> None:
    page, project = console.page, console.project
    project.push_queue("orders", billing="https://a.example/in")

    def shown() -> dict[str, Any]:
        (subscriber,) = project.ironmq("GET", "/orders")["queue"]["push"]["subscribers"]
        return dict(subscriber)

    console.open("queues", "orders", "subscribers", "billing")
    dialog = page.get_by_role("dialog")
    # When tokens are to be sent, with a mistake first
    page.get_by_role("button", name="Tokens").click()
    dialog.get_by_label("Token URL").fill("http://login.example/token")
    dialog.get_by_label("Client id").fill("pushhub")
    dialog.get_by_label("Client secret").fill("never-shown-again")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Token URL")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Token URL").fill("https://login.example/token")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("each request carries one")).to_be_visible()
    # And a certificate is to be shown, with a mistake first
    page.get_by_role("button", name="Certificate").click()
    dialog.get_by_label("Private key and certificate").fill("junk")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Private key and certificate")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Private key and certificate").fill(identity(name="hub.acme.example"))
    dialog.get_by_label("The receiver's own authority").fill(identity(key=False))
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("hub.acme.example, ends 2046-01-01")).to_be_visible()
    # And requests are to be signed by Stripe's scheme until the day after tomorrow, and by Standard Webhooks
    page.get_by_role("button", name="Signatures").click()
    dialog.get_by_label("As", exact=True).select_option("Stripe")
    dialog.get_by_label("Another signature beside it").check()
    dialog.get_by_label("Secret (second)").fill(symmetric("1"))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Secret", exact=True)).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Secret", exact=True).fill("whsec_never_shown_again")
    dialog.get_by_label("Last day of the first").fill((datetime.now(UTC) + timedelta(days=2)).date().isoformat())
    assert console.violations() == []
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The signature Stripe-Signature ends")).to_be_visible()
    # Then the queue has them all, and the page shows no secret
    assert console.violations() == []
    reported = shown()
    assert (reported["oauth"], reported["signing"], list(reported["signing_ends"])) == (
        True,
        True,
        ["Stripe-Signature"],
    )
    assert (reported["mtls"]["subject"], reported["mtls"]["private_ca"]) == ("hub.acme.example", True)
    assert not any(each in page.content() for each in ("never-shown-again", "whsec_", "PRIVATE KEY"))
    # When the end is taken away without any secret being typed again, then the stored ones stay
    page.get_by_role("button", name="Signatures").click()
    dialog.get_by_label("As", exact=True).select_option("Stripe")
    dialog.get_by_label("Another signature beside it").check()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The signature Stripe-Signature ends")).to_have_count(0)
    assert (shown()["signing"], "signing_ends" in shown()) == (True, False)
    # When all are ended, each before a slow hub could show the end of the one before, then nothing is left of them
    page.route("**/queues/orders", slowly)
    page.get_by_role("button", name="Tokens").click()
    dialog.get_by_role("button", name="Send no tokens").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Certificate").click()
    expect(dialog.get_by_text("its own", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Show no certificate").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Signatures").click()
    dialog.get_by_role("button", name="Sign no more").click()
    page.get_by_role("dialog", name="Sign requests no more?").get_by_role("button", name="Sign no more").click()
    expect(dialog).to_have_count(0)
    until(lambda: shown() == {"name": "billing", "url": "https://a.example/in"}, 60, lambda: f"{shown()}")


def test_what_is_changed_of_a_subscriber_leaves_the_rest_as_it_was(console: Console) -> None:
    page, project = console.page, console.project
    settings = {
        "url": "https://a.example/in",
        "headers": {"X-Shop": "1"},
        "timeout": 33,
        "signing": {"secret": symmetric("1")},
    }
    subscribers = [{"name": "billing", **settings}]
    project.ironmq("PUT", "/orders", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}})
    (before,) = project.ironmq("GET", "/orders")["queue"]["push"]["subscribers"]
    # When only its URL is changed
    console.open("queues", "orders", "subscribers")
    page.get_by_role("button", name="Edit billing").click()
    page.get_by_role("dialog").get_by_label("URL").fill("https://a.example/other")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    # Then all else is as it was
    (after,) = project.ironmq("GET", "/orders")["queue"]["push"]["subscribers"]
    assert after == {**before, "url": "https://a.example/other"}
    assert (after["timeout"], after["signing"]) == (33, True)


def slowly(route: Route) -> None:
    """Hold what is asked back for a second."""
    if route.request.method == "GET":
        route.request.frame.page.wait_for_timeout(1000)
    route.continue_()


def test_every_attempt_is_shown(console: Console, recorder: Recorder) -> None:
    page = console.page
    down = recorder.endpoint(500, 503, 404)
    listed = [{"name": "billing", "url": down.url}]
    queue = {"type": "multicast", "push": {"subscribers": listed, "retries": 2, "retries_delay": 3}}
    console.project.ironmq("PUT", "/orders", {"queue": queue})
    (posted,) = console.project.post("orders", "one")
    down.wait(3)
    console.open("queues", "orders", "messages", posted)
    life = page.get_by_role("list", name="History")
    for number, status in enumerate((500, 503, 404), 1):
        entry = life.get_by_role("listitem").filter(has_text=f"billing: HTTP {status}")
        expect(entry).to_contain_text(f"Attempt {number}, ")
        expect(entry).to_contain_text(" ms.")
    expect(life.get_by_text("billing: given up")).to_be_visible()


def test_a_long_name_keeps_every_column_in_sight(console: Console) -> None:
    page = console.page
    name = "orders-" * 30
    console.project.ironmq("PUT", f"/{name}", {"queue": {"type": "pull"}})
    console.open("queues")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    edge = page.get_by_role("columnheader", name="Subscribers").bounding_box()
    assert edge is not None
    assert edge["x"] + edge["width"] <= 1280
