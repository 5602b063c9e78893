"""``python -m fakes.harnesses NAME``."""

import sys

from fakes.harnesses.command import main

sys.exit(main(sys.argv[1:]))
