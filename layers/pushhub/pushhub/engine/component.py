"""What wiring puts together: a class whose fields are its collaborators."""

from __future__ import annotations

from typing import ClassVar, dataclass_transform


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True)
class Component:
    """A part of the hub that others are handed to, each by the name of its field, once.

    Type checkers see a frozen dataclass, and so does whoever makes or changes one: an unknown or missing collaborator
    is a ``TypeError``, another one afterwards an ``AttributeError``. A real dataclass costs eight times as much at each
    cold start (docs/decisions/house.md), as it writes its constructor anew.
    """

    _collaborators: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Know the fields of a class: what it annotates, and does not keep for itself by an underscore."""
        cls._collaborators = frozenset(name for name in cls.__annotations__ if not name.startswith("_"))
        cls._required = frozenset(name for name in cls._collaborators if name not in cls.__dict__)

    def __init__(self, **collaborators: object) -> None:
        if not self._required <= collaborators.keys() <= self._collaborators:
            unknown = sorted(collaborators.keys() - self._collaborators)
            missing = sorted(self._required - collaborators.keys())
            raise TypeError(f"{type(self).__name__}: unknown collaborators {unknown}, missing ones {missing}")
        self.__dict__.update(collaborators)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Make what a component keeps beside its collaborators."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set what a component keeps beside its collaborators."""
        if name in self._collaborators:
            raise AttributeError(f"{type(self).__name__}.{name} is set when it is made, and only then")
        object.__setattr__(self, name, value)
