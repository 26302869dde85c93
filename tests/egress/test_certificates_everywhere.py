"""Certificates that Python 3.11 accepts are accepted by every other version: the context is set by us."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LAYER = Path(__file__).parents[2] / "layers/pushhub"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

PROGRAM = """
import json, socket, ssl, sys, threading, types
sys.path.insert(0, sys.argv[1])
# The module of sockets is the hub's; what it raises for a machine without sockets is not needed, nor its package.
from pushhub.egress.identity import TlsContexts
said = {}
for name, files in json.loads(sys.argv[2]).items():
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(files["server"])
    context = TlsContexts(files["authority"]).of(None)
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    context.sslsocket_class = ssl.SSLSocket
    client = context.wrap_bio(ours, theirs, server_hostname="good.example")
    server = served.wrap_bio(theirs, ours, server_side=True)
    said[name] = "accepted"
    done = set()
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                said[name] = error.verify_message
            except ssl.SSLError:
                pass
    if said[name] == "accepted":
        assert len(done) == 2
print(json.dumps(said))
"""

Names = Sequence[str]


def pythons() -> list[str]:
    """Every Python of this machine, by its version: on the path, and where pyenv keeps them."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *kept.glob("3.*/bin")]
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in VERSIONS:
        for place in places:
            program = place / f"python{version}"
            if version not in found and program.is_file() and _runs(program):
                found[version] = str(program)
    return list(found.values())


def _runs(program: Path) -> bool:
    """Whether it is a Python, and not a program that would choose one."""
    return subprocess.run([program, "-c", "import ssl"], capture_output=True, check=False).returncode == 0


class Made:
    """An authority and a server's certificate of it, with the extensions asked for."""

    def __init__(self, folder: Path, *, authority: Names = (), server: Names = (), days: int = 1) -> None:
        folder.mkdir()
        key, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Private authority")])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "good.example")])
        root = self._begun(issuer, issuer, key.public_key(), 1)
        critical = "critical" in authority
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=critical)
        if "subject key" in authority:
            root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        leaf = self._begun(subject, issuer, own.public_key(), days)
        names = [] if "no name" in server else [x509.DNSName("good.example")]
        leaf = leaf.add_extension(x509.SubjectAlternativeName([*names, x509.DNSName("x.example")]), critical=False)
        if "issuer's key" in server:
            leaf = leaf.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
            )
        self.authority = folder / "authority.pem"
        self.authority.write_bytes(root.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        self.server = folder / "server.pem"
        kept = own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.server.write_bytes(kept + leaf.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @staticmethod
    def _begun(
        subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        ends = now + datetime.timedelta(days=days)
        begun = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        begun = begun.serial_number(x509.random_serial_number())
        return begun.not_valid_before(now - datetime.timedelta(days=30)).not_valid_after(ends)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("certificates")
    created = {
        "everything": Made(folder / "0", authority=["critical", "subject key"], server=["issuer's key"]),
        "no issuer's key": Made(folder / "1", authority=["critical", "subject key"]),
        "no subject key": Made(folder / "2", authority=["critical"]),
        "constraints not critical": Made(folder / "3", authority=["subject key"], server=["issuer's key"]),
        "another name": Made(folder / "4", authority=["critical", "subject key"], server=["no name"]),
        "expired": Made(folder / "5", authority=["critical", "subject key"], server=["issuer's key"], days=-1),
    }
    files = {name: {"server": str(each.server), "authority": str(each.authority)} for name, each in created.items()}
    return {**files, "another authority": {**files["everything"], "authority": files["no subject key"]["authority"]}}


@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).parts[-3] if ".pyenv" in path else path)
def test_every_version_accepts_and_refuses_the_same(python: str, certificates: dict[str, dict[str, str]]) -> None:
    # Given certificates as private authorities make them, and bad ones
    # When a version of Python is asked with the hub's own context
    arguments = [python, "-I", "-S", "-B", "-c", PROGRAM, str(LAYER), json.dumps(certificates)]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    # Then what lacks identifiers is accepted, and what is not to be trusted is not
    accepted = {name for name, each in said.items() if each == "accepted"}
    assert accepted == {"everything", "no issuer's key", "no subject key", "constraints not critical"}
    assert "expired" in said["expired"]
    assert "mismatch" in said["another name"]
