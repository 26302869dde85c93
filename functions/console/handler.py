"""Console function: the static files of the console, below ``/console``."""

from pushhub.runtime.console import site_beside

handler = site_beside(__file__)
