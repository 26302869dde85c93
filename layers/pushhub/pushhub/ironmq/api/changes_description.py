"""Describes the route of a project's changes for the OpenAPI document."""

from __future__ import annotations

from pushhub.web.description import Described, answer, array, boolean, nullable, obj, text, whole

CHANGES: dict[str, Described] = {
    "ironmq.list_changes": Described(
        means="From the hub's audit trail, newest first: changes of settings of any protocol, not of messages. "
        "`kept` is false if the hub keeps no trail. What opens something reads `********`.",
        answer=answer(
            {
                "kept": boolean(),
                "changes": array(
                    answer(
                        {
                            "id": text("The change's id."),
                            "at": text("When it was asked for.", format="date-time"),
                            "by": obj("Who: `kind` (`token`, `portal`, `link`), the token's id, and a portal's `app`."),
                            "from": obj("From where: `address` and `agent`."),
                            "action": text("Name of the operation, as in this description."),
                            "what": text("Method and path."),
                            "asked": {"description": "The request's body; its length if it is not JSON."},
                            "before": {"description": "What a GET of the path showed before; null if nothing."},
                            "after": {"description": "And afterwards."},
                            "made": nullable(text("Id of what was made.")),
                            "status": nullable(whole("Status of the answer; null if it is not known.", 100)),
                        }
                    )
                ),
                "after": nullable(text("Send it with the next request to continue.")),
            }
        ),
        answered={
            "kept": True,
            "changes": [
                {
                    "id": "e63e39bb267dbe46",
                    "at": "2026-11-18T11:00:00.000Z",
                    "by": {"kind": "token", "token": "01df91cddca1"},
                    "from": {"address": "203.0.113.7", "agent": "curl/8"},
                    "action": "ironmq.change_queue",
                    "what": "PATCH /3/projects/5c1f0a9e2b7d4c3f8a6e1d20/queues/orders",
                    "asked": {"queue": {"message_timeout": 90}},
                    "before": {"queue": {"message_timeout": 60}},
                    "after": {"queue": {"message_timeout": 90}},
                    "made": None,
                    "status": 200,
                }
            ],
            "after": None,
        },
    ),
}
