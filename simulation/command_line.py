"""A person at the command line: commands run in the current task, ask the hub over its HTTP APIs, and see its time.

Operators' commands get the models of the services in place of AWS.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, tzinfo
from functools import partial
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import requests
from cli.__main__ import COMMANDS, run
from cli.hub import HubOptions
from cli.operators.deployment import KEY_OUTPUT, Deployment, deployment
from requests.structures import CaseInsensitiveDict

from pushhub.base.ports import PushRequest
from pushhub.cloud.clock import SystemClock
from simulation.account import Account
from simulation.promises.talks.talk import Typed
from simulation.scheduler import SECOND

URL = "https://hub.example"
"""Where the command line takes the hub to be."""

KEY = "WebhooksKey"
"""The key that seals, as the template calls it."""


class _Pipe(io.BytesIO):
    """What a pipe gives."""

    name = "<stdin>"


class _Answer:
    """What ``requests`` shows of an answer, as far as the command line looks."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status_code = status
        self.headers = CaseInsensitiveDict(headers)
        self._content = content

    def iter_content(self, _: int) -> Iterator[bytes]:
        yield self._content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is to be closed."""


class _Client:
    """A client of a service's model, with hooks before each call."""

    def __init__(self, service: str, model: object) -> None:
        self._service = service
        self._model = model
        self._hooks: list[Callable[..., None]] = []
        self.meta = SimpleNamespace(events=SimpleNamespace(register=lambda _, hook: self._hooks.append(hook)))

    def get_paginator(self, operation: str) -> _Pages:
        """The pages of an operation."""
        return _Pages(getattr(self, operation))

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        name = "".join(map(str.capitalize, operation.split("_")))
        called = SimpleNamespace(name=name, service_model=SimpleNamespace(service_name=self._service))

        def call(**parameters: Any) -> Any:
            for hook in self._hooks:
                hook(model=called, params=parameters)
            return getattr(self._model, operation)(**parameters)

        return call


class _Pages:
    """All answers of an operation of S3, each asked for with the token of the one before it."""

    def __init__(self, ask: Callable[..., dict[str, Any]]) -> None:
        self._ask = ask

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        """The answers."""
        more: dict[str, Any] = {}
        while True:
            answer = self._ask(**asked, **more)
            yield answer
            if "NextContinuationToken" not in answer:
                return
            more = {"ContinuationToken": answer["NextContinuationToken"]}


class _AtOnce:
    """In place of threads: each call is made when it is asked for, in the current task."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def map(self, call: Callable[[Any], Any], of: Iterable[Any]) -> Iterator[Any]:
        """The answers."""
        return map(call, of)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is under way."""


class _Outputs(dict[str, str]):
    """The outputs of the stack: what they name is called as in the template."""

    def __missing__(self, name: str) -> str:
        return name.removesuffix("Name")


class _Functions:
    """Lambda as an operator's command calls it: it waits for the run."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 (the service's)
        """Invoke."""
        self._account.functions[FunctionName.removesuffix("Function").lower()].invoke(json.loads(Payload))
        return {"StatusCode": 200}


class _Session:
    """The session of a stack on this machine: its clients are the models."""

    def __init__(self, account: Account) -> None:
        self._models = {**account.services, "lambda": _Functions(account)}

    def client(self, service: str, **_: object) -> _Client:
        return _Client(service, self._models[service])


class CommandLine:
    """Runs commands as a project, and as an operator of its hub.

    Args:
        account: The account that the hub is in.
        project: The project.
        token: Its token.
    """

    def __init__(self, account: Account, project: str, token: str) -> None:
        self._account = account
        self._environ = {"PUSHHUB_URL": URL, "PUSHHUB_PROJECT": project, "PUSHHUB_TOKEN": token}
        for where, _ in COMMANDS.values():
            importlib.import_module(f"cli.{where.partition(':')[0]}")

    def __call__(self, words: Sequence[str], given: bytes = b"") -> Typed:
        """Run a command.

        Args:
            words: What is typed after ``pushhub``.
            given: Standard input, a pipe.
        """
        printed, errors = io.StringIO(), io.StringIO()
        with self._at_the_terminal(printed, errors, given):
            code = run([*words])
        return Typed(code, printed.getvalue(), errors.getvalue())

    @contextmanager
    def _at_the_terminal(self, printed: io.StringIO, errors: io.StringIO, given: bytes) -> Iterator[None]:
        account = self._account

        def sleeps(seconds: float) -> None:
            account.scheduler.sleep(round(seconds * SECOND))

        class Now(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.fromtimestamp(account.now_ms() / 1000, tz or UTC)

        def deployed(hub: HubOptions) -> Deployment:
            outputs = _Outputs({KEY_OUTPUT: account.stack.parameters.get("KmsKeyArn") or KEY})
            return Deployment("", outputs, _Session(account), {}, dry=hub.dry_run)

        patches: list[Any] = [
            patch.dict(os.environ, self._environ),
            patch.object(sys, "stdin", io.TextIOWrapper(_Pipe(given))),
            patch.object(sys, "stdout", printed),
            patch.object(sys, "stderr", errors),
            patch.object(requests.Session, "request", partial(_asked, account)),
            patch.object(SystemClock, "now", lambda _: account.now_ms()),
            patch.object(SystemClock, "sleep", lambda _, seconds: sleeps(seconds)),
            patch.object(time, "sleep", sleeps),
            patch.object(time, "time", lambda: account.now_ms() / 1000),
            patch.object(time, "monotonic", lambda: account.now_ms() / 1000),
        ]
        for name, module in [*sys.modules.items()]:
            if name.startswith("cli."):
                if getattr(module, "datetime", None) is datetime:
                    patches.append(patch.object(module, "datetime", Now))
                if hasattr(module, "ThreadPoolExecutor"):
                    patches.append(patch.object(module, "ThreadPoolExecutor", _AtOnce))
                if getattr(module, "deployment", None) is deployment:
                    patches.append(patch.object(module, "deployment", deployed))
                for each in vars(module).values():
                    if isinstance(each, type) and "sleep" in (named := _defaults(each)):
                        patches.append(patch.dict(named, sleep=sleeps))
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each)
            yield


def _defaults(of: type) -> dict[str, Any]:
    """What a class is made with where nothing is given by name."""
    return getattr(vars(of).get("__init__"), "__kwdefaults__", None) or {}


def _asked(
    account: Account,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    params: Mapping[str, str] | None = None,
    data: bytes | None = None,
    json: object = None,
    **_: object,
) -> _Answer:
    parts = urlsplit(url)
    query = urlencode([*parse_qsl(parts.query), *(params or {}).items()])
    if parts.hostname != urlsplit(URL).hostname:
        return _asked_elsewhere(account, method, parts._replace(query=query).geturl(), headers)
    path = unquote(parts.path) + (f"?{query}" if query else "")
    answer = account.http(method, path, json if data is None else data, headers=headers)
    if not answer.status:
        raise requests.ConnectionError
    return _Answer(answer.status, answer.headers, _written(answer.body))


def _asked_elsewhere(account: Account, method: str, url: str, headers: Mapping[str, str]) -> _Answer:
    """Somebody else's server, which is only read."""
    if method != "GET" or (urlsplit(url).hostname or "") not in account.endpoints.known:
        raise requests.ConnectionError
    _, reply = account.endpoints.at(url).asked(
        PushRequest(url=url, body=b"", headers=headers, method="GET"), "command line"
    )
    account.scheduler.sleep(50_000)
    return _Answer(reply.status, reply.headers, reply.body)


def _written(body: Any) -> bytes:
    return b"" if body == {} else json.dumps(body).encode()


__all__ = ["CommandLine"]
