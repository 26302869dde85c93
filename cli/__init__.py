"""The command line, for the local stack and for deployed ones alike: ``python -m cli --help`` in a clone.

Installed with pip the package is called ``pushhub_cli``, as others may have a ``cli``; so its modules import one
another by relative names.
"""

import sys
from pathlib import Path

_LAYER = Path(__file__).resolve().parent.parent / "layers" / "pushhub"
if _LAYER.is_dir() and str(_LAYER) not in sys.path:
    sys.path.insert(0, str(_LAYER))
