"""A folder of static files as answers to HTTP API events: compressed, cached by their content, under a strict policy.

There is no build step. The path of each file except the page itself contains a digest of all files
(``/console/{digest}/app.js``), so browsers can cache them forever and still see a new deployment at once, and modules
that import each other by relative paths always belong to the same version. The page is revalidated each time, and
answered with 304 while it is unchanged (RFC 9110, section 13.1.2).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.web.http import accepts_gzip, request_from_event

PAGE = "index.html"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_EACH_TIME = "no-cache"
METHODS = ("GET", "HEAD")
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""Content types by a file's suffix; others are not served."""
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SMALL = 256
"""Bytes below which compression is not worth it."""


def content_security_policy(
    *,
    connect: tuple[str, ...] = (),
    framers: tuple[str, ...] = (),
    inline: bool = False,
    markup: tuple[str, ...] = (),
) -> str:
    """What a page may load and where it may connect (CSP level 3): its own files and address.

    No inline scripts or styles, and no turning text into markup (Trusted Types).

    Args:
        connect: Further addresses that it may connect to.
        framers: Origins of pages that may show it in a frame, and whose images it may show.
        inline: Whether styles and images may be inline, as a library needs them.
        markup: Names of the Trusted Types policies of libraries that make markup of text.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self' 'unsafe-inline'" if inline else "style-src 'self'",
            " ".join(("img-src 'self'", *(("data:",) if inline else ()), *framers)),
            " ".join(("connect-src 'self'", *connect)),
            "base-uri 'none'",
            "form-action 'none'",
            " ".join(("frame-ancestors", *(framers or ("'none'",)))),
            "require-trusted-types-for 'script'",
            " ".join(("trusted-types", *(markup or ("'none'",)))),
        )
    )


FRAMEABLE = {"Cross-Origin-Resource-Policy": "cross-origin", "Cross-Origin-Embedder-Policy": "credentialless"}
"""Headers of a page in a frame, so that pages that isolate themselves may show it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """How the page is served at an address at which it may be shown in a frame.

    Attributes:
        origins: Of the pages that may show it; none if there are none.
        policy: The value of ``Content-Security-Policy``.
    """

    origins: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class _File:
    """One file, ready to be sent."""

    content_type: str
    cached: str
    plain: bytes
    compressed: bytes

    @classmethod
    def of(cls, name: str, content: bytes, cached: str) -> _File:
        compressed = gzip.compress(content, mtime=0) if len(content) > SMALL else content
        return cls(TYPES[Path(name).suffix], cached, content, compressed)

    def tag(self, *, compressed: bool) -> str:
        return f'"{hashlib.sha256(self.plain).hexdigest()[:32]}{"-gzip" if compressed else ""}"'


class Site:
    """A folder of static files below a path.

    Args:
        folder: The files. In ``index.html``, ``{files}`` becomes the path of all others and ``{preload}`` the links
            that load all modules in parallel. ``{frame}`` becomes who may show it in a frame.
        path: The URL path they are served under, without a trailing slash.
        policy: The value of ``Content-Security-Policy``.
        configuration: Served as ``config.json``: what the page needs to know about this deployment.
        framed: The page below ``p/``, by what follows; None for an address that there is not.
    """

    def __init__(
        self,
        folder: Path,
        *,
        path: str,
        policy: str,
        configuration: Mapping[str, object],
        framed: Callable[[str], Framed | None] = lambda _: None,
    ) -> None:
        contents = {
            each.relative_to(folder).as_posix(): each.read_bytes()
            for each in sorted(folder.rglob("*"))
            if each.is_file() and each.suffix in TYPES
        }
        page = contents.pop(PAGE)
        digest = hashlib.sha256()
        for name, content in contents.items():
            digest.update(b"%d %d " % (len(name), len(content)) + name.encode() + content)
        files = f"{path}/{digest.hexdigest()[:16]}"
        modules = (each for each in contents if each.endswith(".js"))
        preload = "\n".join(f'<link rel="modulepreload" href="{files}/{each}">' for each in modules)
        page = page.replace(b"{preload}", preload.encode()).replace(b"{files}", files.encode())
        self._page = _File.of(PAGE, page.replace(b"{frame}", b""), ASK_EACH_TIME)
        self._source = page
        self._framed = framed
        self._path = path
        self._policy = policy
        self._files = {f"{files}/{name}": _File.of(name, content, FOR_EVER) for name, content in contents.items()}
        configured = json_text.write(dict(configuration), sort_keys=True).encode()
        self._files[f"{path}/config.json"] = _File.of("config.json", configured, ASK_EACH_TIME)

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an HTTP API event (payload format 2.0): a file, 304 if the client has it already, 404, or 405 with
        ``Allow``.
        """
        try:
            request = request_from_event(event)
        except Invalid as error:
            return self._plain(400, str(error))
        if request.method not in METHODS:
            return self._plain(405, "Method not allowed", Allow=", ".join(METHODS))
        path = request.path.rstrip("/")
        below = path.removeprefix(f"{self._path}/p/")
        framed = self._framed(below) if below != path else None
        file = self._page if path == self._path else self._files.get(path)
        if framed is not None:
            file = self._page_in_frame(below, framed)
        if file is None:
            return self._plain(404, "Not found")
        compressed = accepts_gzip(request) and file.compressed is not file.plain
        tag = file.tag(compressed=compressed)
        headers = {**self._headers(file.content_type), "Cache-Control": file.cached, "ETag": tag}
        if framed is not None:
            headers |= {**FRAMEABLE, "Content-Security-Policy": framed.policy}
        if _has(request.headers.get("if-none-match", ""), tag):
            return _response(304, headers, b"")
        if compressed:
            headers["Content-Encoding"] = "gzip"
        content = file.compressed if compressed else file.plain
        return _response(200, headers, b"" if request.method == "HEAD" else content)

    def _page_in_frame(self, name: str, framed: Framed) -> _File:
        """The page, which says who may show it: its content changes with its policy, and so does its tag."""
        origins = escape(" ".join(framed.origins))
        known = f'<meta name="pushhub-frame" content="{escape(name)}" data-origins="{origins}">'
        return _File.of(PAGE, self._source.replace(b"{frame}", known.encode()), ASK_EACH_TIME)

    def _plain(self, status: int, message: str, **more: str) -> dict[str, Any]:
        headers = {**self._headers(TYPES[".txt"]), "Cache-Control": "no-store", **more}
        return _response(status, headers, f"{message}\n".encode())

    def _headers(self, content_type: str) -> dict[str, str]:
        return {
            "Content-Type": content_type,
            "Content-Security-Policy": self._policy,
            "Vary": "Accept-Encoding",
            **COMMON,
        }


def _has(if_none_match: str, tag: str) -> bool:
    """Whether the client already has the version with this tag. Tags are compared weakly, as the gateway or a proxy may
    have weakened one.
    """
    given = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return tag in given or "*" in given


def _response(status: int, headers: dict[str, str], content: bytes) -> dict[str, Any]:
    body = base64.b64encode(content).decode()
    return {"statusCode": status, "headers": headers, "body": body, "isBase64Encoded": True}
