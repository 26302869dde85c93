"""Who is signed in, and where a token must never appear."""

from __future__ import annotations

from playwright.sync_api import Browser, expect
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
