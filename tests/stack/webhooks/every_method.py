"""Calls methods of Svix's client, one after the other, and prints what became of each. It runs where the client is
installed (tests/stack/webhooks/test_every_method.py), with a hub's address as its argument.

Each line of its standard input is a call as JSON: ``resource`` (a class of the client), ``method``, ``names`` (its
path's), ``body`` and ``token``. Each line of its standard output is what became of one: a text, empty if it went well.
"""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import svix
from svix.exceptions import HttpError, HTTPValidationError


def resources(of: Any) -> Iterator[tuple[str, Any]]:
    """Every resource that a client reaches by its properties, with the name of its class."""
    for name, found in inspect.getmembers(type(of), lambda each: isinstance(each, property)):
        if found.fget.__module__.startswith("svix.api"):
            resource = getattr(of, name)
            yield type(resource).__name__, resource
            yield from resources(resource)


@cache
def client(base_url: str, token: str) -> Mapping[str, Any]:
    """A client's resources."""
    return dict(resources(svix.Svix(token, svix.SvixOptions(server_url=base_url, timeout=60.0, retry_schedule=[]))))


def call(base_url: str, wanted: Mapping[str, Any]) -> str:
    """What became of a call."""
    method = getattr(client(base_url, wanted["token"])[wanted["resource"]], wanted["method"])
    arguments = list(wanted["names"])
    for name, kind in typing.get_type_hints(method).items():
        if hasattr(kind, "model_validate") and name != "return":
            arguments.append(kind.model_validate(wanted["body"] or {}))
    try:
        method(*arguments)
    except HTTPValidationError as error:
        return f"{error.status_code} {[each.msg for each in error.detail]}"
    except HttpError as error:
        return f"{error.status_code} {error.code} {error.detail}"
    except Exception as error:  # noqa: BLE001 (an answer that it cannot read, for example)
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(call(sys.argv[1], json.loads(line))) + "\n")
        sys.stdout.flush()
