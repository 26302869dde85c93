"""Frames of portals: which origins may be allowed, and what the public id in a URL names."""

from __future__ import annotations

import pytest

from pushhub.webhooks.model.portal_frame import PortalFrame, frame_named, is_origin

PROJECT = "0123456789abcdef01234567"
APP = "app_" + "a" * 27


@pytest.mark.parametrize(
    "text",
    [
        "https://app.example.com",
        "https://app.example.com:8443",
        "https://xn--bcher-kva.example",
        "https://[2001:db8::1]",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:8080",
    ],
)
def test_an_origin_is_what_a_browser_says_of_a_page(text: str) -> None:
    assert is_origin(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "https:",
        "https://",
        "https://*",
        "https://*.example.com",
        "https://app.example.com/",
        "https://app.example.com/portal",
        "https://app.example.com?a=b",
        "https://user@app.example.com",
        "https://App.example.com",
        "https://app.example.com:443",
        "https://app.example.com:0",
        "https://[:::::]",
        "https://[::0001]",
        "https://[1:2:3]",
        "https://127.1",
        "https://a..b",
        "https://app.example.com:65536",
        "http://localhost:80",
        "http://app.example.com",
        "http://localhost.example.com",
        "https://b\u00fccher.example",
        "https://app.example.com; script-src *",
        "https://app.example.com 'unsafe-inline'",
        "https://app.example.com\n",
        "https://" + "a." * 130 + "example",
        "ftp://app.example.com",
        "null",
        "'self'",
        "data:",
    ],
)
def test_nothing_else_is_one(text: str) -> None:
    assert not is_origin(text)


@pytest.mark.parametrize("frame", [PortalFrame(project=PROJECT), PortalFrame(project=PROJECT, app_id=APP)])
def test_a_public_id_names_a_frame(frame: PortalFrame) -> None:
    assert frame_named(frame.name) == frame


@pytest.mark.parametrize("name", ["", "x y", "x/y", PROJECT + ".", f".{APP}", f"{PROJECT}.x", f"{PROJECT}.{APP}.{APP}"])
def test_other_texts_name_none(name: str) -> None:
    assert frame_named(name) is None
