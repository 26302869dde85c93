"""The files of the console and of the API reference: what the function packages, and what of it is not ours."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import runpy
from pathlib import Path

import pytest
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.gateway import http_event

from pushhub.base.errors import Unavailable
from pushhub.cloud.clients import Clients
from pushhub.webhooks.model.portal_frame import PortalFrame
from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames

FUNCTION = Path(__file__).parents[2] / "functions" / "console"
STATIC = FUNCTION / "static"
REFERENCE = FUNCTION / "reference"
MODULES = sorted(
    each for folder in (STATIC, REFERENCE) for each in folder.rglob("*.js") if each.parent.name != "vendor"
)
VENDORS = (STATIC / "vendor", REFERENCE / "vendor")
LISTED = re.compile(r"^(\S+\.js) +(\S+) +\S+ +([0-9a-f]{64}) ", re.MULTILINE)
VENDORED = [(vendor, *each) for vendor in VENDORS for each in LISTED.findall((vendor / "README.txt").read_text())]


def answer(path: str) -> tuple[int, dict[str, str], bytes]:
    """What the function answers, made anew from its folder as Lambda does."""
    handler = runpy.run_path(str(FUNCTION / "handler.py"))["handler"]
    path, _, query = path.partition("?")
    reported = handler(http_event("GET", path, query=query), None)
    return reported["statusCode"], reported["headers"], base64.b64decode(reported["body"])


def test_the_function_serves_the_console_and_lets_it_connect_to_its_own_address() -> None:
    status, headers, page = answer("/console")
    assert status == 200
    assert "connect-src 'self';" in headers["Content-Security-Policy"]
    assert json.loads(answer("/console/config.json")[2]) == {"websocket": ""}
    for link in re.findall(rb'"(/console/[^"]+)"', page):
        assert answer(link.decode())[0] == 200, link


def test_consumers_may_connect_to_the_websocket_api_where_it_has_an_address_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "wss://abc123.execute-api.eu-central-1.amazonaws.com/live"
    monkeypatch.setenv("WEBSOCKET_URL", url)
    _, headers, _ = answer("/console")
    assert (
        "connect-src 'self' wss://abc123.execute-api.eu-central-1.amazonaws.com;" in headers["Content-Security-Policy"]
    )
    assert json.loads(answer("/console/config.json")[2]) == {"websocket": url}


def test_the_page_has_no_inline_script_or_style_and_nothing_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="{files}/start.js">']
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)
    assert "//" not in page


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(FUNCTION).as_posix())
def test_a_module_makes_no_markup_of_text_and_imports_its_neighbours_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\bstyle="
    assert not re.search(banned, text)
    for imported in re.findall(r"""(?:from|import)\s+\(?["']([^"']+)["']""", text):
        assert imported.startswith(("./", "../")), imported
        assert (path.parent / imported).resolve().is_file(), imported


@pytest.mark.parametrize(("vendor", "name", "package", "digest"), VENDORED)
def test_a_library_is_the_packages_own_file_and_has_its_licence(
    vendor: Path, name: str, package: str, digest: str
) -> None:
    content = (vendor / name).read_bytes()
    as_packed = content.replace(b'from"./preact.js"', b'from"preact"')
    assert hashlib.sha256(as_packed).hexdigest() == digest
    assert (vendor / f"LICENSE.{package.split('@', maxsplit=1)[0]}.txt").is_file()


def test_no_library_is_unlisted() -> None:
    assert {vendor / name for vendor, name, _, _ in VENDORED} == {
        each for vendor in VENDORS for each in vendor.glob("*.js")
    }


def test_the_function_serves_the_reference_which_loads_nothing_from_elsewhere_and_no_inline_script() -> None:
    status, headers, page = answer("/docs")
    assert status == 200
    for link in re.findall(rb'"(/docs/[^"]+)"', page):
        assert answer(link.decode())[0] == 200, link
    reported = policy(headers)
    assert (reported["default-src"], reported["script-src"], reported["connect-src"]) == ("'none'", "'self'", "'self'")
    assert (reported["frame-ancestors"], reported["form-action"], reported["trusted-types"]) == (
        "'none'",
        "'none'",
        "lit-html",
    )
    (script,) = re.findall(rb"<script[^>]*>", page)
    assert re.fullmatch(rb'<script type="module" src="/docs/[0-9a-f]+/start.js">', script)
    assert not re.search(rb"\s(style|on\w+)=|https?://", page)
    # And the console gets nothing of it
    assert b"openapi-explorer" not in answer("/console")[2]


PROJECT, APP = "0123456789abcdef01234567", "app_" + "a" * 27


def policy(headers: dict[str, str]) -> dict[str, str]:
    """The directives of a page's policy."""
    parts = (each.partition(" ") for each in headers["Content-Security-Policy"].split("; "))
    return {name: value for name, _, value in parts}


def test_pages_of_stored_origins_and_no_others_may_show_a_portal_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    with aws.dynamodb() as client:
        # Given an application with two origins
        monkeypatch.setenv("WEBHOOKS_TABLE", aws.WEBHOOKS_TABLE)
        monkeypatch.setattr(Clients, "of", lambda self, service: client)
        origins = ("https://a.example", "https://b.example:8443")
        frame = PortalFrame(project=PROJECT, app_id=APP, origins=origins)
        DynamoDBPortalFrames(client, aws.WEBHOOKS_TABLE, FakeClock()).put_frame(frame)
        # When its portal is asked for
        status, headers, page = answer(f"/console/p/{frame.name}?primaryColor=ff0000")
        # Then these may show it, and the page knows them
        assert status == 200
        assert policy(headers)["frame-ancestors"] == " ".join(origins)
        assert policy(headers)["script-src"] == "'self'"
        assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        known = f'<meta name="pushhub-frame" content="{PROJECT}.{APP}" data-origins="{" ".join(origins)}">'
        assert known in page.decode()
        # And other portals, unknown ids and the console itself are shown by nobody
        for path in (f"/console/p/{PROJECT}", f"/console/p/{PROJECT}.app_{'b' * 27}", "/console"):
            status, headers, _ = answer(path)
            assert (status, policy(headers)["frame-ancestors"]) == (200, "'none'"), path
        for path in ("/console/p/x%20y", "/console/p/", f"/console/p/{PROJECT}.app_x", f"/console/p/{frame.name}/x"):
            assert answer(path)[0] == 404, path


def test_nobody_may_show_a_portal_while_it_cannot_be_read_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, wanted: PortalFrame) -> PortalFrame:
        raise Unavailable("no answer")

    monkeypatch.setenv("WEBHOOKS_TABLE", "webhooks")
    monkeypatch.setattr(Clients, "of", lambda self, service: None)
    monkeypatch.setattr(DynamoDBPortalFrames, "frame", refuse)
    status, headers, _ = answer(f"/console/p/{PROJECT}")
    assert (status, policy(headers)["frame-ancestors"]) == (200, "'none'")
