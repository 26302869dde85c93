"""Names chosen by tenants, safe to show: never markup, never a separate line, never longer than their place."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that break lines, turn the direction of writing, or cannot be seen."""

_WITHOUT_NAME: Final = {"*": "any", "line": "whoever pulls"}
"""What subscribers are called whom nobody has named: any one of a queue's, and the consumers of a pull queue."""


def called(subscriber: str | None, subscriber_id: str) -> str:
    """What a subscriber is called: its name, or its id when it has none."""
    return subscriber or _WITHOUT_NAME.get(subscriber_id, subscriber_id)


def visible(text: str) -> str:
    """The text with everything that cannot be seen, breaks a line or turns the direction of writing made visible as
    U+FFFD.
    """
    return "".join(_REPLACEMENT if unicodedata.category(each) in _UNSEEN else each for each in text)


def shortened(text: str, longest: int) -> str:
    """The text, visible and with its middle left out when it is longer than ``longest`` characters."""
    shown = visible(text)
    if len(shown) <= longest:
        return shown
    head = (longest - 1) // 2
    return f"{shown[: longest - 1 - head]}…{shown[-head:]}"


def as_html(text: str, longest: int = 60) -> str:
    """The text of a tenant as an element of HTML: escaped, its direction of writing kept to itself, whole in its title
    when it is longer than what is shown.
    """
    shown = shortened(text, longest)
    title = f' title="{escape(visible(text))}"' if shown != text else ""
    return f"<bdi{title}>{escape(shown)}</bdi>"


def as_duration(milliseconds: int | None) -> str:
    """A time in its largest unit; a dash where there is none."""
    if milliseconds is None:
        return "–"
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g}\N{NO-BREAK SPACE}{unit}"
    return f"{milliseconds}\N{NO-BREAK SPACE}ms"
