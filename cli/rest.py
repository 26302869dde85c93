"""The hub's HTTP APIs for one project."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import click
import requests

from pushhub.base import json_text

from .answers import Odd, fields, sections
from .dry import NotDone
from .patience import patience
from .terminal import printable

TIMEOUT_S = 40
"""Seconds for one answer; a long poll takes 28 of them."""
LONGEST_BYTES = 64 * 1024 * 1024
"""Bytes of an answer that are read; a hub's are shorter than 10 MiB."""
WARNING_HEADER = "Pushhub-Warning"
"""What the hub says of settings that it has taken, but that are probably not what was meant."""
_BLOCK_BYTES = 65_536
PAGE = 250
MOST_PAGES = 10_000
THERE = "the server there"
"""How refusals name the other of two servers."""


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def typed(name: str) -> str:
    """A name that somebody typed, as a segment of a path.

    Raises:
        click.UsageError: It would make the path another's: clients take ``.`` and ``..`` out of paths.
    """
    if name in ("", ".", ".."):
        raise click.UsageError(f"{name!r} cannot be a part of a URL, so it is nothing's name or id")
    return segment(name)


class Refused(click.ClickException):
    """The hub answered, and the answer is no."""

    exit_code = 1

    def __init__(self, status: int, message: str, says: str = "the hub") -> None:
        super().__init__(f"{says} says {status}: {printable(message)}")
        self.status = status


class Unreachable(click.ClickException):
    """The hub did not answer; the request may or may not have been carried out."""

    exit_code = 3


class Rest:
    """Requests with a project's token.

    Args:
        dry: Whether nothing may be changed: what would change something is not sent.
        called: How refusals name it, where two servers are talked to.
    """

    def __init__(self, base_url: str, project: str, token: str, *, dry: bool = False, called: str = "the hub") -> None:
        self.base_url = base_url.rstrip("/")
        self.project = project
        self.token = token
        self._dry = dry
        self._called = called
        self._session = requests.Session()
        # A .netrc of the person must not put its own credentials over the token.
        self._session.trust_env = False

    def queue(self, name: str, rest: str = "") -> str:
        """Path of a queue."""
        return f"{self.queues}/{segment(name)}{rest}"

    @property
    def queues(self) -> str:
        """Path of all queues."""
        return f"{self.path}/queues"

    @property
    def path(self) -> str:
        """Path of what is neither a queue's nor the store's."""
        return f"/3/projects/{segment(self.project)}"

    @property
    def store(self) -> str:
        """Path of the project's store."""
        return f"/api/stores/{segment(self.project)}"

    def every(self, path: str) -> list[dict[str, Any]]:
        """All of a list of the webhooks API, page by page.

        Raises:
            Odd: It does not end, or is no list.
        """
        found: list[dict[str, Any]] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = self.call("GET", path, query={"limit": str(PAGE), "iterator": after})
            found += sections(page, "data")
            before, after = after, str(fields(page).get("iterator") or "")
            if fields(page).get("done") is not False or after in ("", before):
                return found
        raise Odd("its list does not end")

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        reads: bool = False,
    ) -> Any:
        """Send a request and return the JSON of its answer; bytes are sent unchanged.

        Args:
            method: Anything but ``GET`` is not sent in a dry run.
            headers: Besides the token.
            reads: Whether a ``POST`` changes nothing.

        Raises:
            NotDone: This is a dry run.
            Refused: The answer is not a success.
            Odd: The answer is not JSON, or endless.
            Unreachable: There is no answer.
            click.UsageError: The URL or a header cannot be sent.
        """
        if self._dry and not reads and method != "GET":
            raise NotDone(f"{method} {path}", body)
        shown = {"Authorization": f"Bearer {self.token}", "X-Augury-Token": self.token, **(headers or {})}
        sent = {"data": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        try:
            with (
                patience("waiting for the hub"),
                self._session.request(
                    method,
                    f"{self.base_url}{path}",
                    headers=shown,
                    params=query,
                    timeout=timeout,
                    allow_redirects=False,
                    stream=True,
                    **sent,
                ) as answer,
            ):
                status, content = answer.status_code, _content(answer, time.monotonic() + 2 * timeout)
                warning = answer.headers.get(WARNING_HEADER)
        except ValueError as error:
            # Nothing was sent: the errors that requests and urllib3 raise about a URL or header are such.
            if isinstance(error, requests.exceptions.InvalidHeader | UnicodeError):
                raise click.UsageError("a header has a name or value that cannot be sent") from error
            raise click.UsageError(f"{printable(self.base_url)} is no URL of a hub") from error
        except requests.RequestException as error:
            raise Unreachable(f"{self.base_url} did not answer: {reason(error)}") from error
        # A redirect is not followed: it would take the token elsewhere.
        if not 200 <= status < 300:
            raise Refused(status, _message(content), self._called)
        if warning:
            click.secho(f"warning: {printable(warning)}", fg="yellow", err=True)
        try:
            return json_text.read(content, last_wins=True) if content else {}
        except json_text.NotJson as error:
            raise Odd(f"it {error}; is {self.base_url} the base URL of a hub?") from error


def _content(answer: requests.Response, until: float) -> bytes:
    """The whole body.

    Raises:
        Odd: It is too long.
        requests.Timeout: It does not end.
    """
    blocks, size = [], 0
    for block in answer.iter_content(_BLOCK_BYTES):
        size += len(block)
        if size > LONGEST_BYTES:
            raise Odd(f"it has more than {LONGEST_BYTES} bytes")
        if time.monotonic() > until:
            raise requests.Timeout
        blocks.append(block)
    return b"".join(blocks)


def _message(content: bytes) -> str:
    """The message of an error in any of the protocols."""
    try:
        answer = json_text.read(content, last_wins=True) if content else {}
    except json_text.NotJson:
        return content[:200].decode(errors="replace").strip()
    if not isinstance(answer, dict):
        return str(answer)[:200]
    found = next(
        (answer[name] for name in ("msg", "message", "detail", "error") if answer.get(name)), "no reason given"
    )
    if isinstance(found, list) and found and all(map(_is_problem, found)):
        return problems([(each["msg"], each["loc"]) for each in found])
    found = found if isinstance(found, str) else json_text.write(found, spaced=True)
    errors = answer.get("errors")
    return f"{found} {json_text.write(errors, spaced=True)}" if errors else found


def problems(found: Sequence[tuple[str, Sequence[object]]]) -> str:
    """What is wrong with a request, in one sentence.

    Args:
        found: Each text with its place in the request.
    """
    return "; ".join(f"{text} ({'.'.join(map(str, where))})" for text, where in found)


def _is_problem(part: object) -> bool:
    """Whether a part of an error's detail is a problem, as Svix's API words it."""
    return isinstance(part, dict) and isinstance(part.get("msg"), str) and isinstance(part.get("loc"), list)


def reason(error: BaseException) -> str:
    """Why there is no answer, in words. The whole text of these errors is a stack of class names."""
    found = list(_causes(error))
    if any(isinstance(each, requests.Timeout | TimeoutError) for each in found):
        return "no answer in time"
    if any(isinstance(each, requests.exceptions.SSLError) for each in found):
        return "its certificate is not valid for this address, or it does not speak TLS"
    said = next((each.strerror for each in found if isinstance(each, OSError) and each.strerror), "")
    if said:
        return said.lower()
    return "the connection was closed before the whole answer came"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        inside = [each for each in error.args if isinstance(each, BaseException)]
        reason = getattr(error, "reason", None)
        error = (
            inside[0]
            if inside
            else reason
            if isinstance(reason, BaseException)
            else error.__cause__ or error.__context__
        )
