"""STS as far as it judges who may assume a role: a server of this machine that reads the trust policies of roles."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qs

from tests.fakes.loopback import serving

_TAKEN = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA{number:016}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>t-{number}</SessionToken>
<Expiration>{until}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
_DENIED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>User is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"""


class FakeSts:
    """A server, as a context manager. Like STS it tells nobody why a role lets them not in, nor whether it exists.

    Neither moto nor the emulator reads trust policies, so a wrong external id is refused here alone.

    Args:
        caller: Whose keys all requests are signed with: the ARN of a principal.

    Attributes:
        trusts: The trust policy of each role, by its ARN.
        url: Where clients call it.
        asked: The external ids that were shown, in order; empty for none.
    """

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self.trusts: dict[str, Mapping[str, Any]] = {}
        self.asked: list[str] = []
        self._given = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, text = fake.answer({name: values[0] for name, values in parse_qs(body).items()})
                self.send_response(status)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        self._open = ExitStack()
        self.url = self._open.enter_context(serving(Handler))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def answer(self, form: Mapping[str, str]) -> tuple[int, str]:
        """Status and body for a request."""
        assert form["Action"] == "AssumeRole"
        shown = form.get("ExternalId", "")
        self.asked.append(shown)
        if not self._lets_in(self.trusts.get(form["RoleArn"], {}), shown):
            return 403, _DENIED
        self._given += 1
        until = datetime.now(UTC) + timedelta(seconds=int(form["DurationSeconds"]))
        return 200, _TAKEN.format(number=self._given, secret="s" * 40, until=until.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def _lets_in(self, trust: Mapping[str, Any], shown: str) -> bool:
        for statement in trust.get("Statement", ()):
            assert statement.keys() <= {"Effect", "Principal", "Action", "Condition"}
            assert (statement["Effect"], statement["Action"]) == ("Allow", "sts:AssumeRole")
            condition = statement.get("Condition", {"StringEquals": {}})
            assert condition.keys() == {"StringEquals"}
            assert condition["StringEquals"].keys() <= {"sts:ExternalId"}
            wanted = condition["StringEquals"].get("sts:ExternalId")
            if statement["Principal"] == {"AWS": self._caller} and (wanted is None or wanted == shown):
                return True
        return False
