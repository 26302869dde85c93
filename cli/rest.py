"""The hub's HTTP APIs for one project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click
import requests

from cli.terminal import printable

TIMEOUT_S = 40
"""Seconds for one answer; a long poll takes 28 of them."""


class Refused(click.ClickException):
    """The hub answered, and the answer is no.

    Args:
        status: Its HTTP status.
        message: Its message.
    """

    exit_code = 1

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the hub says {status}: {printable(message)}")
        self.status = status


class Unreachable(click.ClickException):
    """The hub did not answer; the request may or may not have been carried out."""

    exit_code = 3


class Rest:
    """Requests with a project's token.

    Args:
        base_url: Of the hub.
        project: The project's id.
        token: Its token.
    """

    def __init__(self, base_url: str, project: str, token: str) -> None:
        self.base_url = base_url.rstrip("/")
        self.project = project
        self.token = token
        self._session = requests.Session()
        # A .netrc of the person must not put its own credentials over the token.
        self._session.trust_env = False

    def queue(self, name: str, rest: str = "") -> str:
        """Path of a queue."""
        return f"/3/projects/{self.project}/queues/{quote(name, safe='')}{rest}"

    @property
    def queues(self) -> str:
        """Path of all queues."""
        return f"/3/projects/{self.project}/queues"

    @property
    def store(self) -> str:
        """Path of the project's store."""
        return f"/api/stores/{self.project}"

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
    ) -> Any:
        """Send a request and return the JSON of its answer; bytes are sent unchanged.

        Raises:
            Refused: The answer is not a success.
            Unreachable: There is no answer.
        """
        shown = {"Authorization": f"Bearer {self.token}", "X-Augury-Token": self.token, **(headers or {})}
        content = {"data": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        try:
            answer = self._session.request(
                method,
                f"{self.base_url}{path}",
                headers=shown,
                params=query,
                timeout=timeout,
                allow_redirects=False,
                **content,
            )
        except requests.RequestException as error:
            raise Unreachable(f"{self.base_url} did not answer: {_reason(error)}") from error
        try:
            told = json.loads(answer.content) if answer.content else {}
        except ValueError:
            told = {"msg": answer.content[:200].decode(errors="replace")}
        # A redirect is not followed: it would take the token elsewhere.
        if not 200 <= answer.status_code < 300:
            raise Refused(answer.status_code, _message(told))
        return told


def _message(told: Any) -> str:
    """The message of an error in any of the protocols."""
    if not isinstance(told, dict):
        return str(told)[:200]
    found = next((told[name] for name in ("msg", "message", "detail", "error") if told.get(name)), "no reason given")
    found = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    errors = told.get("errors")
    return f"{found} {json.dumps(errors, ensure_ascii=False)}" if errors else found


def _reason(error: requests.RequestException) -> str:
    # The whole text of these errors is a stack of class names.
    return "no answer in time" if isinstance(error, requests.Timeout) else type(error).__name__
