"""An endpoint's transformation is written, tried on a payload and kept; whoever may not see code is shown no editor."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from playwright.sync_api import Browser, Page, expect
from tests.browser.console import HOSTILE, PHONE, Console, Project, tab
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack

CODE = """function handler(webhook) {
  if (webhook.payload.test) return { cancel: true };
  webhook.payload = { said: webhook.payload.note, of: webhook.eventType, n: webhook.payload.n };
  webhook.headers = { "X-Team": webhook.env.TEAM };
  webhook.method = "PUT";
  return webhook;
}"""


def an_endpoint(project: Project, url: str) -> tuple[str, str]:
    """An application's id, and that of its only endpoint."""
    project.webhooks("POST", "/event-type", {"name": "order.new", "description": "new"})
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    created = project.webhooks("POST", f"/app/{app}/endpoint", {"url": url, "eventTypes": ["order.new"]})
    return app, created["id"]


def kept(project: Project, app: str, endpoint: str) -> dict[str, Any]:
    """The transformation as the API has it, without its time."""
    shown: dict[str, Any] = project.webhooks("GET", f"/app/{app}/endpoint/{endpoint}/transformation")
    shown.pop("updatedAt", None)
    return shown


def open_portal(console: Console, app: str, endpoint: str, capabilities: Collection[str]) -> Page:
    """Open an endpoint's page by a portal's link."""
    wanted = {"capabilities": list(capabilities)}
    access = console.project.webhooks("POST", f"/auth/app-portal-access/{app}", wanted)
    console.page.goto(f"{console.url}#key={access['url'].partition('#key=')[2]}")
    console.page.locator("main[data-address]").wait_for()
    console.page.goto(console.link("apps", app, "endpoints", endpoint))
    return console.page


def test_code_is_tried_mended_saved_and_still_there_after_a_reload(console: Console, recorder: Recorder) -> None:
    page, project, target = console.page, console.project, recorder.endpoint(200)
    app, endpoint = an_endpoint(project, target.url)
    # Given an endpoint without code: its page leads to a template, and to an example of what it gets
    console.open("apps", app, "endpoints", endpoint)
    page.get_by_role("link", name="Transformation").click()
    code, payload = page.get_by_label("Code", exact=True), page.get_by_label("Payload", exact=True)
    expect(code).to_have_value(re.compile(r"function handler\(webhook\)"))
    expect(page.get_by_label("Event type")).to_have_value("order.new")
    page.get_by_label("Language").select_option("JSONata")
    # When a person tries what is there
    page.get_by_role("button", name="Try").click()
    sent = page.get_by_label("Payload that would be sent")
    expect(sent).to_contain_text('"type": "order.new"')
    page.get_by_label("Language").select_option("JavaScript")
    expect(page.get_by_text("changed since it was tried")).to_be_visible()
    # And code that fails, on a payload that is none, then says why, as text
    code.fill(f"function handler() {{ throw new Error({json.dumps(HOSTILE)}) }}")
    payload.fill("{")
    page.get_by_role("button", name="Try").click()
    expect(payload).to_have_attribute("aria-invalid", "true")
    payload.fill('{"note": "<script>alert(1)</script>", "n": 12345678901234567890}')
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_role("alert").get_by_text(HOSTILE)).to_be_visible()
    # And code that works, with a variable that is not stored yet
    code.fill(CODE)
    page.get_by_role("button", name="Add a variable").click()
    page.get_by_label("Value", exact=True).fill("billing")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("A variable needs a name.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("TEAM")
    page.get_by_role("button", name="Try").click()
    # Then what would be sent is shown, and nothing is kept
    expect(sent).to_contain_text('"said": "<script>alert(1)</script>"')
    expect(page.get_by_role("row", name="X-Team billing")).to_be_visible()
    expect(page.get_by_text("PUT", exact=True)).to_be_visible()
    assert console.violations() == []
    payload.fill('{"test": true}')
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_text("Cancelled: nothing would be sent.")).to_be_visible()
    assert kept(project, app, endpoint)["code"] is None
    # When it is saved, then it is the endpoint's, also after a reload; the variable's value is nowhere
    page.get_by_label("Enabled").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It applies to each try")).to_be_visible()
    wanted = {"code": CODE, "enabled": True, "language": "javascript", "variables": {"TEAM": "********"}}
    assert kept(project, app, endpoint) == wanted
    page.reload()
    expect(code).to_have_value(CODE)
    expect(page.get_by_label("Enabled")).to_be_checked()
    expect(page.get_by_label("Value of TEAM")).to_have_value("")
    assert "billing" not in page.content()
    # And a message is sent as the code says; the next time it is the example
    project.webhooks("POST", f"/app/{app}/msg", {"eventType": "order.new", "payload": {"note": "hello", "n": 7}})
    (push,) = target.wait()
    assert (json.loads(push.body), push.headers["X-Team"]) == ({"said": "hello", "of": "order.new", "n": 7}, "billing")
    page.reload()
    expect(payload).to_have_value('{\n  "note": "hello",\n  "n": 7\n}')
    # And saving again keeps what was not typed anew
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It applies to each try")).to_be_visible()
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_role("row", name="X-Team billing")).to_be_visible()
    # And a message that the code cancels is shown as cancelled
    message = {"eventType": "order.new", "payload": {"test": True}}
    cancelled = project.webhooks("POST", f"/app/{app}/msg", message)["id"]
    console.open("apps", app, "messages", cancelled)
    life = page.get_by_role("list", name="History")
    expect(life.get_by_text(f"{target.url}: cancelled")).to_be_visible()
    expect(life.get_by_text("its transformation said so")).to_be_visible()
    assert len(target.pushes) == 1


def test_code_is_removed_by_an_empty_field_and_a_variable_by_its_button(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    app, endpoint = an_endpoint(project, recorder.endpoint(200).url)
    path = f"/app/{app}/endpoint/{endpoint}/transformation"
    variables = {"A": "secret-a", "B": "secret-b"}
    project.webhooks("PATCH", path, {"code": "{'payload': payload}", "language": "jsonata", "variables": variables})
    console.open("apps", app, "endpoints", endpoint, "transformation")
    expect(page.get_by_label("Language")).to_have_value("jsonata")
    # When too little code is saved, then the field says so
    page.get_by_label("Code", exact=True).fill("payload")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Code", exact=True)).to_have_attribute("aria-invalid", "true")
    # When it is emptied
    page.get_by_label("Code", exact=True).fill("")
    page.get_by_role("button", name="Remove A").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Messages are sent as they were posted.")).to_be_visible()
    # Then there is none, and the other variable is left
    expect(page.get_by_label("Value of B")).to_be_visible()
    gone = {"code": None, "enabled": False, "language": "jsonata", "variables": {"B": "********"}}
    assert kept(project, app, endpoint) == gone


def test_a_customer_edits_code_only_with_the_right_to(
    stack: RunningStack, chromium: Browser, project: Project, recorder: Recorder
) -> None:
    app, endpoint = an_endpoint(project, recorder.endpoint(200).url)
    project.webhooks("PATCH", f"/app/{app}/endpoint/{endpoint}/transformation", {"code": CODE})
    # Given a link without the right, when the page is opened, then there is no editor and no code
    with tab(stack, chromium, project) as console:
        page = open_portal(console, app, endpoint, ["ViewBase", "ManageEndpoint"])
        page.get_by_role("link", name="Transformation").click()
        expect(page.get_by_text("Your access does not include this endpoint's transformation.")).to_be_visible()
        expect(page.get_by_role("textbox")).to_have_count(0)
        expect(page.get_by_role("button", name="Save")).to_have_count(0)
        assert "handler" not in page.content()
    # And with it, on a phone, a customer changes the code
    with tab(stack, chromium, project, viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark") as console:
        page = open_portal(console, app, endpoint, ["ViewBase", "ManageTransformations"])
        page.get_by_role("link", name="Transformation").click()
        expect(page.get_by_label("Code", exact=True)).to_have_value(CODE)
        # By keyboard: from the code on, everything is reached
        page.get_by_label("Code", exact=True).fill("function handler(webhook) { return {} }")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Add a variable")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(page.get_by_label("Enabled")).to_be_checked()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("It applies to each try")).to_be_visible()
        page.get_by_role("button", name="Try").click()
        expect(page.get_by_label("Payload that would be sent")).to_be_in_viewport()
        assert (console.too_wide(), console.violations()) == (False, [])
    assert kept(project, app, endpoint)["code"] == "function handler(webhook) { return {} }"
