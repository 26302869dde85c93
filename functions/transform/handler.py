"""Transform function: runs the code of endpoints. It imports neither the hub nor an SDK."""

from pushhub.runtime.scripts import run

handler = run
