"""Topics, and a consumer of one in the browser."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.console import Console


def test_what_is_published_comes_while_it_is_watched_and_is_acknowledged(console: Console) -> None:
    page, project = console.page, console.project
    # Given a subscription created by a person
    console.open("topics")
    page.get_by_role("button", name="New rule").click()
    page.get_by_label("Topic").fill("machines")
    page.get_by_label("Gets").fill("events")
    page.get_by_role("button", name="Create the rule").click()
    # When a person watches its topic, and something is published
    page.get_by_role("link", name="Watch").click()
    expect(page.get_by_text("connected", exact=True)).to_be_visible()
    hostile = "<img src=x onerror=alert(1)>"
    project.notifications("POST", "/notifications", {"api": "events", "source": "111", "data": {"type": hostile}})
    # Then it is shown as text
    came = page.get_by_role("list", name="Received notifications").get_by_role("listitem")
    expect(came).to_have_count(1)
    expect(came).to_contain_text(f"/{project.id}/events/111")
    expect(came).to_contain_text(hostile)
    # And notifications that arrive while the page is paused are counted, not shown
    page.get_by_role("button", name="Hold still").click()
    project.notifications("POST", "/notifications", {"api": "events", "source": "111", "data": {"n": 2}})
    expect(page.get_by_role("button", name="Show notifications")).to_have_attribute("aria-pressed", "true")
    # And leaving removes the subscriber, so that the topic keeps nothing for it; a second visit shows nothing old
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="Watch").click()
    expect(page.get_by_text("connected", exact=True)).to_be_visible()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()
    # And the project's token was in no address, not even the WebSocket's
    assert [url for url in console.asked if project.token in url] == []


def test_what_waits_for_a_subscriber_is_shown(console: Console) -> None:
    page, project = console.page, console.project
    # Given a rule whose topic nobody has read yet
    project.notifications("POST", "/subscriptions", {"context": "tenant", "subscription": "machines"})
    console.open("topics")
    page.get_by_role("button", name="Subscribers").click()
    expect(page.get_by_text("Nobody has connected to this topic.")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    # When a subscriber watches it, then it is listed, with nothing waiting
    page.get_by_role("link", name="Watch").click()
    expect(page.get_by_text("connected", exact=True)).to_be_visible()
    answer = project.notifications("GET", "/subscribers?subscription=machines")["subscribers"]
    assert [(each["consumers"], each["bytes"]) for each in answer] == [(1, 0)]


def test_what_the_api_says_of_a_rule_is_beside_its_field(console: Console) -> None:
    page = console.page
    console.open("topics")
    page.get_by_role("button", name="New rule").click()
    page.get_by_label("Topic").fill("no good name")
    page.get_by_role("button", name="Create the rule").click()
    expect(page.get_by_label("Topic")).to_have_attribute("aria-invalid", "true")


def test_rules_are_paged_and_removed(console: Console) -> None:
    page, project = console.page, console.project
    for number in range(21):
        project.notifications("POST", "/subscriptions", {"context": "tenant", "subscription": f"t{number:02d}"})
    console.open("topics")
    expect(page.get_by_text("Page 1 of 2")).to_be_visible()
    page.get_by_role("button", name="After").click()
    expect(page.get_by_text("Page 2 of 2")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("The rule is removed.")).to_be_visible()
    assert len(project.notifications("GET", "/subscriptions?pageSize=100")["subscriptions"]) == 20
