"""What earlier code stored: items and orders that it wrote, in files, and how to read them back.

Each file in ``stored_before/`` is named after the commit that wrote it: values made from their types, as they are
passed to the decoder, and what they are. A release adds its own::

    PYTHONPATH=layers/pushhub:. .venv/bin/python -m tests.contract.earlier $(git rev-parse --short HEAD)
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest.mock import patch

from tests.contract.filled import Filler, defaults
from tests.fakes.credentials import credentials

MOST = 4
"""Values of each kind."""
FOLDER = Path(__file__).with_name("stored_before")
_DRAWN = re.compile(r"[0-9a-f]{16}")
"""Names in mappings, which are drawn."""
_SEALING = {"credentials": "of the tests"}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: records by field, bytes as hexadecimal digits, mappings with other keys as pairs."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(each, str) for each in value):
            return {name: plain(each) for name, each in value.items()}
        return sorted(([plain(name), plain(each)] for name, each in value.items()), key=json.dumps)
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=json.dumps)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return _SEALING


def _given(value: Any) -> Any:
    """An argument of a decoder as it was."""
    if value == _SEALING:
        return credentials()
    if isinstance(value, dict):
        if value.keys() == {"bytes"}:
            return bytes.fromhex(value["bytes"])
        return {name: _given(each) for name, each in value.items()}
    return [_given(each) for each in value] if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True)
class Stored:
    """Something that was stored.

    Attributes:
        kind: Its type's name.
        decoder: What reads it: module and name, with a colon between.
        arguments: What that is called with.
        named: The same by name.
        value: What it was, as :func:`plain` has it.
    """

    kind: str
    decoder: str
    arguments: Sequence[Any]
    named: Mapping[str, Any]
    value: Any

    def read(self) -> Any:
        """What today's code makes of it."""
        module, _, path = self.decoder.partition(":")
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
        given = inspect.signature(found).bind_partial(
            *map(_given, self.arguments), **{name: _given(each) for name, each in self.named.items()}
        )
        if "credentials" in given.signature.parameters:
            # It had no need of them when nothing was sealed.
            given.arguments.setdefault("credentials", credentials())
        return found(*given.args, **given.kwargs)


def stored_before() -> Iterator[tuple[str, Stored]]:
    """Everything in the files, with the commit that wrote it."""
    for file in sorted(FOLDER.glob("*.json")):
        for fields in json.loads(file.read_text()):
            yield file.stem, Stored(**fields)


@contextmanager
def _decoders_noted(modules: Sequence[Any], note: Callable[..., None]) -> Iterator[None]:
    """Note the outermost call of a decoder with what it is given."""
    depth = [0]

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def decode(*arguments: Any, **named: Any) -> Any:
            if not depth[0]:
                note(name, arguments, named)
            depth[0] += 1
            try:
                return real(*arguments, **named)
            finally:
                depth[0] -= 1

        return decode

    with ExitStack() as patches:
        for module in modules:
            for name, found in [*vars(module).items()]:
                if isinstance(found, FunctionType) and found.__module__ == module.__name__ and "decode" in name:
                    told = f"{module.__name__}:{name}"
                    patches.enter_context(patch.object(module, name, noted(told, found)))
        yield


def written(kinds: Mapping[type, Callable[[Any], Any]], make: Callable[[int, type], Any]) -> list[dict[str, Any]]:
    """What the code that runs stores of some values of each kind: a few that show attributes which others have not.

    Args:
        kinds: For each type, what writes and reads one.
        make: A value for a seed; for 0 one with only what every value has.
    """
    modules = [each for name, each in sys.modules.items() if name.startswith("pushhub.") and ".store." in name]
    found: list[dict[str, Any]] = []
    for kind, round_trip in kinds.items():
        seen: set[str] = set()
        made: list[dict[str, Any]] = []
        for seed in range(40):
            calls: list[Any] = []
            value = make(seed, kind)
            with _decoders_noted(modules, lambda *call, calls=calls: calls.append(call)):
                round_trip(value)
            name, arguments, named = (
                calls[0] if calls else (f"{kind.__module__}:{kind.__name__}.decode", (value.encode(),), {})
            )
            paths = {*_paths(plain(arguments), plain(value))}
            if paths <= seen or len(made) == MOST:
                continue
            seen |= paths
            told = {"kind": kind.__name__, "decoder": name, "value": plain(value)}
            made.append(told | {"arguments": plain(arguments), "named": plain(named)})
        found += made
    return found


def _paths(*values: Any) -> Iterator[str]:
    """Where in a value there is something, and of which kind."""
    for value in values:
        if isinstance(value, dict):
            for name, each in value.items():
                for path in _paths(each):
                    yield f"{'*' if _DRAWN.fullmatch(name) else name}.{path}"
        elif isinstance(value, list):
            for each in value[:2]:
                yield from _paths(each)
        else:
            yield type(value).__name__


def main() -> None:
    """Write what the code of this commit stores."""
    from tests.contract import test_every_stored_field as now  # noqa: PLC0415 (a test imports this module)

    def make(seed: int, kind: type) -> Any:
        value: Any = Filler(seed, now.FIXED).record(kind)
        if not seed and dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.replace(value, **{each.name: each.value for each in defaults(kind)})
        return now.as_stored(value)

    text = json.dumps(written(now.ROUND_TRIPS, make), separators=(",", ":"))
    (FOLDER / f"{sys.argv[1]}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
