"""Pages for people: what they link to stands, what stands is linked to, and what they name exists."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.commands import app
from conformance.requirements.catalogue import load
from conformance.systems import profile_reading

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
ID = re.compile(r"\b[A-Z]{3}-\d{3}\b")
NO_REQUIREMENT = "BUG"
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ trackgauge ([a-z-]+)", re.MULTILINE)


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Of its headings, as the places that show Markdown make them."""
    headings = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Each file of ours that a page links to, and the anchor in it."""
    for target in LINK.findall(text(page)):
        if not target.startswith(("http://", "https://")):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_to_what_stands_there(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_every_page_and_every_file_of_docs_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        place = ahead.pop()
        if place not in reached:
            reached.add(place)
            ahead += [target for target, _ in links(place)] if place.suffix == ".md" else []
    meant = {*PAGES, *(path for path in (ROOT / "docs").rglob("*") if path.is_file() and path.suffix != ".pyc")}
    assert [path for path in sorted(meant) if not {path, *path.parents} & (reached - {ROOT})] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_requirement_that_a_page_names_exists(page: Path) -> None:
    catalogue = load()
    named = {name for name in ID.findall(text(page)) if not name.startswith(NO_REQUIREMENT)}
    assert sorted(named - set(catalogue)) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_that_a_page_shows_exists(page: Path) -> None:
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.name for group in app.registered_groups if group.name}
    assert set(COMMAND.findall(text(page))) <= known


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_whole_profile_that_a_page_shows_is_one(page: Path, tmp_path: Path) -> None:
    shown = [block for block in TOML.findall(text(page)) if "\nkind = " in block and "[start]" in block]
    for number, block in enumerate(shown):
        file = tmp_path / f"{number}.toml"
        file.write_text(block, encoding="utf-8")
        assert profile_reading.load(file).name


def test_the_readme_counts_what_a_run_of_the_reference_judges() -> None:
    judged = Counter(one.level.value for one in load().values() if one.checkable and one.family != "RAY")
    shown = re.search(r"^must (\d+)/\1 · should (\d+)/\2 · may (\d+)/\3 ", text(ROOT / "README.md"), re.MULTILINE)
    assert shown is not None
    assert [int(count) for count in shown.groups()] == [judged[level] for level in ("MUST", "SHOULD", "MAY")]
