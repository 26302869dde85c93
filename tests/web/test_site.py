"""Static files as the gateway's answers: what browsers cache, what they may do, and missing files."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.gateway import http_event

from pushhub.web.site import Site, content_security_policy

LONG = "export const words = 'sphinx of black quartz, judge my vow';\n" * 20


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Browser:
    """Calls a site as the gateway does."""

    site: Site

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.site.answer(http_event(method, path, headers=shown))
        assert answer["isBase64Encoded"] is True
        return Answer(answer["statusCode"], answer["headers"], base64.b64decode(answer["body"]))

    def file(self, name: str) -> str:
        """The path of a file according to the page."""
        found = re.search(rf'"(/console/[0-9a-f]+/{re.escape(name)})"', self.get("/console").body.decode())
        assert found
        return found[1]


def site(folder: Path) -> Site:
    policy = content_security_policy(connect=("wss://sockets.example",))
    return Site(folder, path="/console", policy=policy, configuration={"websocket": "wss://sockets.example/live"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "index.html").write_text('{preload}\n<script type="module" src="{files}/app.js"></script>')
    (tmp_path / "app.js").write_text("import './pages/first.js';")
    (tmp_path / "pages" / "first.js").write_text(LONG)
    (tmp_path / "secrets.env").write_text("TOKEN=1")
    return tmp_path


@pytest.fixture
def browser(folder: Path) -> Browser:
    return Browser(site(folder))


def test_the_page_names_all_modules_and_a_module_lies_where_it_says(browser: Browser) -> None:
    # Given the page
    page = browser.get("/console")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.body.count(b'rel="modulepreload"') == 2
    # When a module is requested at the path in the page
    module = browser.get(browser.file("pages/first.js"))
    # Then it is served, as a script
    assert (module.status, module.body.decode()) == (200, LONG)
    assert module.headers["Content-Type"] == "text/javascript; charset=utf-8"


def test_files_are_kept_for_ever_and_the_page_is_asked_for_each_time(browser: Browser) -> None:
    assert browser.get("/console").headers["Cache-Control"] == "no-cache"
    assert browser.get("/console/config.json").headers["Cache-Control"] == "no-cache"
    assert "immutable" in browser.get(browser.file("app.js")).headers["Cache-Control"]


def test_a_changed_file_has_another_address_and_so_have_those_that_import_it(folder: Path, browser: Browser) -> None:
    # Given a browser's cached files
    before = browser.file("app.js")
    # When a file that it imports is changed
    (folder / "pages" / "first.js").write_text("changed")
    after = Browser(site(folder))
    # Then both are requested again, and the old ones are gone rather than mixed with the new
    assert after.file("app.js") != before
    assert after.get(before).status == 404


@pytest.mark.parametrize("encoding", ["", "gzip, deflate, br"])
def test_what_a_client_has_is_not_sent_again(browser: Browser, encoding: str) -> None:
    # Given a client that has the page
    first = browser.get("/console", accept_encoding=encoding)
    tag = first.headers["ETag"]
    # When it revalidates the page
    for shown in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = browser.get("/console", accept_encoding=encoding, if_none_match=shown)
        # Then it gets a 304, with the caching headers
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == tag
    assert browser.get("/console", accept_encoding=encoding, if_none_match='"other"').status == 200


def test_compressed_for_those_who_take_it(browser: Browser) -> None:
    path = browser.file("pages/first.js")
    small = browser.get(path, accept_encoding="gzip")
    plain = browser.get(path)
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < len(plain.body)
    assert small.headers["ETag"] != plain.headers["ETag"]
    assert small.headers["Vary"] == "Accept-Encoding"


def test_head_is_get_without_a_body_and_nothing_else_is_taken(browser: Browser) -> None:
    head = browser.get("/console", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["ETag"] == browser.get("/console").headers["ETag"]
    refused = browser.get("/console", method="POST")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        "/console/app.js",
        "/console/../secrets.env",
        "/console/secrets.env",
        "/console/index.html",
        "/other",
        "/console/\ufffd",
    ],
)
def test_what_is_no_file_of_the_site_is_not_there(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status in (400, 404)
    assert answer.headers["Cache-Control"] == "no-store"
    assert b"TOKEN" not in answer.body


def test_a_slash_at_the_end_is_no_other_page(browser: Browser) -> None:
    assert browser.get("/console/").body == browser.get("/console").body


@pytest.mark.parametrize("path", ["/console", "/console/config.json", "/nowhere"])
def test_every_answer_says_what_a_browser_may_do_with_it(browser: Browser, path: str) -> None:
    headers = browser.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == "'self' wss://sockets.example"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_learns_what_it_has_to_know(browser: Browser) -> None:
    assert json.loads(browser.get("/console/config.json").body) == {"websocket": "wss://sockets.example/live"}
