"""Filtered lists with few matches: each page reads a bounded part, and the iterator leads to the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.model import page as pages
from pushhub.webhooks.model.ids import time_of
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of, taken

URL = "https://a.example/in"


@given(
    keys=st.sets(st.integers(10, 99), max_size=60),
    wanted=st.sets(st.integers(10, 99)),
    limit=st.integers(1, 6),
    most=st.integers(7, 20),
    ascending=st.booleans(),
    backwards=st.booleans(),
)
def test_page_by_page_every_wanted_item_is_shown_once_and_no_page_reads_much(
    keys: set[int], wanted: set[int], limit: int, most: int, ascending: bool, backwards: bool
) -> None:
    # Given a list of which some items match, and a bound on what a page reads
    everything = sorted(map(str, keys))
    window = Window(limit=limit, ascending=ascending, backwards=backwards)
    shown: list[str] = []
    # When it is read to its end, forwards or backwards
    for _ in range(200):
        page = _read(everything, window, wanted, most)
        assert list(page.items) == sorted(page.items, reverse=not ascending)
        shown = [*page.items, *shown] if backwards else [*shown, *page.items]
        if page.done:
            break
        assert (page.first if backwards else page.last) is not None
        window = replace(window, after=page.first if backwards else page.last)
    # Then all matches were shown, in order
    assert shown == sorted((each for each in everything if int(each) in wanted), reverse=not ascending)


def _read(everything: list[str], window: Window, wanted: set[int], most: int) -> Page[str]:
    read: list[str] = []

    def reading() -> Iterator[str]:
        for each in taken(everything, lambda key: key, span_of(window)):
            read.append(each)
            yield each

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "MOST_LOOKED", most)
        page = page_of(reading(), window, lambda key: key, lambda key: int(key) in wanted)
    assert len(read) <= most
    return page


def _walked(world: WebhooksWorld, path: str, **query: Any) -> tuple[list[str], int]:
    """The ids of a list read to its end, and how many pages that took."""
    ids: list[str] = []
    iterator: dict[str, str] = {}
    for number in range(1, 100):
        answer = world.ask("GET", path, **query, **iterator)
        ids += [each["id"] for each in answer["data"]]
        if answer["done"]:
            return ids, number
        iterator = {"iterator": answer["iterator"]}
    raise AssertionError("no end")


def test_filtered_lists_lead_on_over_pages_on_which_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given forty messages of which two are of a type, sent to an endpoint, and pages that read ten
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app)
    ids = []
    for number in range(40):
        body: dict[str, Any] = {"eventType": "rare" if number in (3, 37) else "common", "payload": {}}
        ids.append(world.ask("POST", f"/app/{app}/msg", body)["id"])
        world.run(seconds=1)
    monkeypatch.setattr(pages, "MOST_LOOKED", 10)
    # Then each filtered list shows both in the end, newest first, page by page
    for path in (f"/app/{app}/msg", f"/app/{app}/endpoint/{endpoint}/msg"):
        found, count = _walked(world, path, event_types="rare", limit="5")
        assert found == [ids[37], ids[3]]
        assert count >= 4
    attempts, count = _walked(world, f"/app/{app}/attempt/endpoint/{endpoint}", event_types="rare", limit="5")
    assert len(attempts) == 2
    assert count >= 4
    # And an unfiltered list is as before
    assert _walked(world, f"/app/{app}/msg", limit="9")[0] == ids[::-1]


def test_the_attempts_for_a_message_are_found_without_reading_what_lies_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a message that is tried for hours, at an endpoint that gets others meanwhile
    world = WebhooksWorld()
    app = world.make_app()
    world.make_endpoint(app, URL)
    world.sender.script(URL, 500, 500, 500, 200)
    message = world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})["id"]
    world.run(seconds=3 * 3600)
    for _ in range(20):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
        world.run(seconds=600)
    log, asked = world.ports.message_log, []
    real = log.attempts

    def attempts(project: str, endpoint: str, span: KeyRange, *, engine_id: str | None = None) -> Any:
        asked.append(time_of(span.below or "") - time_of(span.above or ""))
        return real(project, endpoint, span, engine_id=engine_id)

    monkeypatch.setattr(log, "attempts", attempts)
    # When its attempts are asked for
    found = world.ask("GET", f"/app/{app}/attempt/msg/{message}")["data"]
    # Then they are there, and only the moments of each were looked at
    assert [each["statusText"] for each in found] == ["success", "fail", "fail", "fail"]
    assert len(asked) == 4
    assert max(asked) <= 4
    # And an attempt that was not logged does not hide earlier ones
    key = next(each for each in log._attempts.values() if each.number == 3 and each.status_code == 500)
    del log._attempts[key.project, key.endpoint_id, key.attempt_id]
    found = world.ask("GET", f"/app/{app}/attempt/msg/{message}")["data"]
    assert [each["statusText"] for each in found] == ["success", "fail", "fail"]
