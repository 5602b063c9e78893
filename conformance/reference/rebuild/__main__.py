import sys

from conformance.reference.rebuild.command import main

sys.exit(main(sys.argv[1:]))
