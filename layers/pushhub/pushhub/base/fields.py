"""What stands on a field of a data class besides name, type and default: its meaning, its bounds, how it is stored.

Pure data. Readers, views and schemas of settings come from it (:mod:`pushhub.web.settings`), and
the items in which values are stored (:mod:`pushhub.cloud.records`), as the columns of the delivery records come from
theirs (:mod:`pushhub.engine.model.record`). Add a setting here and where it has its effect, and nowhere else by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Final

_SETTING: Final = "setting"
_STORED: Final = "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A field that owners set.

    Attributes:
        means: Its meaning, in a sentence or more.
        least: The smallest number it may be, or the fewest characters.
        most: The greatest number, or the most characters.
        zero: Whether zero is a number like others; else it stands for "not given", as clients of IronMQ send it.
        left_out: What a new object has without it, for the description of a request; empty if ``means`` says it.
        shown: Its meaning in an answer, if that is another; empty for none.
        hidden: Whether an answer leaves it out while it has its default.
        wire: Its names in requests and answers, the newest first; empty for the field's own.
    """

    means: str
    least: int | None = None
    most: int | None = None
    zero: bool = False
    left_out: str = ""
    shown: str | None = None
    hidden: bool = False
    wire: tuple[str, ...] = ()

    def names(self, name: str) -> tuple[str, ...]:
        """Its names in requests and answers, the newest first, from the field's own."""
        return self.wire or (name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How a field is stored, where that is not under its own name and always.

    Attributes:
        name: Its attribute; None for the field's own name.
        key: Whether it stands elsewhere, as in the item's key, so it has no attribute by itself.
        sparse: Whether it is left out while it has its default.
    """

    name: str | None = None
    key: bool = False
    sparse: bool = False


_PLAIN: Final = Stored()
KEY: Final = Stored(key=True)
"""A field that the key of the item says."""
APART: Final = KEY
"""A field that its store writes and reads by itself."""
SPARSE: Final = Stored(sparse=True)
"""A field that is left out while it has its default."""


def field_metadata(setting: Setting | None = None, stored: Stored = _PLAIN) -> Mapping[str, Any]:
    """Metadata of a field.

    Args:
        setting: What owners may set; None for a field that is not theirs.
        stored: How it is stored.
    """
    return {_SETTING: setting, _STORED: stored}


def settings_of(cls: type) -> Iterator[tuple[str, str, Any, Setting]]:
    """The settings of a data class: name, annotation, default and what was told of each, in the class's order."""
    for each in fields(cls):
        setting = each.metadata.get(_SETTING)
        if setting is not None:
            yield each.name, str(each.type), _default(each), setting


def setting_of(cls: type, name: str) -> Setting:
    """What was told of one setting.

    Raises:
        KeyError: It is none.
    """
    return {each: setting for each, _, _, setting in settings_of(cls)}[name]


def stored_of(cls: type) -> Iterator[tuple[str, str, Any, Stored]]:
    """The stored fields of a data class: name, annotation, default value and how each is stored."""
    for each in fields(cls):
        stored = each.metadata.get(_STORED, _PLAIN)
        if not stored.key:
            yield each.name, str(each.type), _default(each), stored


def _default(each: Field[Any]) -> Any:
    factory: Any = each.default_factory
    return factory() if callable(factory) else each.default
