"""The subscriber URL that makes a queue feed a topic:
``notification2://{topic}?api=events&source=111&action=CREATE&nonPersistent=true``.

Everything but the topic may be left out. Without ``source`` the notification is about the ``source`` (or ``source.id``)
that a JSON body names, else about the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from pushhub.base.errors import Invalid
from pushhub.base.json_text import NotJson, read
from pushhub.notifications.model.subscription import APIS
from pushhub.notifications.wire.publish import ACTIONS
from pushhub.notifications.wire.subscriptions import parse_name, parse_source_id

SCHEME = "notification2"

_PARAMETERS = frozenset({"api", "source", "action", "nonPersistent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUrl:
    """The topic that a queue's messages go to, and the notifications they become.

    Attributes:
        topic: Name of the topic.
        non_persistent: Whether it is the non-persistent topic of that name.
        api: Type of the notifications.
        action: Their action.
        source: Their source; empty to take it from each message.
    """

    topic: str
    non_persistent: bool = False
    api: str = "events"
    action: str = "CREATE"
    source: str = ""


def parse_topic_url(url: str) -> TopicUrl:
    """Read a subscriber URL.

    Raises:
        Invalid: Another scheme, no topic, or a parameter that is unknown, repeated or wrong.
    """
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise Invalid("subscriber url is malformed") from error
    if parts.scheme.lower() != SCHEME or parts.path not in ("", "/") or parts.fragment:
        raise Invalid(f"subscriber url must look like {SCHEME}://topic?api=events&source=111")
    query = dict(pairs)
    if len(query) != len(pairs) or not query.keys() <= _PARAMETERS:
        raise Invalid(f"parameters of a {SCHEME} url are {', '.join(sorted(_PARAMETERS))}, each once")
    api, action = query.get("api", "events"), query.get("action", "CREATE")
    if api not in APIS or action not in ACTIONS or query.get("nonPersistent", "false") not in ("true", "false"):
        raise Invalid(f"a parameter of the {SCHEME} url has a value that is not allowed")
    return TopicUrl(
        topic=parse_name(parts.netloc),
        non_persistent=query.get("nonPersistent") == "true",
        api=api,
        action=action,
        source=parse_source_id(query["source"]) if "source" in query else "",
    )


def source_in(body: bytes, otherwise: str) -> str:
    """The source named in a message's body if it is JSON and names one; otherwise the given name, made safe for a
    header.
    """
    try:
        fields = read(body, last_wins=True)
        named = fields.get("source") if isinstance(fields, dict) else None
        return parse_source_id(named.get("id") if isinstance(named, dict) else named)
    except (NotJson, Invalid):
        return "".join(each if each.isprintable() and each != "/" else "_" for each in otherwise)[:200] or "_"
