"""MiniStack, which asks the policies of roles as AWS does where it does not by itself. Runs in place of it.

What is mended is mended here, in the emulator, so that the policies stay those that were deployed and are in force with
the deployment. (They were rewritten after each deployment. What functions asked meanwhile was refused: a 503, and
``AccessDenied`` in a log.)
"""

from __future__ import annotations

from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions, iam_evaluator  # type: ignore[import-not-found]

BATCHES = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
"""The right that an operation on several messages needs: that on one."""
UNKNOWN_KEYS = {"kms:encryptioncontext:project", "s3:if-none-match", "s3:prefix", "lambda:functionarn"}
"""Keys of conditions that MiniStack 1.5.33 does not know, in lower case: it takes none of them for fulfilled."""

_action, _met, _origin = iam_actions.extract_iam_action, iam_evaluator._conditions_met, app.pin_request_origin


def extract_iam_action(*request: Any, **more: Any) -> Any:
    """The right that a request needs."""
    found = _action(*request, **more)
    return BATCHES.get(found, found)


def conditions_met(conditions: dict[str, Any], context: Any) -> bool:
    """Whether conditions hold, as far as they are known."""
    known = {
        operator: {key: value for key, value in keys.items() if key.lower() not in UNKNOWN_KEYS}
        for operator, keys in (conditions or {}).items()
    }
    return bool(_met(known, context))


def pin_request_origin(address: str, _: bool) -> None:
    """Note where a request comes from. It counts as one over TLS, which buckets ask for and the emulator lacks."""
    _origin(address, True)


def main() -> None:
    """Run it until it is told to stop."""
    iam_actions.extract_iam_action = extract_iam_action
    iam_evaluator._conditions_met = conditions_met
    app.pin_request_origin = pin_request_origin
    app.main()


if __name__ == "__main__":
    main()
