"""What the descriptions of the webhooks API have in common: schemas of fields, examples, and pages of lists."""

from __future__ import annotations

from typing import Any

from pushhub.web.description import Described, Schema, answer, array, boolean, nullable, ref, text, whole

AT = "2026-11-22T05:34:16.123Z"
"""A time, for examples."""
TIME = text("RFC 3339, UTC.")
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
UID = text("Your own id for it.", pattern=r"^[a-zA-Z0-9\-_.]{1,256}$")
RATE = whole("Messages per second.", 1, 65_535)
TOO_FAR = "It has passed ten queues, sources and applications"
"""What a request is refused with that other hubs, or this one, have sent round in circles."""
ENDPOINT_ID = "ep_3MRPxozw7TPC3MSkZFTrdbEFpc6"


def listed(item: Schema) -> Schema:
    """A page of a list."""
    return answer(
        {
            "data": array(item),
            "iterator": nullable(text("Where the next page begins.")),
            "prevIterator": text("Where the previous page ends."),
            "done": boolean("Whether this is the last page."),
        },
        lacks=("prevIterator",),
    )


def listing(item: Any, key: str) -> dict[str, Any]:
    """An example of a page of one item."""
    return {"data": [item], "iterator": key, "prevIterator": f"-{key}", "done": True}


def page(schema: str, example: Any, key: str, means: str = "") -> Described:
    """A route that lists."""
    item = ref(schema)
    return Described(means=means, asked={"limit": "50"}, answer=listed(item), answered=listing(example, key))
