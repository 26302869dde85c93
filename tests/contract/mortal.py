"""What an environment calls while it lives: it is killed after some calls, and the last one takes effect or not."""

from __future__ import annotations

from typing import Any


class Killed(BaseException):
    """The environment ends here. No error, because nothing of it may go on."""


class Mortal:
    """A client, or a store, of an environment that is killed.

    Args:
        real: What is called.
        calls: How many calls are made; of those, the last one's answer never arrives. None: any number.
    """

    def __init__(self, real: object, calls: int | None) -> None:
        self._real = real
        self._left = calls

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)

        def call(*arguments: Any, **parameters: Any) -> Any:
            if self._left is not None:
                self._left -= 1
                if self._left < 0:
                    raise Killed
            answer = real(*arguments, **parameters)
            if self._left == 0:
                raise Killed
            return answer

        return call
