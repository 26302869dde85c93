"""Uses the Python client that openapi-python-client made of the hub's description; run in that client's environment.

Arguments: the hub's base URL, a token, an application's id, a message's payload as JSON. Prints what came back as JSON.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from typing import Any


def main(base_url: str, token: str, app_id: str, payload: str) -> None:
    """Import every module, post a message, and be refused once."""
    client_made: Any = importlib.import_module("hub_client")
    modules = [each.name for each in pkgutil.walk_packages(client_made.__path__, "hub_client.")]
    for each in modules:
        importlib.import_module(each)
    create: Any = importlib.import_module("hub_client.api.webhooks_svix_api_v_1.webhooks_create_message")
    body: Any = importlib.import_module("hub_client.models").WebhooksCreateMessageBody
    client = client_made.AuthenticatedClient(base_url=base_url, token=token)
    asked = body.from_dict({"eventType": "order.created", "payload": json.loads(payload)})
    posted = create.sync(app_id, client=client, body=asked, with_content=True)
    missing = create.sync_detailed("app_none", client=client, body=asked)
    wrong = create.sync_detailed(app_id, client=client, body=body.from_dict({"eventType": "", "payload": {}}))
    sys.stdout.write(
        json.dumps(
            {
                "modules": len(modules),
                "payload": posted.payload.to_dict(),
                "missing": [missing.status_code, type(missing.parsed).__name__, missing.parsed.code],
                "wrong": [wrong.status_code, type(wrong.parsed).__name__, wrong.parsed.detail[0].loc],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
