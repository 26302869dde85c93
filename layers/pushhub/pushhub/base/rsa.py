"""RSA signatures as JSON Web Tokens need them (RS256), with what Python brings.

Python has no RSA, and a compiled package would have to match processor and runtime
(docs/decisions/0120-oauth-for-endpoints.md). Whoever watches the hub's timing sees only other people's networks in
between, and each signature is made of a number blinded at random, so its time says nothing of the key.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass, field

from pushhub.base.der import INTEGER, OCTET_STRING, SEQUENCE, NotDer, only, pem_blocks

_RSA = "1.2.840.113549.1.1.1"
# RFC 8017, 9.2: DigestInfo of SHA-256.
_SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")

LEAST_BITS, MOST_BITS = 2_048, 4_096
"""Sizes of a modulus: smaller ones are not safe (RFC 7518, 3.3), larger ones take long."""


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A private key.

    Attributes:
        modulus: n.
        public_exponent: e.
        primes: p and q.
        exponents: d mod p-1 and d mod q-1.
        coefficient: The inverse of q modulo p.
    """

    modulus: int
    public_exponent: int
    primes: tuple[int, int] = field(repr=False)
    exponents: tuple[int, int] = field(repr=False)
    coefficient: int = field(repr=False)

    def sign(self, content: bytes) -> bytes:
        """The RS256 signature of some bytes (RSASSA-PKCS1-v1_5 with SHA-256)."""
        size = (self.modulus.bit_length() + 7) // 8
        digest = _SHA256_PREFIX + hashlib.sha256(content).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
        return self._private(int.from_bytes(padded)).to_bytes(size)

    def _private(self, number: int) -> int:
        (p, q), (dp, dq), n = self.primes, self.exponents, self.modulus
        mask = secrets.randbelow(n - 2) + 2
        while math.gcd(mask, n) != 1:
            mask = secrets.randbelow(n - 2) + 2
        blinded = number * pow(mask, self.public_exponent, n) % n
        low = pow(blinded % q, dq, q)
        signed = low + q * ((pow(blinded % p, dp, p) - low) * self.coefficient % p)
        result = signed * pow(mask, -1, n) % n
        if pow(result, self.public_exponent, n) != number:
            # A fault in one half would give the key away.
            raise ArithmeticError("the signature does not verify")
        return result


def read_key(content: bytes) -> RsaKey:
    """Read a private key: PEM or DER, PKCS #8 or PKCS #1, not encrypted.

    Raises:
        NotDer: It is something else; the text says what is expected, and contains nothing of the key.
    """
    if b"-----BEGIN" in content:
        blocks = [block for block in pem_blocks(content.decode("ascii", "replace")) if block[0].endswith("PRIVATE KEY")]
        if len(blocks) != 1 or blocks[0][0].startswith("ENCRYPTED"):
            raise NotDer("one private key that is not encrypted is expected")
        content = blocks[0][1]
    parts = only(content, SEQUENCE).parts
    if len(parts) >= 3 and parts[1].tag == SEQUENCE and parts[2].tag == OCTET_STRING:
        if parts[1].parts[0].object_id != _RSA:
            raise NotDer("an RSA key is expected")
        parts = only(parts[2].content, SEQUENCE).parts
    if len(parts) != 9 or any(each.tag != INTEGER for each in parts):
        raise NotDer("an RSA private key in PKCS #8 or PKCS #1 is expected")
    _, n, e, d, p, q, dp, dq, coefficient = (each.number for each in parts)
    if not LEAST_BITS <= n.bit_length() <= MOST_BITS:
        raise NotDer(f"an RSA key of {LEAST_BITS} to {MOST_BITS} bits is expected")
    sound = (
        1 < e < 1 << 33
        and min(p, q) > 1
        and p * q == n
        and (dp, dq) == (d % (p - 1), d % (q - 1))
        and coefficient < p
        and coefficient * q % p == 1
        and e * dp % (p - 1) == 1
        and e * dq % (q - 1) == 1
    )
    if not sound:
        raise NotDer("the parts of the RSA key do not belong together")
    return RsaKey(n, e, (p, q), (dp, dq), coefficient)
