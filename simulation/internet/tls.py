"""Certificates, the same in each run, and servers that speak TLS with them.

The authority that signs them is the one that the hub's own code trusts in the simulator, in place of the public ones.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import Any
from weakref import WeakKeyDictionary

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from simulation.internet.network import Line
from simulation.promises.talks.internet import PUBLIC, Certificate

_FIRST, _LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)
_PAST = datetime(2021, 1, 1, tzinfo=UTC)
SERVER = 100
"""Numbers make keys: this one those of all servers."""


def _key(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: str, number: int, by: int, ends: datetime, *extensions: tuple[x509.ExtensionType, bool]
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(f"authority {by}"))
        .public_key(_key(number).public_key())
        .serial_number(1 + number)
        .not_valid_before(_FIRST)
        .not_valid_after(ends)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(_key(by), None)


@cache
def authority(number: int = PUBLIC) -> str:
    """An authority's certificate, PEM."""
    certificate = _signed(
        f"authority {number}", number, number, _LAST, (x509.BasicConstraints(ca=True, path_length=0), True)
    )
    return certificate.public_bytes(Encoding.PEM).decode()


def identity(number: int, by: int = PUBLIC) -> str:
    """A client's key and certificate, PEM."""
    certificate = _signed(f"client {number}", number, by, _LAST)
    private = _key(number).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + certificate.public_bytes(Encoding.PEM)).decode()


@cache
def in_memory(text: str) -> str:
    """The path of a file in memory."""
    file = os.memfd_create("certificates")
    os.write(file, text.encode())
    return f"/proc/self/fd/{file}"


def trusted() -> str:
    """The file of the authority that is trusted as the public ones are."""
    return in_memory(authority())


@cache
def server(shows: Certificate) -> ssl.SSLContext:
    """What a server with a certificate speaks TLS with."""
    names = x509.SubjectAlternativeName([_general(each) for each in shows.hosts])
    certificate = _signed("server", SERVER, shows.by, _PAST if shows.ended else _LAST, (names, False))
    private = _key(SERVER).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(in_memory((private + certificate.public_bytes(Encoding.PEM)).decode()))
    if shows.clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority(shows.clients))
    return context


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


_LINES: WeakKeyDictionary[ssl.SSLObject, EncryptedLine] = WeakKeyDictionary()


def _note_name(tls: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
    if isinstance(tls, ssl.SSLObject) and tls in _LINES:
        _LINES[tls].named = name or ""


def _common_name(shown: Mapping[str, Any]) -> str:
    return next((each[0][1] for each in shown.get("subject", ()) if each[0][0] == "commonName"), "")


class EncryptedLine:
    """A connection inside of another, as whoever speaks on it has it.

    Attributes:
        named: The name that the client asked for.
        client: The common name of the certificate that it showed; empty for none.
    """

    def __init__(self, line: Line, context: ssl.SSLContext) -> None:
        self.line = line
        self.named = self.client = ""
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        context.sni_callback = _note_name
        self._tls = context.wrap_bio(self._coming, self._going, server_side=True)
        _LINES[self._tls] = self
        self._stands = False

    def came(self, data: bytes) -> bytes:
        """What was in the bytes that came.

        Raises:
            ssl.SSLError: The client is not let in, or speaks no TLS.
        """
        self._coming.write(data)
        found = bytearray()
        try:
            if not self._stands:
                self._tls.do_handshake()
                self._stands = True
                shown = self._tls.getpeercert() or {}
                self.client = _common_name(shown)
            while piece := self._tls.read(65_536):
                found += piece
        except ssl.SSLWantReadError:
            pass
        finally:
            self._flush()
        return bytes(found)

    def say(self, data: bytes, after: int = 0, *, times: int = 1, when_taken: Callable[[], None] | None = None) -> None:
        """See :meth:`Line.say`."""
        for _ in range(times):
            for begin in range(0, len(data), 16_384):
                self._tls.write(data[begin : begin + 16_384])
        self._flush(after, when_taken)

    def _flush(self, after: int = 0, when_taken: Callable[[], None] | None = None) -> None:
        data = self._going.read()
        if data:
            self.line.say(data, after, when_taken=when_taken)
