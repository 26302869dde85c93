"""The script that Glue starts; the package lies beside it (``--extra-py-files``) or, bundled, within it."""

import sys

from delivery_report.job import main

main(sys.argv[1:])
