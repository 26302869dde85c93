"""Errors of AWS's services, in their two writings."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.sinks.model.kind import ServiceFault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pushhub.base.verdict import Answer

_CODE = re.compile(r"[A-Za-z0-9._-]{1,100}")
_LISTS = {
    "Successful": re.compile(r"<Successful>(.*?)</Successful>", re.DOTALL),
    "Failed": re.compile(r"<Failed>(.*?)</Failed>", re.DOTALL),
}
_MEMBER = re.compile(r"<member>(.*?)</member>", re.DOTALL)
_ELEMENT = re.compile(r"<([A-Za-z]{1,40})>([^<]{0,2000})</")
_XML = {
    "Code": re.compile(r"<Code>([^<]{0,2000})</Code>"),
    "Message": re.compile(r"<Message>([^<]{0,2000})</Message>"),
}


def taken(answer: Answer) -> bool:
    """Whether an answer says, by its status, that the request was right."""
    return not answer.error_class and 200 <= answer.status_code < 300


def json_fault(answer: Answer, lasting: Collection[str]) -> ServiceFault | None:
    """The error in an answer of a service that speaks JSON; None if it took the request.

    Args:
        lasting: Errors of messages that will never be taken.
    """
    if taken(answer):
        return None
    said = object_of(answer.body)
    named = said.get("__type") or said.get("code") or said.get("Code") or answer.headers.get("x-amzn-errortype", "")
    text = said.get("message") or said.get("Message") or ""
    return fault_of(named, text, answer, lasting)


def xml_fault(answer: Answer, lasting: Collection[str]) -> ServiceFault | None:
    """The same of a service that speaks XML."""
    if taken(answer):
        return None
    text = answer.body.decode(errors="replace")
    found = {name: pattern.search(text) for name, pattern in _XML.items()}
    code, said = (html.unescape(each[1]) if each else "" for each in (found["Code"], found["Message"]))
    return fault_of(code, said, answer, lasting)


def fault_of(named: object, text: object, answer: Answer, lasting: Collection[str]) -> ServiceFault:
    """An error by its name: ``com.amazonaws.sqs#QueueDoesNotExist``, ``Throttling``, ``X:http://...``."""
    code = str(named).rpartition("#")[2].partition(":")[0]
    if _CODE.fullmatch(code) is None:
        code = f"Status{answer.status_code}"
    # Some throttle by the status alone.
    code = "Throttled" if answer.status_code == 429 and code.startswith("Status") else code
    return ServiceFault(code=code, text=text if isinstance(text, str) else "", lasting=code in lasting)


def members_of(text: str, name: str) -> list[dict[str, str]]:
    """The members of a list in an answer in XML, each with its simple elements."""
    found = _LISTS[name].search(text)
    members = _MEMBER.findall(found[1]) if found else []
    return [{each: html.unescape(value) for each, value in _ELEMENT.findall(member)} for member in members]


NOT_SAID = ServiceFault(code="UnknownAnswer", text="The service did not say whether it took the message")
"""What is made of a message that an answer to several does not mention."""


def faults_by_id(
    taken_ids: Collection[str],
    failed: Mapping[str, tuple[object, object]],
    count: int,
    answer: Answer,
    lasting: Collection[str],
) -> list[ServiceFault | None]:
    """Why each of several messages was not taken, whose ids in the call were their numbers.

    Args:
        taken_ids: Ids of those that were.
        failed: Code and text, by id, of those that were not.
    """
    found: list[ServiceFault | None] = []
    for number in map(str, range(count)):
        if number in failed:
            found.append(fault_of(*failed[number], answer, lasting))
        else:
            found.append(None if number in taken_ids else NOT_SAID)
    return found


def object_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object that a body is; an empty one if it is none."""
    try:
        said = json_text.read(body, last_wins=True)
    except json_text.NotJson:
        return {}
    return said if isinstance(said, dict) else {}
