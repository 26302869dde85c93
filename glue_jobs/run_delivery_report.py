"""The script that Glue starts; the package comes as ``--extra-py-files``, or within it (see ``bundle.py``)."""

import sys

from delivery_report.job import main  # type: ignore[import-not-found, unused-ignore]

main(sys.argv[1:])
