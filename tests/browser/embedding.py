"""A server of a provider's own page, which shows a portal in a frame with npm's svix-react, unmodified."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from contextlib import ExitStack
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.fakes.loopback import serving
from tests.stack.node import node_packages

ICON = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="#c00"/></svg>'
SOURCE = Path(__file__).with_name("embedder.jsx")


@cache
def bundle() -> tuple[bytes, bytes]:
    """Script and style of the page.

    Raises:
        NodeMissing: There is no Node or no npm here.
    """
    folder = node_packages("portal-node")
    shutil.copy(SOURCE, folder)
    bundled = folder / "made"
    command = [str(folder / "node_modules/.bin/esbuild"), SOURCE.name, "--bundle", "--minify", f"--outdir={bundled}"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return (bundled / "embedder.js").read_bytes(), (bundled / "embedder.css").read_bytes()


class Embedder:
    """A page at an origin of its own: ``localhost`` is another site than the stack's 127.0.0.1."""

    def __init__(self) -> None:
        self.props: dict[str, Any] = {}
        self.asked: list[str] = []
        self._open = ExitStack()
        self.origin = self._open.enter_context(serving(self._handler())).replace("127.0.0.1", "localhost")

    def __enter__(self) -> Embedder:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _answer(self, path: str) -> tuple[str, bytes]:
        script, style = bundle()
        if path == "/embedder.js":
            return "text/javascript", script
        if path == "/embedder.css":
            return "text/css", style
        if path == "/icon.svg":
            return "image/svg+xml", ICON
        props = html.escape(json.dumps(self.props), quote=False).replace("&amp;", "&")
        return (
            "text/html; charset=utf-8",
            (
                "<!doctype html><html lang=en><title>Provider</title><link rel=stylesheet href=/embedder.css>"
                f"<script id=props type=application/json>{props}</script><div id=root></div>"
                "<script src=/embedder.js></script>"
            ).encode(),
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        embedder = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                embedder.asked.append(self.path)
                kind, content = embedder._answer(self.path.partition("?")[0])
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler
