"""``python -m conformance.requirements`` prints the count by family; ``--freeze 2026-12`` the text of a set."""

import sys

from conformance.requirements.catalogue import load, set_text
from conformance.requirements.form import CatalogueError
from conformance.requirements.listing import counts


def main(argv: list[str]) -> int:
    try:
        catalogue = load()
    except CatalogueError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command entry point
        return 2
    if len(argv) == 2 and argv[0] == "--freeze":
        print(set_text(catalogue, argv[1]), end="")  # noqa: T201 - a command entry point
        return 0
    if argv:
        print("usage: python -m conformance.requirements [--freeze YYYY-MM]", file=sys.stderr)  # noqa: T201
        return 2
    print(counts(catalogue))  # noqa: T201 - a command entry point
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
