"""Regular expressions of strangers, run by RE2: the time they take grows with the text and never faster.

RE2 has no lookarounds and no back-references, because nothing linear can have them. A pattern with one is refused by
the name of what it uses. This is the only module that compiles a pattern which somebody sent (``tests/architecture``).
docs/hub-protocol.md says what patterns may be; docs/dependencies.md, why RE2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid

if TYPE_CHECKING:
    from pushhub.base.steps import Steps

MAX_PATTERN = 500
"""Longest regular expression accepted, in characters."""

MAX_INSTRUCTIONS = 4_000
"""Largest regular expression accepted, in instructions of RE2: ``a{1000}`` is short and has a thousand."""

MAX_TEXT = 10_000
"""How much of a text is examined, in characters, where no more is asked for."""

_MEMORY = 256 * 1024
"""Bytes that a compiled expression may take with everything it remembers while it runs. RE2's own cache keeps 128."""

_WORK_PER_STEP = 64
"""Instructions times bytes of text for a step. At worst RE2 follows every instruction at every byte, which takes some
15 ns each; usually it is a hundred times faster, but nobody can tell before."""

_TOO_LARGE = f"it has more than {MAX_INSTRUCTIONS} instructions"

_OPERATORS = {
    "(?=": "a lookahead",
    "(?!": "a lookahead",
    "(?<=": "a lookbehind",
    "(?<!": "a lookbehind",
    "(?>": "an atomic group",
    "(?(": "a condition",
    "(?#": "a comment",
    "(?P=": "a back-reference",
    "(?R": "a recursion",
    "(?&": "a recursion",
    "(?|": "a branch reset",
}
_ESCAPES = {
    r"\Z": r"\Z (the end of the text is \z)",
    r"\u": r"\u (a character by its number is \x{20ac})",
    r"\N": r"\N (a character by its number is \x{20ac})",
}
_BACK_REFERENCE = re.compile(r"\\[1-9kg]")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]")
_POSSESSIVE = re.compile(r"(?:[*+?]|\{[0-9,]+\})\+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHOWN = 40


class Pattern:
    """A regular expression that can be used.

    Args:
        text: As it was sent.

    Attributes:
        instructions: Its size; see :data:`MAX_INSTRUCTIONS`.

    Raises:
        Invalid: It cannot be used; the text says why, to be put behind the name of the field.
    """

    __slots__ = ("_compiled", "instructions")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise Invalid(f"is longer than {MAX_PATTERN} characters")
        # Only a mapping with patterns needs it.
        import re2  # noqa: PLC0415

        options = re2.Options()
        options.max_mem = _MEMORY
        options.never_capture = True
        options.log_errors = False
        try:
            self._compiled = re2.compile(text.encode(), options)
        except UnicodeEncodeError as error:
            raise Invalid("is not valid Unicode") from error
        except re2.error as error:
            raise Invalid(_refusal(error.args[0].decode(errors="replace"), text)) from error
        self.instructions: int = self._compiled.programsize
        if self.instructions > MAX_INSTRUCTIONS:
            raise Invalid(f"is too large: {_TOO_LARGE}")

    def found_in(self, text: str, steps: Steps, *, most: int | None = MAX_TEXT) -> bool:
        """Whether it is found in a text.

        Args:
            steps: Spent by what the search may take at worst.
            most: How many characters are examined; None for all of them.

        Raises:
            TooMuchWork: There are not that many steps left; nothing was searched.
        """
        # Half of a surrogate pair has no bytes. No pattern can name one.
        examined = text[:most].encode(errors="replace")
        steps.spend(1 + self.instructions * len(examined) // _WORK_PER_STEP)
        return self._compiled.search(examined) is not None


def _refusal(said: str, pattern: str) -> str:
    """RE2's reason for refusing a pattern, in words that people know."""
    reason, _, where = said.partition(": ")
    if reason == "pattern too large - compile failed":
        return f"is too large: {_TOO_LARGE}"
    uses = ""
    if reason == "invalid perl operator":
        # RE2 names two or three characters of it, and the pattern has the rest.
        known = [each for each in _OPERATORS if each.startswith(where) and each in pattern]
        uses = _OPERATORS[known[0]] if known else "a flag other than i, m, s and U" if _FLAGS.match(where) else ""
    elif reason == "invalid escape sequence":
        uses = "a back-reference" if _BACK_REFERENCE.match(where) else _ESCAPES.get(where, where)
    elif _POSSESSIVE.fullmatch(where):
        uses = "a possessive quantifier"
    if uses:
        return f"uses {uses}, which RE2 does not have"
    shown = f"{where[:_SHOWN]}..." if len(where) > _SHOWN else where
    return f"is not a regular expression: {_CONTROL.sub(' ', f'{reason}: {shown}' if where else reason)}"
