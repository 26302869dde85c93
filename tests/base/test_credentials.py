"""What opens something in a destination's settings is found, hidden and revealed again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.credentials import (
    MASK,
    USER,
    hidden_in,
    masked_headers,
    masked_url,
    named_like_a_secret,
    place_of,
    revealed,
    user_of,
    without_credentials,
)


@pytest.mark.parametrize(
    ("url", "user", "masked", "place"),
    [
        ("https://a.example/x", None, "https://a.example/x", "https://a.example"),
        (
            "https://u:p@A.example:81/x?y=u:p@z#@",
            "u:p",
            f"https://{MASK}@A.example:81/x?y=u:p@z#@",
            "https://a.example:81",
        ),
        ("https://u@p@a.example", "u@p", f"https://{MASK}@a.example", "https://a.example"),
        ("https://@a.example/", "", f"https://{MASK}@a.example/", "https://a.example"),
        ("https://u@a.example:443/x", "u", f"https://{MASK}@a.example:443/x", "https://a.example"),
        ("HTTP://[::1]:80", None, "HTTP://[::1]:80", "http://[::1]"),
        ("http://a.example:443", None, "http://a.example:443", "http://a.example:443"),
        ("webhooks:https://a:443/x", None, "webhooks:https://a:443/x", "webhooks:https://a"),
        ("https://a.example/u:p@b", None, "https://a.example/u:p@b", "https://a.example"),
        ("https://a.example?u:p@b", None, "https://a.example?u:p@b", "https://a.example"),
        ("ironmq://p:t@/q", "p:t", f"ironmq://{MASK}@/q", "ironmq://"),
        ("webhooks:https://u:p@a/x", "u:p", f"webhooks:https://{MASK}@a/x", "webhooks:https://a"),
        ("hub:incoming", None, "hub:incoming", ""),
        ("notification2://topic?source=1", None, "notification2://topic?source=1", "notification2://topic"),
        ("", None, "", ""),
    ],
)
def test_the_user_information_of_a_url(url: str, user: str | None, masked: str, place: str) -> None:
    assert (user_of(url), masked_url(url), place_of(url)) == (user, masked, place)
    assert masked_url(masked) == masked


USERS = st.text(st.characters(exclude_characters="/?#", codec="utf-8"), min_size=1)
HEADERS = st.dictionaries(st.sampled_from(["Authorization", "X-A", "Cookie", "Accept", "content-TYPE"]), st.text())


@given(st.none() | USERS, HEADERS)
def test_what_is_hidden_is_shown_nowhere_and_comes_back_whole(user: str | None, headers: dict[str, str]) -> None:
    url = f"https://{user}@a.example/x" if user is not None else "https://a.example/x"
    hidden = hidden_in(url, headers)
    shown = masked_url(url), masked_headers(headers)
    assert revealed(*shown, hidden) == (url, headers)
    # What is hidden already is not hidden again
    assert hidden_in(*shown) == {}
    assert shown[0] in ("https://a.example/x", f"https://{MASK}@a.example/x")
    assert {name for name, value in shown[1].items() if value not in ("", MASK)} <= {"Accept", "content-TYPE"}
    assert hidden.get(USER, MASK) == (user or MASK)


@pytest.mark.parametrize("name", ["api_key", "Password", "accessToken", "CLIENT_SECRET", "x-auth", "set-cookie"])
def test_names_of_secrets(name: str) -> None:
    assert named_like_a_secret(name)


@pytest.mark.parametrize("name", ["since", "shop_name", "x-op", "quantity", "limit"])
def test_other_names(name: str) -> None:
    assert not named_like_a_secret(name)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"ok", b"ok"),
        (b"you sent hunter22 as key", b"you sent ******** as key"),
        (b"a token: Bearer abc.def-123", b"a token: Bearer ********"),
        (b"/u/tenant:pa%20ssword", b"/u/********"),
        (b"pa ssword", b"********"),
        (b"application/json of abc", b"application/json of abc"),
    ],
)
def test_an_answer_that_says_what_it_was_sent_is_hidden_there(body: bytes, shown: bytes) -> None:
    headers = {"X-Key": "hunter22", "Accept": "application/json", "X-Short": "abc"}
    assert without_credentials(body, "https://tenant:pa%20ssword@shop.example/in", headers) == shown
