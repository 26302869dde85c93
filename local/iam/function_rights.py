"""A function's process makes only the calls that the function's role grants. Standard library only.

On AWS the services ask IAM about each call. The emulator answers whoever asks, so the process itself asks here, by the
policies that the emulator has deployed (:mod:`local.iam.emulator_roles`), before a call leaves it. The function notices
nothing but the refusal, which is AWS's own.

What was refused is a line of JSON in the file ``refused`` of a folder, which is never emptied while the stack runs;
what was used for the first time is one in ``used``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .calls import AccountPlace, needs, needs_of_answer, refusal
from .policies import Need, Policies, Right

REFUSED, USED = "refused", "used"
"""Files of the folder of notes."""

_API = re.compile(r"/execute-api/([^/]+)/")


class Notes:
    """Lines about one function, in files that several processes write.

    Args:
        folder: Where they are; nothing is noted if it is empty.
        function: Name of the function.
    """

    def __init__(self, folder: str, function: str) -> None:
        self._folder = folder
        self._function = function
        self._known: set[Right] = set()

    def used(self, rights: Iterable[Right]) -> None:
        """Note rights that were not used before."""
        new = set(rights) - self._known
        self._known |= new
        for each in new:
            self._write(USED, {"action": each.action, "resource": each.resource, "condition": each.condition})

    def refused(self, need: Need) -> None:
        """Note what the role did not grant."""
        self._write(REFUSED, {"action": need.action, "resource": need.resource, "context": need.context})

    def _write(self, name: str, entry: Mapping[str, Any]) -> None:
        if not self._folder:
            return
        line = json.dumps({"function": self._function, **entry}).encode() + b"\n"
        file = os.open(f"{self._folder}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # One write, so that the lines of several processes do not mix.
            os.write(file, line)
        finally:
            os.close(file)


class Guard:
    """Asks for each call whether the role grants it.

    Args:
        function: ARN of the function.
        notes: Where to note what happens.
    """

    def __init__(self, function: str, notes: Notes) -> None:
        _, _, _, region, account, _, name, *_ = function.split(":")
        self._region, self._account = region, account
        self._caller = f"arn:aws:sts::{account}:assumed-role/{name}/{name}"
        self._notes = notes
        self._policies = Policies([])

    def grant(self, documents: list[dict[str, Any]]) -> None:
        """From now on, the role has these policies."""
        self._policies = Policies(documents)

    def stand(self) -> None:
        """Let every client of boto3 in this process ask."""
        client = importlib.import_module("botocore.client").BaseClient
        error = importlib.import_module("botocore.exceptions").ClientError
        make = client._make_api_call

        def make_granted_call(made_by: Any, operation: str, given: dict[str, Any]) -> Any:
            service = made_by.meta.service_model.service_name
            found = _API.search(made_by.meta.endpoint_url)
            place = AccountPlace(self._region, self._account, found[1] if found else "")

            def require(needed: list[Need]) -> None:
                for each in needed:
                    granting = self._policies.granting(each)
                    if not granting:
                        self._notes.refused(each)
                        raise error({"Error": refusal(service, each, self._caller)}, operation)
                    self._notes.used(granting)

            require(needs(service, operation, given, place))
            try:
                answer = make(made_by, operation, given)
            except error as failed:
                require(needs_of_answer(service, operation, given, failed.response, place))
                raise
            require(needs_of_answer(service, operation, given, answer, place))
            return answer

        client._make_api_call = make_granted_call
