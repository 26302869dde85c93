"""The operator's command line, for the local stack and for deployed ones alike: ``python -m cli --help``."""

import sys
from pathlib import Path

_LAYER = str(Path(__file__).resolve().parent.parent / "layers" / "pushhub")
if _LAYER not in sys.path:
    sys.path.insert(0, _LAYER)
