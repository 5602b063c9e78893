"""``python -m fakes.vllm``."""

import sys

from fakes.vllm.command import main

sys.exit(main(sys.argv[1:]))
