"""Entry point of ``python -m conformance.reference.capture``."""

import sys

from conformance.reference.capture.command import main

sys.exit(main(sys.argv[1:]))
