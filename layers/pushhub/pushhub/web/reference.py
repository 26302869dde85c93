"""An OpenAPI document as one readable page: HTML without scripts, so that its policy can forbid them all."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pushhub.base.json_text import write

_DEEPEST = 4
"""How deep shapes are unfolded; what lies deeper is in the document itself."""

_CODE = re.compile(r"`([^`]+)`")
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "default")

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--link:light-dark(#0b57d0,#8ab4f8);
background:light-dark(#fff,#12151b);color:light-dark(#16181d,#e6e9ef)}
*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}
a{color:var(--link)}h2{border-bottom:1px solid var(--line);margin-top:3rem}h3{font-size:1rem;margin:0;display:inline}
code,pre{font-family:ui-monospace,monospace;font-size:.875rem;overflow-wrap:anywhere}
pre{background:var(--soft);padding:.75rem;overflow-x:auto;white-space:pre-wrap}
details{border:1px solid var(--line);border-radius:.4rem;margin:.5rem 0;padding:.5rem .75rem}summary{cursor:pointer}
.method{display:inline-block;min-width:4.5rem;font-weight:700}
table{border-collapse:collapse;width:100%}th,td{border-top:1px solid var(--line);padding:.3rem .5rem .3rem 0;
text-align:left;vertical-align:top}
ul{padding-left:1.2rem}nav li{display:inline-block;margin-right:1rem}h4{margin:1rem 0 .25rem}
"""

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    + "'"
)
"""The page's Content-Security-Policy: its one style sheet, by its hash, and nothing else."""


def page(document: Mapping[str, Any]) -> str:
    """The page.

    Args:
        document: As :func:`pushhub.web.openapi.document` makes it.
    """
    info = document["info"]
    tags = document["tags"]
    parts = [
        f"<header><h1>{escape(info['title'])} API</h1>",
        (
            f"<p>{_prose(info['description'])} The same for programs: <a "
            f"href='/openapi.json'>openapi.json</a>.</p></header>"
        ),
        "<nav aria-label='APIs'><ul>",
        *(f"<li><a href='#{_anchor(tag['name'])}'>{escape(tag['name'])}</a></li>" for tag in tags),
        "</ul></nav><main>",
    ]
    for tag in tags:
        parts.append(f"<h2 id='{_anchor(tag['name'])}'>{escape(tag['name'])}</h2><p>{_prose(tag['description'])}</p>")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts.append(_operation(document, path, method.upper(), operation))
    body = "\n".join([*parts, "</main>"])
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _operation(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> str:
    name = operation["operationId"]
    parts = [
        (
            f"<details id='{escape(name)}'><summary><h3><span class='method'>{method}</span> "
            f"<code>{escape(path)}</code></h3>"
        ),
        f" {escape(operation['summary'])}</summary>",
    ]
    if "description" in operation:
        parts.append(f"<p>{_prose(operation['description'])}</p>")
    if operation["parameters"]:
        rows = "".join(_parameter(each) for each in operation["parameters"])
        parts.append(f"<h4>Parameters</h4><table><tr><th>Name<th>Where<th>What</tr>{rows}</table>")
    parts.append(f"<h4>Credentials</h4><p>{_credentials(document, operation)}</p>")
    for content_type, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h4>Body: <code>{escape(content_type)}</code></h4>")
        parts += _fields(document, content["schema"], _DEEPEST)
        if "example" in content:
            parts.append(f"<pre>{_json(content['example'])}</pre>")
    parts.append("<h4>Answers</h4>")
    for status, response in operation["responses"].items():
        parts.append(f"<p><strong>{status}</strong> {escape(response['description'])}</p>")
        if status[0] in "123":
            for content in response.get("content", {}).values():
                parts += _fields(document, content["schema"], _DEEPEST)
                if "example" in content:
                    parts.append(f"<pre>{_json(content['example'])}</pre>")
    return "".join([*parts, "</details>"])


def _parameter(parameter: Mapping[str, Any]) -> str:
    needed = "" if parameter["required"] else "optional; "
    means = f"{needed}{_kind(parameter['schema'])} {_prose(parameter['description'])}"
    return f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']}<td>{means}</tr>"


def _credentials(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    schemes = document["components"]["securitySchemes"]
    names = [name for each in operation["security"] for name in each]
    if not names:
        return "No token of a project."
    return " Or: ".join(_prose(schemes[name].get("description", name)) for name in names)


def _fields(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The fields of an object, or of the objects in a list, as a collapsible list."""
    schema = _resolved(document, schema)
    if "items" in schema:
        yield from _fields(document, schema["items"], depth)
    for each in schema.get("anyOf", ()):
        yield from _fields(document, each, depth)
    if not schema.get("properties") or not depth:
        return
    yield "<ul>"
    for name, field in schema["properties"].items():
        shown = _resolved(document, field)
        needed = (
            " <em>required</em>" if name in schema.get("required", ()) and "additionalProperties" not in schema else ""
        )
        yield f"<li><code>{escape(name)}</code> {_kind(shown)}{needed} {_prose(shown.get('description', ''))}"
        yield from _fields(document, shown, depth - 1)
        yield "</li>"
    yield "</ul>"


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    """Type and bounds in a few words."""
    kind = schema.get("type", "")
    words = [" or ".join(kind) if isinstance(kind, list) else kind]
    if "enum" in schema:
        words = [" | ".join(str(each) for each in schema["enum"])]
    words += [f"{name} {schema[name]}" for name in _BOUNDS if name in schema]
    told = ", ".join(each for each in words if each)
    return f"<small>{escape(told)}</small>" if told else ""


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _json(value: Any) -> str:
    return escape(write(value, indent=2))


def _anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
