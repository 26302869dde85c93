"""The keyboard alone: finding, going to a page, and the list of keys."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.console import Console


def test_a_slash_finds_g_and_a_letter_goes_and_a_question_mark_tells_of_both(console: Console) -> None:
    page = console.page
    console.open("reports")
    # When a person types, then the place to find messages is there at once
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find")).to_be_focused()
    page.keyboard.type("g q / ?")
    expect(page.get_by_role("searchbox", name="Find")).to_have_value("g q / ?")
    # And g and a letter lead to a page
    page.get_by_role("heading", level=1).focus()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1, name="Queues")).to_be_focused()
    # And the keys are told, in a dialog in which they do nothing
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.get_by_text("Applications")).to_be_visible()
    assert console.violations() == []
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", level=1, name="Queues")).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
