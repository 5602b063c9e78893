"""What the README says of the catalogue is what the catalogue holds."""

import re
from collections import Counter
from pathlib import Path

from conformance.requirements.catalogue import load

README = Path(__file__).parents[2] / "README.md"
ROW = re.compile(r"^\| ([A-Z]{3}) \| .* \| (\d+) \|$", re.MULTILINE)


def test_the_readme_counts_the_requirements_of_each_family() -> None:
    told = {family: int(count) for family, count in ROW.findall(README.read_text(encoding="utf-8"))}
    assert told == Counter(each.family for each in load().values() if each.checkable)
