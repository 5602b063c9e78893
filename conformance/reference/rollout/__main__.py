"""``python -m conformance.reference.rollout``."""

import sys

from conformance.reference.rollout.command import main

sys.exit(main(sys.argv[1:]))
