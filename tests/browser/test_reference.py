"""The reference of the APIs in a browser: a route is found, tried out, and read on a phone in the dark."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, Response, expect
from tests.browser.console import PHONE, Console, Project, tab
from tests.stack.running import RunningStack

MOST_TRANSFERRED = 400_000
MOST_CLOSED = 20


def open_reference(console: Console, stack: RunningStack) -> Page:
    page = console.page
    page.goto(f"{stack.base_url}/docs")
    expect(page.locator("openapi-explorer").get_by_text("Webhooks (Svix API v1)").first).to_be_visible()
    return page


def test_a_route_is_found_and_tried_out_with_one_token(stack: RunningStack, console: Console, project: Project) -> None:
    # Given the reference, which opens no more than a person can take in
    page = open_reference(console, stack)
    assert page.get_by_role("link").count() <= MOST_CLOSED
    # When a token is given
    page.get_by_role("link", name="Authentication").click()
    page.get_by_label("Token").fill(project.token)
    page.get_by_role("button", name="Use this token").click()
    expect(page.get_by_role("status")).to_have_text("Requests are sent with this token.")
    # And routes of three protocols are found and tried, with different kinds of credentials
    for words, name, values in (
        ("post messages to", "Post messages to a queue", {"project": project.id, "queue": "tried"}),
        ("list applications", "List applications", {}),
        ("list subscriptions", "List subscriptions", {}),
    ):
        page.locator("body").press("/")
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type(words)
        page.get_by_role("link", name=name, exact=True).click()
        for parameter, value in values.items():
            page.locator(f"#request-param-{parameter}").fill(value)
        with page.expect_response(lambda answer: answer.request.resource_type in ("fetch", "xhr")) as answered:
            page.get_by_role("button", name="Execute").click()
        # Then the hub answers
        assert answered.value.ok, (name, answered.value.text())
        expect(page.get_by_text(f"({answered.value.status})")).to_be_visible()
    # And what was posted is there: both messages of the example
    assert project.ironmq("GET", "/tried")["queue"]["size"] == 2


def test_the_reference_is_light_and_asks_nobody_else(stack: RunningStack, console: Console) -> None:
    # Given all that is transferred, as the browser counts it
    answers: list[Response] = []

    def note(answer: Response) -> None:
        answers.append(answer)

    console.page.on("response", note)
    # When the reference is opened
    open_reference(console, stack)
    # Then it is within its limit, from this hub, in at most six requests
    sizes = [int(each.headers["content-length"]) for each in answers]
    assert 200_000 < sum(sizes) <= MOST_TRANSFERRED
    assert all(each.startswith(stack.base_url) for each in console.asked)
    # A browser may fetch the icon of its tab again.
    assert len({*console.asked}) <= 6


def test_the_reference_has_no_violations_in_the_dark_on_a_phone(
    stack: RunningStack, chromium: Browser, project: Project
) -> None:
    with tab(stack, chromium, project, viewport=PHONE, color_scheme="dark") as console:
        page = open_reference(console, stack)
        assert not console.too_wide()
        assert console.violations() == []
        page.get_by_label("Find a route").fill("list the names of queues")
        page.get_by_text("List the names of queues", exact=True).first.click()
        expect(page.get_by_role("button", name="Execute")).to_be_visible()
        assert not console.too_wide()
        assert console.violations() == []
