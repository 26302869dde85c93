"""Reads JSON from clients and endpoints with limits: nothing they send may cost too much or break a later step."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from pushhub.base.errors import Invalid
from pushhub.base.nesting import is_deeper

MAX_DEPTH = 100
"""Deepest nesting accepted. Deeper documents overflow parsers further on (ours, DynamoDB clients', Spark's)."""


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``.

    Stricter than :func:`json.loads`: no NaN or Infinity (nor a number that becomes one), no unpaired surrogates, no
    nesting deeper than :data:`MAX_DEPTH`. Whatever passes can be written as UTF-8 JSON again.

    Args:
        body: UTF-8, with or without a byte order mark.

    Raises:
        Invalid: With a message that fits after "The body ".
    """
    if is_deeper(body, MAX_DEPTH):
        raise Invalid(f"is nested deeper than {MAX_DEPTH} levels")
    try:
        parsed = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
        json.dumps(parsed, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise Invalid("is not valid Unicode text") from error
    except (ValueError, RecursionError) as error:
        raise Invalid("is not valid JSON") from error
    if not isinstance(parsed, dict):
        raise Invalid("is JSON but not an object")
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
