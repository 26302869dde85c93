"""Bodies as they are stored with their messages: compressed where that makes them much smaller
(docs/decisions/cost.md). What compresses and opens them is here and nowhere else.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final, TypeAlias

from pushhub.base.errors import Unreadable
from pushhub.engine.model.body_dictionary import DICTIONARY

LEVEL: Final = 6
"""Higher ones save a hundredth more (docs/figures/bodies.md)."""

SHORTEST: Final = 512
"""Bodies of fewer bytes stay as they are: an item with one takes a single write unit anyway."""

LONGEST: Final = 65_536
"""Bodies of more bytes stay as they are. So whoever reads many messages knows how much memory a body may take, and
nobody compresses what will be too large for a table anyway.
"""

CURRENT = DICTIONARY
"""The dictionary of new bodies."""

DICTIONARIES: Final = {zlib.adler32(each): each for each in (DICTIONARY,)}
"""All that stored bodies may have, by what a compressed body names its own with (RFC 1950, DICTID)."""

_DICTID: Final = slice(2, 6)


@dataclass(frozen=True, slots=True)
class Deflated:
    """A compressed body.

    Attributes:
        content: As zlib writes it, with a dictionary.
        size: Bytes of the body itself.
    """

    content: bytes
    size: int


StoredBody: TypeAlias = bytes | Deflated
"""A body as it is stored with its message. Only :func:`plain` makes of it the bytes that were posted."""


def stored_as(body: bytes) -> StoredBody:
    """A body as it is best stored.

    It is compressed if that saves at least a quarter: less seldom saves a write unit, and such a body would be longer
    in a work order, where it travels in base64.
    """
    if not SHORTEST <= len(body) <= LONGEST:
        return body
    compressor = zlib.compressobj(LEVEL, zdict=CURRENT)
    content = compressor.compress(body) + compressor.flush()
    return Deflated(content, len(body)) if len(content) * 4 <= len(body) * 3 else body


def stored_size(body: StoredBody) -> int:
    """Bytes that it takes where it is stored."""
    return len(body.content if isinstance(body, Deflated) else body)


def plain(body: StoredBody) -> bytes:
    """The exact bytes that were posted. Never makes more of them than the hub would have compressed.

    Raises:
        Unreadable: Not what the hub wrote.
    """
    if not isinstance(body, Deflated):
        return body
    dictionary = DICTIONARIES.get(int.from_bytes(body.content[_DICTID], "big"))
    if dictionary is None or not SHORTEST <= body.size <= LONGEST:
        raise Unreadable
    opener = zlib.decompressobj(zdict=dictionary)
    try:
        # One byte more than there may be, so that the end of the stream, with its checksum, is read in any case.
        opened = opener.decompress(body.content, body.size + 1)
    except zlib.error as error:
        raise Unreadable from error
    if len(opened) != body.size or not opener.eof or opener.unused_data:
        raise Unreadable
    return opened
