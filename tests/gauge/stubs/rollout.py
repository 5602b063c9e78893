"""A rollout runner that does nothing right, in the way its first argument names."""

import json
import sys


def main(way: str) -> None:
    for line in sys.stdin:
        if way == "dying":
            sys.exit(3)
        told = json.loads(line)
        sys.stdout.write("ready\n")
        sys.stdout.write(json.dumps({"id": told.get("id"), "outcome": "clean", "withheld": "no"}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
