"""Who is signed in, and where a token must never appear."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.browser.console import Console, Project, tab
from tests.stack.running import RunningStack

STORED = "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])"
KEPT = "sessionStorage.getItem('pushhub.session') ?? ''"
ELSEWHERE = "JSON.stringify([{...localStorage}, document.cookie, location.href, history.state, document.referrer])"


def test_a_person_signs_in_reloads_and_signs_out(console: Console) -> None:
    # Given a person with a project's token
    console.sign_in()
    expect(console.page.get_by_role("heading", level=1)).to_be_visible()
    # When the page is loaded again, then they are still signed in
    console.page.reload()
    expect(console.page.get_by_role("button", name="Sign out")).to_be_visible()
    # When they sign out, then nothing of the token is left
    console.page.get_by_role("button", name="Sign out").click()
    expect(console.page.get_by_label("Token")).to_be_empty()
    assert console.project.token not in console.page.evaluate(STORED)
    console.page.reload()
    expect(console.page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_wrong_token_is_told_and_not_kept(console: Console) -> None:
    console.page.goto(console.url)
    console.page.get_by_label("Project id").fill(console.project.id)
    console.page.get_by_label("Token").fill("no-such-token")
    console.page.get_by_role("button", name="Sign in").click()
    expect(console.page.get_by_text("No project has this id and token.")).to_be_visible()
    assert "no-such-token" not in console.page.evaluate(STORED)


def test_a_projects_token_is_in_no_address_and_stays_in_its_tab(console: Console) -> None:
    # Given a link with a token, and some pages visited
    console.follow_link()
    console.open("queues")
    console.page.get_by_role("heading", name="Queues").wait_for()
    console.loaded()
    # Then the token is in the tab's storage and nowhere else
    token = console.project.token
    assert token in console.page.evaluate(KEPT)
    assert token not in console.page.evaluate(ELSEWHERE)
    # And in no requested address
    assert [url for url in console.asked if token in url] == []
    assert any(f"/3/projects/{console.project.id}/queues" in url for url in console.asked)
    # And going back does not lead to the link that contained it
    console.page.go_back()
    assert token not in console.page.url
    # And another tab of the same browser is not signed in
    other = console.page.context.new_page()
    other.goto(console.url)
    expect(other.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_token_that_is_revoked_meanwhile_ends_the_session(console: Console) -> None:
    # Given a person who is signed in
    console.open("queues")
    console.loaded()
    # When their token is no longer accepted
    console.page.route("**/3/projects/**", lambda route: route.fulfill(status=401, json={"msg": "Unauthorized"}))
    console.open("queues", "any")
    # Then they are told, and the token is forgotten
    expect(console.page.get_by_text("The hub does not accept this token")).to_be_visible()
    assert console.project.token not in console.page.evaluate(STORED)


@pytest.mark.parametrize(
    ("way", "link"),
    [
        ("the same page", "#project=5b6c2f1d9e8a4c7b3d2e1f0a&token=theirs"),
        ("another site", "#application=app_x&token=theirs"),
    ],
)
def test_a_link_asks_before_it_replaces_a_session(console: Console, way: str, link: str) -> None:
    # Given a person who is signed in
    console.open("queues")
    console.loaded()
    asked = len(console.asked)

    def follow() -> None:
        if way == "another site":
            console.page.goto("about:blank")
        console.page.goto(f"{console.url}{link}")

    # When they follow somebody's link, then they are asked, and its token is neither kept nor used
    follow()
    expect(console.page.get_by_role("heading", name="Sign in elsewhere?")).to_be_visible()
    assert "theirs" not in console.page.evaluate(STORED)
    assert "theirs" not in console.page.url
    assert [url for url in console.asked[asked:] if "5b6c2f1d9e8a4c7b3d2e1f0a" in url or "app_x" in url] == []
    expect(console.page.get_by_role("button", name="Stay")).to_be_focused()
    # When they stay, then nothing has changed, after a reload neither
    console.page.get_by_role("button", name="Stay").click()
    expect(console.page.get_by_text(console.project.id)).to_be_visible()
    console.page.reload()
    expect(console.page.get_by_text(console.project.id)).to_be_visible()
    assert console.project.token in console.page.evaluate(KEPT)
    # When they switch, then they are signed in there, or told that the token is of no use
    follow()
    console.page.get_by_role("button", name="Switch").click()
    expect(console.page.get_by_role("heading", name="Sign in elsewhere?")).to_be_hidden()
    console.page.wait_for_function(f"token => !({KEPT}).includes(token)", arg=console.project.token)


def test_the_link_one_is_signed_in_with_asks_nothing(console: Console) -> None:
    link = f"{console.url}#project={console.project.id}&token={console.project.token}"
    for _ in range(2):
        console.page.goto(link)
        expect(console.page.get_by_role("button", name="Sign out")).to_be_visible()
    console.page.goto("about:blank")
    console.page.goto(link)
    expect(console.page.get_by_role("button", name="Sign out")).to_be_visible()


def test_a_portals_token_is_in_memory_only(stack: RunningStack, chromium: Browser, project: Project) -> None:
    # Given a link to a portal, with a token that the hub accepts
    found: dict[str, object] = {
        "id": "app_1",
        "name": "Shop",
        "metadata": {},
        "data": [],
        "iterator": None,
        "done": True,
    }
    with tab(stack, chromium, project) as console:
        console.page.route("**/api/v1/**", lambda route: route.fulfill(json=found))
        console.page.goto(f"{console.url}#application=app_1&token=portal-token-1")
        expect(console.page.get_by_role("button", name="Sign out")).to_be_visible()
        # Then its token is stored nowhere and asked for nowhere
        assert "portal-token-1" not in console.page.evaluate(STORED)
        assert "portal-token-1" not in console.page.evaluate(ELSEWHERE)
        assert [url for url in console.asked if "portal-token-1" in url] == []
        # And a reload forgets the token
        console.page.reload()
        expect(console.page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_module_that_did_not_come_is_loaded_again_by_itself(console: Console) -> None:
    page = console.page
    refused: list[str] = []

    def once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, body="busy")

    page.route("**/pages/queues.js", once)
    page.goto(f"{console.url}#project={console.project.id}&token={console.project.token}")
    # Then the page comes up, signed in by what its link brought
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    assert len(refused) == 1


def test_a_module_that_never_comes_is_told_with_what_to_do(console: Console) -> None:
    page = console.page
    page.add_init_script("sessionStorage.setItem('pushhub.starts', '3')")
    page.route("**/pages/queues.js", lambda route: route.abort())
    page.goto(console.url)
    expect(page.get_by_role("alert")).to_contain_text("did not load, several times in a row")
    again = page.get_by_role("button", name="Load the page again")
    page.unroute("**/pages/queues.js")
    again.click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_hub_that_is_busy_for_a_moment_is_asked_again(console: Console) -> None:
    page = console.page
    console.project.ironmq("PUT", "/orders", {"queue": {"type": "pull"}})
    console.open("reports")
    left = [503, 503]

    def busy(route: Route) -> None:
        if left:
            route.fulfill(status=left.pop(), body="{}")
        else:
            route.continue_()

    page.route("**/queues?*", busy)
    console.open("queues")
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    assert left == []
