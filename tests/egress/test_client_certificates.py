"""Requests with client certificates, to servers that demand them."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from tests.egress.guarded_sending import asking, sender
from tests.fakes.private_keys import identity
from tests.hostile import BEHAVIOURS, Authority, HostileEndpoint

from pushhub.base.ports import ClientIdentity, PushRequest
from pushhub.egress import identity as identities
from pushhub.egress.identity import KEPT, IdentityRefused, TlsContexts, check_identity

pytest_plugins = ("tests.hostile.fixtures",)

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
MINE, OTHERS = identity(name="mine"), identity(name="others")


def demanding(authority: Authority, *trusted: str, version: str = "1.3") -> ssl.SSLContext:
    """A server's context that demands one of these certificates."""
    context = authority.server("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata="".join(each[each.index("-----BEGIN CERTIFICATE") :] for each in trusted))
    context.minimum_version = context.maximum_version = VERSIONS[version]
    return context


def shown(endpoint: HostileEndpoint, pem: str, *, ca: str = "", path: str = "healthy") -> PushRequest:
    """A request that shows a certificate."""
    plain = asking(endpoint.url(path))
    who = ClientIdentity(digest=f"{hash((pem, ca))}", pem=pem, ca=ca)
    return PushRequest(url=plain.url, body=plain.body, timeout_s=plain.timeout_s, identity=who)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_demands_a_certificate_gets_it_and_nobody_rides_on_anothers_connection(
    authority: Authority, version: str
) -> None:
    # Given a server that lets in one certificate, and a connection that it let in
    context = demanding(authority, MINE, version=version)
    with (
        HostileEndpoint(BEHAVIOURS, tls=context) as endpoint,
        sender(ca_file=authority.ca_file) as sending,
    ):
        for _ in range(2):
            answer = sending.send(shown(endpoint, MINE))
            assert (answer.status_code, answer.body) == (200, b"fine"), answer
        assert endpoint.connections == 1
        # When somebody else sends to it, with another certificate or none, then that connection is not used
        for request in (shown(endpoint, OTHERS), asking(endpoint.url("healthy"))):
            refused = sending.send(request)
            assert refused.status_code == 0, refused
            assert refused.error_class in ("tls", "reset")
        assert len(endpoint.requests) == 2
        # And the first one still is
        assert sending.send(shown(endpoint, MINE)).status_code == 200
        assert {each.connection for each in endpoint.requests} == {endpoint.requests[0].connection}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_certificate_is_explained(authority: Authority, version: str) -> None:
    with (
        HostileEndpoint(BEHAVIOURS, tls=demanding(authority, MINE, version=version)) as endpoint,
        sender(ca_file=authority.ca_file) as sending,
    ):
        answer = sending.send(asking(endpoint.url("healthy")))
        assert "client certificate" in answer.message, answer
        assert endpoint.requests == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_expired_certificate_is_the_servers_to_refuse(authority: Authority, version: str) -> None:
    ended = identity(ends=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    with (
        HostileEndpoint(BEHAVIOURS, tls=demanding(authority, ended, version=version)) as endpoint,
        sender(ca_file=authority.ca_file) as sending,
    ):
        answer = sending.send(shown(endpoint, ended))
        assert answer.status_code == 0
        assert answer.error_class in ("tls", "reset")


def test_only_the_receivers_own_authority_is_trusted_if_there_is_one(authority: Authority, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1")) as endpoint,
        # Given a sender that trusts this authority for everybody, or another one
        sender(ca_file=authority.ca_file) as trusting,
        sender(ca_file=Authority(other).ca_file) as strange,
    ):
        own, foreign = Path(authority.ca_file).read_text(), (other / "ca.pem").read_text()
        # Then what the endpoint says counts, with and without a certificate of the hub's
        for pem in ("", MINE):
            assert strange.send(shown(endpoint, pem, ca=own)).status_code == 200
            assert strange.send(shown(endpoint, pem)).error_class == "tls"
            assert trusting.send(shown(endpoint, pem, ca=foreign)).error_class == "tls"


@pytest.mark.parametrize("around", ["\ufeff", "# Zertifizierungsstelle f\u00fcr alle\n"])
def test_an_authority_with_other_letters_around_it_is_one(authority: Authority, around: str) -> None:
    # Given a file of an authority as editors and people make them, then it is taken, and is that authority
    theirs = f"{around}{Path(authority.ca_file).read_text()}"
    check_identity("", theirs)
    with HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1")) as endpoint, sender() as sending:
        assert sending.send(shown(endpoint, "", ca=theirs)).status_code == 200


def test_a_name_is_checked_whoever_signed(authority: Authority) -> None:
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("good.example")) as endpoint,
        sender() as sending,
    ):
        answer = sending.send(shown(endpoint, MINE, ca=Path(authority.ca_file).read_text()))
        assert answer.error_class == "tls"
        assert "not valid for '127.0.0.1'" in answer.message


def test_keys_are_in_no_file(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given what OpenSSL is told to read
    seen: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def loading(context: ssl.SSLContext, path: str, **more: object) -> None:
        seen.append(str(Path(path).readlink()))
        load(context, path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loading)
    before = set(Path("/proc/self/fd").iterdir())
    check_identity(MINE, "")
    with pytest.raises(IdentityRefused):
        check_identity(MINE.replace("PRIVATE KEY", "NOTHING"), "")
    # Then it is memory, and closed afterwards
    assert all(each.startswith("/memfd:") for each in seen)
    assert len(seen) == 2
    assert len(set(Path("/proc/self/fd").iterdir())) == len(before)


@pytest.mark.parametrize("form", ["pkcs8", "rsa", "reversed"])
def test_forms_of_keys(form: str) -> None:
    pem = {
        "pkcs8": MINE,
        "rsa": identity(rsa_bits=2_048, form=PrivateFormat.TraditionalOpenSSL),
        "reversed": MINE[MINE.index("-----BEGIN CERTIFICATE") :] + MINE[: MINE.index("-----BEGIN CERTIFICATE")],
    }[form]
    check_identity(pem, pem)


def test_a_key_of_another_certificate_is_refused() -> None:
    mixed = MINE[: MINE.index("-----BEGIN CERTIFICATE")] + OTHERS[OTHERS.index("-----BEGIN CERTIFICATE") :]
    with pytest.raises(IdentityRefused, match="does not belong"):
        check_identity(mixed, "")


def test_what_cannot_be_loaded_fails_the_attempt_and_nothing_is_sent(authority: Authority) -> None:
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1")) as endpoint,
        sender(ca_file=authority.ca_file) as sending,
    ):
        for request in (shown(endpoint, "junk"), shown(endpoint, "", ca="junk")):
            answer = sending.send(request)
            assert (answer.error_class, answer.bytes_out) == ("tls", 0)
        assert endpoint.connections == 0


def test_only_so_many_contexts_are_kept(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[str] = []
    create = identities._context

    def creating(ca_file: str, authorities: str) -> ssl.SSLContext:
        created.append(authorities)
        return create(ca_file, authorities)

    monkeypatch.setattr(identities, "_context", creating)
    contexts, ca = TlsContexts(authority.ca_file), Path(authority.ca_file).read_text()
    known = [ClientIdentity(digest=str(number), ca=ca) for number in range(KEPT + 1)]
    first = contexts.of(known[0])
    assert contexts.of(known[0]) is first
    for each in known[1:]:
        contexts.of(each)
    assert len(contexts._own) == KEPT
    # The one that was used least recently is made again
    assert contexts.of(known[0]) is not first
    assert contexts.of(None) is contexts.of(None)
    assert len(created) == KEPT + 3
