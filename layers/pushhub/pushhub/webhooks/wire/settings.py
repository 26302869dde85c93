"""Settings in requests and answers of the Svix API, as they stand on the fields of a data class
(:mod:`pushhub.base.fields`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from pushhub.base.fields import Setting, settings_of

if TYPE_CHECKING:
    from pushhub.webhooks.wire.fields import Fields


class SettingsFields:
    """The settings of a data class.

    Args:
        read: By field, what reads it where its annotation does not say that, from the object and the field's name in
            it.
        show: By field, what makes its value JSON where it is none.
    """

    def __init__(
        self,
        cls: type,
        *,
        read: Mapping[str, Callable[[Fields, str], Any]],
        show: Mapping[str, Callable[[Any], object]] | None = None,
    ) -> None:
        self._settings = [*settings_of(cls)]
        self._read = read
        self._show = show or {}

    def given(self, fields: Fields, *, all_of_them: bool = False) -> dict[str, Any]:
        """The settings of a request, by field and in the order of the class.

        Args:
            all_of_them: Whether those that were not sent are among them, with what they then are.
        """
        found: dict[str, Any] = {}
        for name, annotation, default, setting in self._settings:
            names = setting.names(name)
            if all_of_them or any(map(fields.has, names)):
                sent = fields.chosen(*names)
                found[name] = (
                    self._read[name](fields, sent)
                    if name in self._read
                    else _READERS[annotation](fields, sent, setting, default)
                )
        return found

    def additions(self, value: Any) -> Iterator[tuple[str, object]]:
        """What an answer shows only because it is not the default, under its names."""
        for name, _, default, setting in self._settings:
            if setting.hidden and (own := getattr(value, name)) != default:
                yield setting.names(name)[0], self._show[name](own) if name in self._show else own


def _text(fields: Fields, name: str, setting: Setting, default: Any) -> str:
    bounds = {} if setting.most is None else {"most": setting.most}
    return fields.text(name, least=setting.least or 0, default=None if default is MISSING else default, **bounds)


def _whole(fields: Fields, name: str, setting: Setting, default: Any) -> int | None:
    least, most = setting.least, setting.most
    assert least is not None
    assert most is not None
    found = fields.whole(name, least=least, most=most)
    return default if found is None else found


_READERS: Mapping[str, Callable[[Fields, str, Setting, Any], Any]] = {
    "str": _text,
    "int": _whole,
    "int | None": _whole,
    "bool": lambda fields, name, _, default: fields.flag(name, default=default),
    "Mapping[str, str]": lambda fields, name, *_: fields.texts_by_name(name),
}
