"""What holds for every page: it can be read by a screen reader, in light and dark, on a phone, and has an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.console import DESKTOP, HOSTILE, PHONE, Console, Project, new_project, tab
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack


@dataclass(frozen=True)
class Filled:
    """A project with something on every page."""

    project: Project
    message: str
    order: str
    app: str
    endpoint: str
    webhook: str
    stream: str
    sink: str


@pytest.fixture(scope="module")
def filled(stack: RunningStack) -> Iterator[Filled]:
    project = new_project(stack)
    with Recorder() as recorder:
        good, bad = recorder.endpoint(200).url, recorder.endpoint(500).url
        project.push_queue("orders", warehouse=good, billing=bad, **{HOSTILE: bad})
        (message,) = project.post("orders", '{"order": "SO-1"}')
        project.post("audit", "one", "two")
        held = {"retries_allowed": False}
        mapping = {"name": "acme.ship", "url": bad, "token": "k", "messages": ["order:new"], "options": held}
        project.hub("POST", "/mappings", {"mapping": mapping})
        project.hub("POST", "/schedulers", {"scheduler": {"key": "acme:order:poll", "count": 1, "interval": "hours"}})
        order = project.hub("POST", "/messages", {"message": "order:new", "payload": {"order": {"number": "R1"}}})
        project.notifications("POST", "/subscriptions", {"context": "tenant", "subscription": "machines"})
        app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
        endpoint = project.webhooks("POST", f"/app/{app}/endpoint", {"url": bad})["id"]
        project.webhooks("POST", "/event-type", {"name": "invoice.paid", "description": "It was paid"})
        webhook = project.webhooks("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})["id"]
        stream = project.webhooks("POST", "/stream", {"name": "Orders"})["id"]
        wanted = {"type": "http", "config": {"url": bad}, "uid": "broken"}
        sink = project.webhooks("POST", f"/stream/{stream}/sink", wanted)["id"]
        event = {"eventType": "order.new", "payload": HOSTILE}
        project.webhooks("POST", f"/stream/{stream}/events", {"events": [event]})
        yield Filled(project, message, order["id"], app, endpoint, webhook, stream, sink)


PAGES: dict[str, tuple[str, ...]] = {
    "today": ("today",),
    "events": ("events",),
    "queues": ("queues",),
    "queue": ("queues", "orders"),
    "pull queue": ("queues", "audit"),
    "subscribers": ("queues", "orders", "subscribers"),
    "subscriber": ("queues", "orders", "subscribers", "billing"),
    "settings": ("queues", "orders", "settings"),
    "message": ("queues", "orders", "messages", "{message}"),
    "changes": ("changes",),
    "store": ("store",),
    "mappings": ("store", "mappings"),
    "notices": ("store", "notices"),
    "schedulers": ("store", "schedulers"),
    "parameters": ("store", "parameters"),
    "integrations": ("store", "integrations"),
    "message of the store": ("store", "messages", "{order}"),
    "applications": ("apps",),
    "sources": ("sources",),
    "streams": ("streams",),
    "stream": ("streams", "{stream}"),
    "events of a stream": ("streams", "{stream}", "events"),
    "transformation of a sink": ("streams", "{stream}", "sinks", "{sink}", "transformation"),
    "event types": ("event-types",),
    "application": ("apps", "{app}"),
    "messages of an application": ("apps", "{app}", "messages"),
    "settings of an application": ("apps", "{app}", "settings"),
    "endpoint": ("apps", "{app}", "endpoints", "{endpoint}"),
    "transformation": ("apps", "{app}", "endpoints", "{endpoint}", "transformation"),
    "message of an application": ("apps", "{app}", "messages", "{webhook}"),
    "topics": ("topics",),
    "live": ("live", "machines"),
    "search": ("search",),
    "charts": ("charts",),
    "alerts": ("alerts",),
    "reports": ("reports",),
    "nowhere": ("no-such-page",),
}


def at(filled: Filled, name: str) -> list[str]:
    return [each.format(**vars(filled)) for each in PAGES[name]]


MOST_REQUESTS = 6


def test_pages_have_no_violations_fit_any_screen_and_need_six_requests_at_most(
    stack: RunningStack, chromium: Browser, filled: Filled
) -> None:
    # Given more queues than a page shows
    for number in range(40):
        filled.project.ironmq("PUT", f"/many-{number:02d}", {"queue": {"type": "pull"}})
    found: dict[str, list[str]] = {}
    asked: dict[str, int] = {}
    with tab(stack, chromium, filled.project, viewport=DESKTOP) as console:

        def judge(name: str) -> None:
            console.page.emulate_media(color_scheme="light")
            found[name] = console.violations()
            console.page.emulate_media(color_scheme="dark")
            found[f"{name}, dark"] = console.violations("color-contrast")
            console.page.set_viewport_size(PHONE)
            found[f"{name}, narrow"] = ["too wide"] if console.too_wide() else console.violations()
            console.page.set_viewport_size(DESKTOP)

        console.page.goto(console.url)
        expect(console.page.get_by_role("button", name="Sign in")).to_be_visible()
        judge("sign in")
        console.sign_in()
        console.open("nowhere")
        for name in PAGES:
            # When a page is opened, from one that asks for nothing as time goes on
            look_at(console, at(filled, "nowhere"))
            before = len(console.asked)
            look_at(console, at(filled, name))
            # What a page asks for again, as time goes on, is what it keeps up to date.
            requests = [each for each in console.asked[before:] if not each.startswith(f"{console.url}/")]
            asked[name] = len({re.sub("after=[^&]*", "", each) for each in requests})
            judge(name)
    # Then everybody can read it, in light and dark, on a wide screen and a narrow one
    assert {name: each for name, each in found.items() if each} == {}
    # And it is there after six requests at most
    assert {name: count for name, count in asked.items() if count > MOST_REQUESTS} == {}
    assert asked["queues"] == 1


def test_on_a_phone_the_other_pages_are_reached_by_the_menu(
    stack: RunningStack, chromium: Browser, filled: Filled
) -> None:
    with tab(stack, chromium, filled.project, viewport=PHONE, has_touch=True, is_mobile=True) as console:
        look_at(console, at(filled, "queue"))
        assert (console.too_wide(), console.violations()) == (False, [])
        console.page.get_by_role("button", name="Menu").click()
        console.page.get_by_role("link", name="Topics").click()
        expect(console.page.get_by_role("heading", name="Topics")).to_be_visible()
        expect(console.page.get_by_role("link", name="Search")).to_be_hidden()


def test_a_dialog_has_no_violations_keeps_the_keyboard_and_closes_by_it(console: Console) -> None:
    page = console.page
    console.open("queues")
    console.loaded()
    page.get_by_role("button", name="New queue").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert console.violations() == []
    # Given a person with a keyboard: focus stays in the dialog
    for _ in range(20):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_person_chooses_light_or_dark_and_that_is_remembered(console: Console) -> None:
    page = console.page
    background = "getComputedStyle(document.body).backgroundColor"
    console.open("reports")
    light = page.evaluate(background)
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(page.get_by_label("Colours")).to_have_value("dark")
    assert page.evaluate(background) == dark


def look_at(console: Console, segments: list[str]) -> None:
    console.open(*segments)
    expect(console.page.get_by_role("heading", level=1)).to_be_visible()
    console.loaded()


def test_the_console_is_found_with_a_slash_at_its_end_too(console: Console) -> None:
    console.page.goto(f"{console.url}/#/queues")
    expect(console.page.get_by_role("button", name="Sign in")).to_be_visible()
    assert console.page.url == f"{console.url}#/queues"
