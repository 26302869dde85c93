"""Settings in requests and answers, as they stand on the fields of a data class (:mod:`pushhub.base.fields`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pushhub.base.errors import Invalid
from pushhub.base.fields import Setting, settings_of
from pushhub.web.json import Fields, boolean, integer, text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Of = TypeVar("Of", bound="DataclassInstance")

UNBOUNDED = 2**63


class Given(Generic[Of]):
    """The settings that a request has, of the fields of a class; those that it lacks read None.

    Args:
        values: By the names of fields.
    """

    def __init__(self, cls: type[Of], values: Mapping[str, Any]) -> None:
        self._cls = cls
        self._values = values

    def __getattr__(self, name: str) -> Any:
        """The value of a field."""
        if name not in self._cls.__dataclass_fields__:
            raise AttributeError(name)
        return self._values.get(name)

    def applied(self, to: Of, **instead: Any) -> Of:
        """A value with these settings."""
        return replace(to, **{**self._values, **instead})


def read(cls: type[Of], fields: Fields, **more: Callable[[Fields, str], Any]) -> Given[Of]:
    """The settings of a request, read in the order of the class.

    Args:
        fields: The object in the request. Null is as good as missing.
        more: By field, what reads it where its annotation does not say that, from the object and the name.

    Raises:
        Invalid: One has the wrong type, or is out of bounds.
    """
    values: dict[str, Any] = {}
    for name, annotation, _, setting in settings_of(cls):
        if fields.get(name) is None:
            continue
        value = more[name](fields, name) if name in more else _READERS[annotation](fields, name, setting)
        if value is not None:
            values[name] = value
    return Given(cls, values)


def _integer(fields: Fields, name: str, setting: Setting) -> int | None:
    least, most = setting.least, setting.most
    return integer(
        fields,
        name,
        least=-UNBOUNDED if least is None else least,
        most=UNBOUNDED if most is None else most,
        zero_is_unset=not setting.zero,
    )


def _text(fields: Fields, name: str, setting: Setting) -> str | None:
    given = text(fields, name)
    least, most = setting.least or 0, UNBOUNDED if setting.most is None else setting.most
    if given is not None and not least <= len(given) <= most:
        raise Invalid(f"{name} must have {least} to {most} characters")
    return given


_READERS: Mapping[str, Callable[[Fields, str, Setting], Any]] = {
    "int": _integer,
    "str": _text,
    "bool": lambda fields, name, _: boolean(fields, name),
}


def shown(value: Any, **more: Callable[[Any], object]) -> dict[str, object]:
    """The settings of a value as an answer has them.

    Args:
        more: By field, what makes its value JSON where it is none.
    """
    found: dict[str, object] = {}
    for name, _, default, setting in settings_of(type(value)):
        each = getattr(value, name)
        if not (setting.hidden and each == default):
            found[name] = more[name](each) if name in more else each
    return found
