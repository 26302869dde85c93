"""What may be logged about an unexpected error: enough to find it in the code,
and nothing of the data being processed.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

from pushhub.base.errors import HubError

FRAMES = 3


def described(error: BaseException) -> dict[str, str]:
    """The log fields that describe an error.

    The text of an error that is not the hub's own is left out: it may contain a URL with its token, or a body.
    """
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    kind = type(error).__name__
    return {
        "error": f"{kind}: {error}" if isinstance(error, HubError) else kind,
        "at": " > ".join(f"{PurePath(each.filename).name}:{each.lineno} {each.name}" for each in frames),
    }
