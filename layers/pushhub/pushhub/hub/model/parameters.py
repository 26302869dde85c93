"""Parameters of a store: named values that travel in ``payload.parameters`` and that services may set in their
answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pushhub.base.json_text import Verbatim
from pushhub.hub.model.object_ids import derived_object_id


class DataType(StrEnum):
    """What kind of value a parameter holds (hub protocol v5; endpoints also use ``password``)."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    LIST = "list"
    PASSWORD = "password"  # noqa: S105 (the name of a type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named value of a store.

    Attributes:
        name: ``<endpoint>.<parameter>``, or any other name.
        value: A scalar, or for lists an array of objects; numbers with a fraction as they were written.
        as_of: Time of the value, epoch milliseconds: the start of the request whose answer set it, or the time a person
            set it. An answer to an older request never replaces a newer value (a watermark must not move back).
    """

    project: str
    name: str
    value: Any
    data_type: DataType
    as_of: int

    @property
    def parameter_id(self) -> str:
        """Object id."""
        return parameter_id(self.project, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedParameter:
    """A parameter as an answer gives it."""

    name: str
    value: Any


def parameter_id(project: str, name: str) -> str:
    """The object id of the parameter of that name: names are unique in a store, so the id is derived from the name."""
    return derived_object_id(project, "parameter", name)


def data_type_of(value: Any) -> DataType:
    """The type of a value without a declared type."""
    match value:
        case bool():
            return DataType.BOOLEAN
        case int():
            return DataType.INTEGER
        case Verbatim() if value.text.lstrip("-").isdigit():
            return DataType.INTEGER
        case float() | Verbatim():
            return DataType.FLOAT
        case list() | dict():
            return DataType.LIST
        case _:
            return DataType.STRING


def sent_parameters(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    """Parameters as sent in a payload: an array of name and value, never a hash (endpoints answer 406 or 500 to a
    hash).
    """
    return [{"name": each.name, "value": each.value} for each in parameters]
