"""Endpoints, subscribers and services that demand a client certificate, behind an authority of their own, on the
running stack.
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.fakes.private_keys import identity
from tests.hostile import BEHAVIOURS, Authority, HostileEndpoint
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.slow, pytest.mark.stack]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_stack_shows_a_certificate_where_it_is_demanded(
    stack: RunningStack, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    project = stack.make_project()
    base, authorization = f"{stack.base_url}/api/v1", {"Authorization": f"Bearer {project.token}"}

    def ask(method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        answer = requests.request(method, f"{base}{path}", data=sent, headers=authorization, timeout=40)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    # Given a receiver that lets in one certificate, whose own is of an authority that nobody else knows
    authority, pem = Authority(tmp_path), identity(rsa_bits=4_096)
    context = authority.server("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=pem[pem.index("-----BEGIN CERTIFICATE") :])
    context.minimum_version = context.maximum_version = version
    app = ask("POST", "/app", {"name": "Acme"})["id"]
    with HostileEndpoint(BEHAVIOURS, tls=context) as receiver:
        url = receiver.url("healthy")
        mine, other = (ask("POST", f"/app/{app}/endpoint", {"url": url})["id"] for _ in range(2))
        ca = Path(authority.ca_file).read_text()
        ask("PUT", f"/app/{app}/endpoint/{mine}/mtls", {"identity": pem, "ca": ca})
        ask("PUT", f"/app/{app}/endpoint/{other}/mtls", {"identity": identity(name="other"), "ca": ca})
        # When a message is posted to both
        message = ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})["id"]

        def attempts() -> dict[str, Any]:
            created = ask("GET", f"/app/{app}/attempt/msg/{message}")["data"]
            return {each["endpointId"]: each for each in created}

        found = until(lambda: created if len(created := attempts()) == 2 else None, 120, lambda: str(attempts()))
        # Then it comes from the one whose certificate it is, and not on its connection from the other
        assert found[mine]["status"] == 0, found
        assert found[other]["responseStatusCode"] == 0, found
        assert len(receiver.requests) == 1
        # When a subscriber and a service have the same certificate, then they are let in, too; others are not
        client, queue = ProjectClient(base_url=stack.base_url, project_id=project.project_id, token=project.token), "q"
        gates = {"mine": {"identity": pem, "ca": ca}, "other": {"identity": identity(name="other"), "ca": ca}}
        client.make_push(queue, *({"name": each, "url": url, "mtls": gates[each]} for each in gates), retries=0)
        [posted] = client.post(queue, "x")

        def statuses() -> dict[str, Any]:
            return {each["name"]: each for each in client.statuses(queue, posted) if each["tries"]}

        came = until(lambda: created if len(created := statuses()) == 2 else None, 120, lambda: str(statuses()))
        assert came["mine"]["status_code"] == 200, came
        assert came["other"]["status_code"] == 0, came
        store, key = f"{stack.base_url}/api/stores/{project.project_id}", {"X-Augury-Token": project.token}
        mapping = {
            "name": "acme.import",
            "url": url,
            "token": "t" * 32,
            "messages": ["order:new"],
            "mtls": gates["mine"],
        }
        answer = requests.post(f"{store}/mappings", json={"mapping": mapping}, headers=key, timeout=40)
        assert answer.status_code == 201, answer.text
        order = {"message": "order:new", "payload": {"number": "R1"}}
        assert requests.post(f"{store}/messages", json=order, headers=key, timeout=40).status_code == 201
        until(lambda: len(receiver.requests) >= 3, 120, lambda: str(receiver.requests))
        found |= {"queue": client.info(queue), "mapping": answer.json()}
    # And nothing shows the key
    shown = json.dumps(
        [found, ask("GET", f"/app/{app}/endpoint/{mine}"), ask("GET", f"/app/{app}/endpoint/{mine}/mtls")]
    )
    assert pem[40:80] not in shown
