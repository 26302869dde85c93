"""Measurements, each as a ratio against a baseline in the same run. Never part of the tests.

They find the layer without a PYTHONPATH, and so do the processes that they start.
"""

import os
import sys
from pathlib import Path

_LAYER = str(Path(__file__).parents[1] / "layers" / "pushhub")
if _LAYER not in sys.path:
    sys.path.append(_LAYER)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), _LAYER)))
