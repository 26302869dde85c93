"""What every check has at hand: clients of two projects, endpoints, and requests that no client would make."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import svix
from svix import models
from svix.exceptions import HttpError, HTTPValidationError
from tests.stack.webhooks.judge.receiver import Answer, Inbox, Receiver

__all__ = ["OLD", "Check", "Raw", "Stage", "options", "refused", "today", "unprocessable", "until"]

OLD = svix.__version__.startswith("1.")
"""Whether this is the client of the 1.x generation."""
TYPES = "filter_types" if OLD else "event_types"
"""What it calls an endpoint's filter of event types."""
WAIT_SECONDS = 90.0
SOONEST_S, LATEST_S = 0.2, 1.0
"""How long to wait between two looks, at first and at most."""

Check = Callable[["Stage"], None]
Found = TypeVar("Found")


def today(check: Check) -> Check:
    """Mark a check that needs the client of today, as older ones lack what it calls."""
    check.today = True  # type: ignore[attr-defined]
    return check


@dataclass(frozen=True)
class Raw:
    """An answer to a request that no client made."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.content)


class Stage:
    """Clients of two projects.

    Args:
        base_url: The hub.
        token: A project's token.
        other_token: Another's.
    """

    def __init__(self, base_url: str, token: str, other_token: str) -> None:
        self.base_url, self.token, self.other_token = base_url, token, other_token
        self.svix = self.client(token)
        self.other = self.client(other_token)
        self.receiver = Receiver()
        self._http = httpx.Client(timeout=60, trust_env=False)

    def client(self, token: str, **more: Any) -> Any:
        """The client as its documentation says, which a busy machine may keep waiting."""
        patience = {"timeout": 60.0} if "timeout" in svix.SvixOptions.__dataclass_fields__ else {}
        return svix.Svix(token, svix.SvixOptions(server_url=self.base_url, **patience, **more))

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Raw:
        """A request below ``/api/v1``; a body that is no bytes is sent as JSON."""
        shown = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if token == "":
            shown = {}
        if body is not None and not isinstance(body, bytes):
            body, shown["Content-Type"] = json.dumps(body).encode(), "application/json"
        answer = self._http.request(
            method, f"{self.base_url}/api/v1{path}", content=body, headers={**shown, **(headers or {})}
        )
        return Raw(answer.status_code, answer.headers, answer.content)

    def app(self, **fields: Any) -> Any:
        """A new application."""
        return self.svix.application.create(models.ApplicationIn(**{"name": "check", **fields}))

    def event_type(self, **fields: Any) -> str:
        """The name of a new event type."""
        name = f"check.{secrets.token_hex(6)}"
        self.svix.event_type.create(models.EventTypeIn(**{"name": name, "description": "of a check", **fields}))
        return name

    def endpoint(self, app: Any, *answers: Answer, **fields: Any) -> tuple[Any, Inbox]:
        """A new endpoint of an application, and where its deliveries come to;
        ``types`` is its filter of event types.
        """
        inbox = self.receiver.inbox(*answers)
        if "types" in fields:
            fields[TYPES] = fields.pop("types")
        created = self.svix.endpoint.create(app.id, models.EndpointIn(**{"url": inbox.url, **fields}))
        return created, inbox

    def post(self, app: Any, event_type: str = "check.posted", payload: Any = None, **fields: Any) -> Any:
        """Post a message."""
        message = models.MessageIn(event_type=event_type, payload={"n": 1} if payload is None else payload, **fields)
        return self.svix.message.create(app.id, message)

    def secret(self, app: Any, endpoint: Any) -> str:
        """An endpoint's current secret."""
        return str(self.svix.endpoint.get_secret(app.id, endpoint.id).key)

    def attempts(self, app: Any, message: Any, count: int = 1) -> list[Any]:
        """The attempts of a message, newest first, once there are that many."""

        def enough() -> list[Any] | None:
            found: list[Any] = self.svix.message_attempt.list_by_msg(app.id, message.id).data
            return found if len(found) >= count else None

        return until(enough, f"{count} attempts of {message.id}")

    def attempted(self, app: Any, endpoint: Any, message: Any, status: int) -> Any:
        """A message as its endpoint's list shows it, once it has that status."""
        seen: list[Any] = []

        def reached() -> Any:
            listed = self.svix.message_attempt.list_attempted_messages(app.id, endpoint.id).data
            seen[:] = [each for each in listed if each.id == message.id]
            return seen[0] if seen and int(seen[0].status) == status else None

        return until(reached, lambda: f"status {status} of {message.id}: {seen}")

    @property
    def upsert_app(self) -> Any:
        """Replace an application."""
        return self.svix.application.update if OLD else self.svix.application.upsert

    def patch_endpoint(self, app: Any, endpoint: Any, **fields: Any) -> Any:
        """Change an endpoint."""
        if "types" in fields:
            fields[TYPES] = fields.pop("types")
        return self.svix.endpoint.patch(app.id, endpoint.id, models.EndpointPatch(**fields))

    def set_headers(self, app: Any, endpoint: Any, headers: Any) -> None:
        """Replace an endpoint's headers."""
        call = self.svix.endpoint.update_headers if OLD else self.svix.endpoint.set_headers
        call(app.id, endpoint.id, models.EndpointHeadersIn(headers=headers))

    def rotate(self, app: Any, endpoint: Any, **fields: Any) -> str:
        """Rotate an endpoint's secret; the new one."""
        self.svix.endpoint.rotate_secret(app.id, endpoint.id, models.EndpointSecretRotateIn(**fields))
        return self.secret(app, endpoint)


def options(kind: str, **fields: Any) -> Any:
    """A client's options, by the name of their class."""
    from svix import api  # noqa: PLC0415

    return getattr(api, kind)(**fields)


def types_of(endpoint: Any) -> Any:
    """An endpoint's filter of event types."""
    found = getattr(endpoint, TYPES)
    return None if found is None else sorted(found)


def refused(status: int, call: Callable[..., object], *arguments: object, **named: object) -> HttpError:
    """The error that a call is refused with."""
    error = _raised(HttpError, call, arguments, named)
    assert error.status_code == status, f"{error.status_code} {error.code} {error.detail}, wanted {status}"
    assert error.code, error
    assert error.detail, error
    return error


def unprocessable(call: Callable[..., object], *arguments: object, **named: object) -> Any:
    """The reasons that a call is refused for as invalid."""
    error = _raised(HTTPValidationError, call, arguments, named)
    assert error.status_code == 422
    assert error.detail
    for each in error.detail:
        assert each.loc
        assert each.msg
        assert each.type
    return error.detail


def _raised(kind: type[Any], call: Callable[..., object], arguments: Any, named: Any) -> Any:
    try:
        created = call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"wanted {kind.__name__}, was answered {created!r}")


def is_invalid(answer: Raw) -> None:
    """Holds an answer to the shape of invalid requests."""
    assert answer.status == 422, (answer.status, answer.content)
    assert isinstance(answer.json["detail"], list), answer.content
    for each in answer.json["detail"]:
        assert set(each) >= {"loc", "msg", "type"}, answer.content


def until(look: Callable[[], Found | None], missed: str | Callable[[], str]) -> Found:
    """Look again and again until there is something that is not empty or false."""
    deadline, pause = time.monotonic() + WAIT_SECONDS, SOONEST_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited for {missed() if callable(missed) else missed}"
        time.sleep(pause)
        pause = min(1.3 * pause, LATEST_S)
    return found
