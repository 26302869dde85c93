"""What wiring puts together: a class whose fields are its collaborators."""

from __future__ import annotations

from typing import dataclass_transform


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True)
class Component:
    """A part of the hub that others are handed to, each by the name of its field, once.

    Type checkers see a frozen dataclass. A real one costs eight times as much at each cold start
    (docs/decisions/0155), as it writes its constructor anew.
    """

    def __init__(self, **collaborators: object) -> None:
        for name, collaborator in collaborators.items():
            setattr(self, name, collaborator)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Make what a component keeps beside its collaborators."""
