"""Ed25519 signatures (RFC 8032, section 5.1) in pure Python, so that the layer runs on every processor and runtime
(docs/decisions/0024-webhooks.md).

The point operations are those of RFC 8032, section 5.1.4, in extended coordinates. A signature needs at most two
multiples of the base point, each the sum of 64 points from a table that is computed once. tests/webhooks and the
clients' own libraries compare the results with other implementations.
"""

from __future__ import annotations

import hashlib
from functools import cache

SEED_BYTES = 32

_P = (1 << 255) - 19
_ORDER = (1 << 252) + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P

_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


def public_key(seed: bytes) -> bytes:
    """The public key of a 32-byte private seed."""
    scalar, _ = _expanded(seed)
    return _encoded(_multiple_of_base(scalar))


def sign(seed: bytes, public: bytes, message: bytes) -> bytes:
    """The 64-byte signature of a message; deterministic.

    Args:
        seed: 32 bytes.
        public: The public key of that seed.
        message: The bytes to sign.
    """
    scalar, prefix = _expanded(seed)
    nonce = _number(prefix + message)
    point = _encoded(_multiple_of_base(nonce))
    answer = (nonce + _number(point + public + message) * scalar) % _ORDER
    return point + answer.to_bytes(32, "little")


def _number(text: bytes) -> int:
    return int.from_bytes(hashlib.sha512(text).digest(), "little") % _ORDER


def _expanded(seed: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    return scalar, digest[32:]


def _sum(one: _Point, other: _Point) -> _Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


@cache
def _base() -> _Point:
    y = 4 * pow(5, -1, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x & 1:
        x = _P - x
    return x, y, 1, x * y % _P


@cache
def _table() -> tuple[tuple[_Point, ...], ...]:
    """For each of 64 base-16 digits, the base point's 16 multiples."""
    rows: list[tuple[_Point, ...]] = []
    step = _base()
    for _ in range(64):
        row = [_NEUTRAL]
        for _ in range(15):
            row.append(_sum(row[-1], step))
        rows.append(tuple(row))
        step = _sum(row[-1], step)
    return tuple(rows)


def _multiple_of_base(scalar: int) -> _Point:
    point = _NEUTRAL
    for row in _table():
        # Always one addition, whatever the digit, so that the time taken reveals little about the scalar.
        point = _sum(point, row[scalar & 15])
        scalar >>= 4
    return point


def _encoded(point: _Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")
