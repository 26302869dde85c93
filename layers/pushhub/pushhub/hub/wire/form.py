"""Web forms with nested names, as the admin client and the hub's documentation send them (``integration[name]=acme``,
``messages[]=a``).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

from pushhub.base.errors import Invalid

MAX_FIELDS = 2000
MAX_NESTING = 6

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)\Z")


def parse_form(text: str) -> dict[str, Any]:
    """The fields of a form: ``a[b]`` is b inside the object a, ``a[]`` adds an element to the array a.

    Raises:
        Invalid: Malformed, too many fields, or a name used both as an object and as a value.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise Invalid("is not a readable form") from error
    fields: dict[str, Any] = {}
    for name, value in pairs:
        match = _NAME.match(name)
        if match is None:
            raise Invalid(f"has a field that cannot be read: {name[:50]}")
        path = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])]
        if len(path) > MAX_NESTING:
            raise Invalid(f"is nested deeper than {MAX_NESTING} levels")
        _put(fields, path, value)
    return fields


def _put(fields: dict[str, Any], path: list[str], value: str) -> None:
    target: Any = fields
    for key, following in pairwise(path):
        if isinstance(target, list):
            target = _element(target, following)
            continue
        target = target.setdefault(key, [] if following == "" else {})
        if not isinstance(target, dict | list) or (following == "") is not isinstance(target, list):
            raise Invalid(f"uses the field {path[0]} in two different ways")
    if isinstance(target, list):
        target.append(value)
    elif isinstance(target.get(path[-1]), dict | list):
        raise Invalid(f"uses the field {path[0]} in two different ways")
    else:
        target[path[-1]] = value


def _element(items: list[Any], key: str) -> dict[str, Any]:
    """The object in an array that a field belongs to: ``a[][b]`` starts a new one when the last has a b already (as
    Rails does).
    """
    last = items[-1] if items else None
    if not isinstance(last, dict) or key in last:
        last = {}
        items.append(last)
    return last
