"""A customer's portal in a frame of the provider's own page, with Svix's component for it, unmodified."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, expect
from tests.browser.console import AXE, DESKTOP, WAIT_S, Console, Project
from tests.browser.embedding import Embedder, bundle
from tests.stack.endpoints import Recorder
from tests.stack.node import NodeMissing
from tests.stack.running import RunningStack

STORAGE = """() => ['localStorage', 'sessionStorage'].map((name) => {
  try { return typeof window[name].length; } catch (error) { return error.name; }
})"""
ACCENT = "getComputedStyle(document.documentElement).getPropertyValue('--accent')"
BLOCKED = "chrome-error://chromewebdata/"


@pytest.fixture(autouse=True)
def _packages() -> None:
    try:
        bundle()
    except NodeMissing:
        pytest.skip("there is no Node or no npm here")


@pytest.fixture
def embedder() -> Iterator[Embedder]:
    with Embedder() as started:
        yield started


@contextmanager
def private(chromium: Browser, folder: Path) -> Iterator[Page]:
    """A tab of a browser that refuses pages all storage: third-party storage is among it, and the stores throw."""
    profile = folder / "profile" / "Default"
    profile.mkdir(parents=True)
    refused = {"profile": {"default_content_setting_values": {"cookies": 2}, "block_third_party_cookies": True}}
    (profile / "Preferences").write_text(json.dumps(refused))
    opened = chromium.browser_type.launch_persistent_context(
        profile.parent, executable_path=shutil.which("chromium"), args=["--no-sandbox"], viewport=DESKTOP
    )
    opened.set_default_timeout(60_000)
    try:
        yield opened.pages[0]
    finally:
        opened.close()


def application(project: Project, name: str, *origins: str) -> str:
    created: dict[str, Any] = project.webhooks("POST", "/app", {"name": name})
    project.webhooks("PUT", f"/app/{created['id']}/portal/frame", {"origins": list(origins)})
    return str(created["id"])


def link(project: Project, app: str) -> str:
    return str(project.webhooks("POST", f"/auth/app-portal-access/{app}", {})["url"])


def until(page: Page, condition: Callable[[], object], missed: Callable[[], str]) -> None:
    """Wait until something is so, while the page goes on."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, missed()
        page.wait_for_timeout(50)


def inside(page: Page) -> Frame:
    """The document in the frame, as soon as it is there."""
    element = page.locator("iframe").element_handle()
    found = element.content_frame() if element else None
    assert found is not None
    return found


def test_a_portal_is_used_in_a_frame_where_the_browser_refuses_storage(
    chromium: Browser, project: Project, embedder: Embedder, recorder: Recorder, tmp_path: Path
) -> None:
    # Given an application whose portal the provider's page may show, and that page, which chooses its look and size
    app = application(project, "acme", embedder.origin)
    embedder.props = {
        "url": link(project, app),
        "fullSize": True,
        "darkMode": True,
        "fontFamily": "Courier",
        "primaryColor": "400000",
        "icon": f"{embedder.origin}/icon.svg",
    }
    with private(chromium, tmp_path) as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        # When the page is opened in a browser that refuses storage
        page.goto(embedder.origin)
        portal = page.frame_locator("iframe")
        expect(portal.get_by_role("heading", name="acme")).to_be_visible()
        frame = inside(page)
        assert frame.evaluate(STORAGE) == ["SecurityError", "SecurityError"]
        # Then it has the look that was chosen: a dark red would not be read on a dark page, so it is lighter
        assert frame.evaluate("document.documentElement.dataset.theme") == "dark"
        assert frame.evaluate("getComputedStyle(document.body).fontFamily").startswith("Courier")
        assert frame.evaluate(ACCENT) not in ("", "#400000", "#9db0ff")
        expect(portal.locator(".brand img")).to_have_js_property("naturalWidth", 8)

        # And the frame is as high as what is in it, and follows
        def heights() -> tuple[int, int]:
            return (
                page.evaluate("parseInt(document.querySelector('iframe').style.height)"),
                frame.evaluate("Math.ceil(document.getElementById('app').getBoundingClientRect().height)"),
            )

        def fits() -> None:
            # What is in it may still change.
            until(page, lambda: len({*heights()}) == 1, lambda: f"{heights()}")

        fits()
        before = page.evaluate("parseInt(document.querySelector('iframe').style.height)")
        # And it is used: an endpoint is made in it
        url = recorder.endpoint(200).url
        portal.get_by_role("button", name="New endpoint").click()
        portal.get_by_label("URL").fill(url)
        portal.get_by_role("button", name="Create the endpoint").click()
        expect(portal.get_by_role("heading", name=url)).to_be_visible()
        expect(portal.locator(".waiting")).to_have_count(0)
        fits()
        assert page.evaluate("parseInt(document.querySelector('iframe').style.height)") != before
        assert [each["url"] for each in project.webhooks("GET", f"/app/{app}/endpoint")["data"]] == [url]
        # And nothing in it signs anybody out of, or in to, anything else
        for name in ("Sign out", "Sign in"):
            expect(portal.get_by_role("button", name=name)).to_have_count(0)
        frame.evaluate(AXE)
        found = frame.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [each["id"] for each in found["violations"]] == []
        assert wrong == []


def test_no_page_of_another_origin_shows_a_portal_or_a_console(
    stack: RunningStack, chromium: Browser, project: Project, embedder: Embedder, tmp_path: Path
) -> None:
    # Given a portal that one page may show, one that none may, and the console of the project
    other = application(project, "other", "https://app.example.com")
    nobodys = application(project, "nobodys")
    console = f"{stack.base_url}/console#project={project.id}&token={project.token}"
    opened = chromium.new_context(viewport=DESKTOP, reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    try:
        for url in (link(project, other), link(project, nobodys), console):
            # When another page shows it
            embedder.props = {"url": url}
            page = opened.new_page()
            with page.expect_console_message(lambda said: "frame-ancestors" in said.text):
                page.goto(embedder.origin)
            # Then the browser refuses
            expect(page.frame_locator("iframe").locator("#app")).to_have_count(0)
            until(page, lambda: inside(page).url == BLOCKED, lambda: url)  # noqa: B023 (called at once)
            page.close()
    finally:
        opened.close()


def test_a_frame_without_its_own_token_offers_nothing(
    stack: RunningStack, chromium: Browser, project: Project, embedder: Embedder
) -> None:
    # Given two portals that the page may show
    app, other = (application(project, name, embedder.origin) for name in ("one", "two"))
    address = link(project, app).partition("#")[0]
    fragments = {
        "": "This page opens with a link",
        f"#project={project.id}&token={project.token}": "This page opens with a link",
        f"#{link(project, other).partition('#')[2]}": "not for a portal in this frame",
    }
    opened = chromium.new_context(viewport=DESKTOP, reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    try:
        for fragment, reported in fragments.items():
            # When its frame is opened without a token, with the project's, or with that of the other portal
            embedder.props = {"url": address + fragment}
            page = opened.new_page()
            page.goto(embedder.origin)
            portal = page.frame_locator("iframe")
            # Then it says so, and there is no form to sign in with and nothing of the other
            expect(portal.get_by_text(reported).first).to_be_visible()
            expect(portal.get_by_label("Token")).to_have_count(0)
            expect(portal.get_by_role("heading", name="two")).to_have_count(0)
            page.close()
    finally:
        opened.close()


def test_a_person_says_in_the_console_which_pages_may_show_a_portal(console: Console) -> None:
    page, project = console.page, console.project
    app = str(project.webhooks("POST", "/app", {"name": "acme"})["id"])
    console.open("apps", app, "settings")
    # When an origin is entered, with a mistake first
    origins = page.get_by_label("Pages that may show it in a frame")
    origins.fill("app.example.com")
    page.get_by_role("button", name="Save the origins").click()
    expect(origins).to_have_attribute("aria-invalid", "true")
    origins.fill("https://app.example.com")
    page.get_by_role("button", name="Save the origins").click()
    # Then it is stored
    expect(page.get_by_text("It applies to new links")).to_be_visible()
    assert project.webhooks("GET", f"/app/{app}/portal/frame") == {"origins": ["https://app.example.com"]}
    assert console.violations() == []
