"""Reads DER and PEM: as much of them as keys and certificates need. Bounded, and strict about lengths."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

INTEGER, BIT_STRING, OCTET_STRING, OBJECT_ID, SEQUENCE, SET = 0x02, 0x03, 0x04, 0x06, 0x30, 0x31

MOST_PARTS = 1_000
"""Most values read out of one: no key or certificate has more side by side."""

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s(.*?)-----END \1-----", re.DOTALL)


class NotDer(ValueError):
    """The bytes are not what they should be."""


class Value(NamedTuple):
    """A tagged value.

    Attributes:
        tag: See X.690; the constants above.
        content: Its content.
        whole: With its tag and length.
    """

    tag: int
    content: bytes
    whole: bytes

    @property
    def parts(self) -> list[Value]:
        """The values that it contains.

        Raises:
            NotDer: It does not contain values.
        """
        return values(self.content)

    @property
    def number(self) -> int:
        """The integer that it is.

        Raises:
            NotDer: It is none, or a negative one.
        """
        if self.tag != INTEGER or not self.content or self.content[0] & 0x80:
            raise NotDer("a positive integer is expected")
        return int.from_bytes(self.content)

    @property
    def object_id(self) -> str:
        """The object identifier that it is, with dots.

        Raises:
            NotDer: It is none.
        """
        if self.tag != OBJECT_ID or not self.content:
            raise NotDer("an object identifier is expected")
        numbers, current = [min(self.content[0] // 40, 2)], 0
        numbers.append(self.content[0] - 40 * numbers[0])
        for each in self.content[1:]:
            current = current << 7 | each & 0x7F
            if not each & 0x80:
                numbers.append(current)
                current = 0
        return ".".join(map(str, numbers))


def values(content: bytes) -> list[Value]:
    """The values that stand one behind the other.

    Raises:
        NotDer: They do not fill the bytes, or are too many.
    """
    found, at = [], 0
    while at < len(content):
        value = _value(content, at)
        found.append(value)
        at += len(value.whole)
        if len(found) > MOST_PARTS:
            raise NotDer("too many values")
    return found


def only(content: bytes, tag: int) -> Value:
    """The one value that the bytes are.

    Raises:
        NotDer: They are something else.
    """
    found = values(content)
    if len(found) != 1 or found[0].tag != tag:
        raise NotDer("one value is expected")
    return found[0]


def _value(content: bytes, at: int) -> Value:
    if at + 2 > len(content) or content[at] & 0x1F == 0x1F:
        raise NotDer("the bytes end too early")
    size, start = content[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        if not 1 <= count <= 3 or start + count > len(content):
            raise NotDer("a length is not valid")
        size, start = int.from_bytes(content[start : start + count]), start + count
    if start + size > len(content):
        raise NotDer("the bytes end too early")
    return Value(content[at], content[start : start + size], content[at : start + size])


def pem_blocks(text: str) -> list[tuple[str, bytes]]:
    """The blocks of a PEM file: each label and its bytes.

    Raises:
        NotDer: A block is not base64.
    """
    blocks = []
    for label, content in _PEM.findall(text):
        try:
            blocks.append((label, base64.b64decode("".join(content.split()), validate=True)))
        except binascii.Error as error:
            raise NotDer(f"the block {label} is not base64") from error
    return blocks
