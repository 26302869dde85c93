"""TLS contexts: one for everybody, and one for each client certificate, which is loaded from memory.

A connection made with a certificate belongs to whoever owns it, so it is never reused for anybody else: the pools'
keys contain the certificate (:mod:`pushhub.egress.connection`).
"""

from __future__ import annotations

import os
import ssl
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pushhub.egress.socket import BoundedTLSSocket

if TYPE_CHECKING:
    from pushhub.base.ports import ClientIdentity

KEPT = 50
"""Contexts kept at most; each takes some 700 KB with the public authorities."""


class IdentityRefused(ValueError):
    """A certificate and its key cannot be used; the text says why, and repeats nothing of them."""


class TlsContexts:
    """Creates contexts when they are first needed. Thread-safe.

    Args:
        ca_file: Trusted CA certificates (PEM) of everybody without an authority of their own.
    """

    def __init__(self, ca_file: str) -> None:
        self._ca_file = ca_file
        self._common: ssl.SSLContext | None = None
        self._own: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, identity: ClientIdentity | None) -> ssl.SSLContext:
        """The context for requests with this certificate; None for without.

        Raises:
            IdentityRefused: It cannot be loaded.
        """
        with self._lock:
            if identity is None:
                # Reading the certificates takes longer than a whole exchange.
                self._common = self._common or _context(self._ca_file, "")
                return self._common
            context = self._own.get(identity.digest)
            if context is None:
                context = self._own[identity.digest] = _context(self._ca_file, identity.ca)
                try:
                    load_identity(context, identity.pem)
                except BaseException:
                    del self._own[identity.digest]
                    raise
                if len(self._own) > KEPT:
                    self._own.popitem(last=False)
            self._own.move_to_end(identity.digest)
            return context


def _context(ca_file: str, authorities: str) -> ssl.SSLContext:
    """A context that trusts some authorities, or else those of the file; names are always checked.

    It is the same on every version of Python. ``ssl.create_default_context`` is not: from 3.13 on it refuses
    certificates without an identifier of their key, or of their issuer's (``VERIFY_X509_STRICT``), as many private
    authorities make them.
    """
    # TLS 1.2 or newer, Python's own choice of ciphers; the certificate and its name are checked.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # An authority that somebody has chosen is trusted even if another one has signed it.
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=None if authorities else ca_file, cadata=_plain(authorities) or None)
    except ssl.SSLError as error:
        raise IdentityRefused("the authorities' certificates cannot be loaded") from error
    context.sslsocket_class = BoundedTLSSocket
    return context


def _plain(pem: str) -> str:
    """Certificates without other letters than ASCII, which are in what editors and comments put around them: Python
    refuses those.
    """
    return pem.encode("ascii", errors="ignore").decode()


def load_identity(context: ssl.SSLContext, pem: str) -> None:
    """Load a certificate and its key into a context. They are never in a file system: OpenSSL reads them from an
    anonymous file in memory, which is emptied afterwards.

    Args:
        pem: Key, certificate and chain.

    Raises:
        IdentityRefused: They cannot be loaded, or do not belong together.
    """
    if not pem:
        return
    file = os.memfd_create("identity", os.MFD_CLOEXEC)
    content = pem.encode()
    try:
        os.write(file, content)
        # Without a password, OpenSSL asks the terminal for that of an encrypted key, and waits.
        context.load_cert_chain(f"/proc/self/fd/{file}", password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise IdentityRefused("the private key does not belong to the first certificate") from error
        raise IdentityRefused("the private key or a certificate cannot be loaded") from error
    finally:
        os.ftruncate(file, 0)
        os.close(file)


def check_identity(pem: str, authorities: str) -> None:
    """Check when they are set that a certificate and authorities can be used.

    Raises:
        IdentityRefused: They cannot.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_identity(context, pem)
    if authorities:
        try:
            context.load_verify_locations(cadata=_plain(authorities))
        except ssl.SSLError as error:
            raise IdentityRefused("the authorities' certificates cannot be loaded") from error
