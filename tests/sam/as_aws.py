"""MiniStack, which asks the policies of roles as AWS does where it does not by itself. Runs in place of it.

Also, it unpacks a layer once, and not for each process of a function, which would compile all of it again.

What is mended is mended here, in the emulator, so that the policies stay those that were deployed and are in force with
the deployment. (They were rewritten after each deployment. What functions asked meanwhile was refused: a 503, and
``AccessDenied`` in a log.)
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # type: ignore[import-not-found]

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


class Unpacked(zipfile.ZipFile):
    """A package whose content is unpacked once; whoever wants it gets links."""

    _lock = threading.Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Put links into a folder."""
        assert self.filename is not None
        digest = hashlib.sha256(Path(self.filename).read_bytes()).hexdigest()
        shared = Path(tempfile.gettempdir()) / "unpacked" / digest
        with self._lock:
            if not shared.is_dir():
                super().extractall(shared)
        for each in shared.iterdir():
            (Path(path) / each.name).symlink_to(each)


def main() -> None:
    """Run it until it is told to stop."""
    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": Unpacked})
    iam_actions.extract_iam_action = extract_iam_action
    iam_evaluator._conditions_met = conditions_met
    app.pin_request_origin = pin_request_origin
    app.main()


if __name__ == "__main__":
    main()
