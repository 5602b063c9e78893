"""``python -m fakes.recorder``."""

import sys

from fakes.recorder.command import main

sys.exit(main(sys.argv[1:]))
