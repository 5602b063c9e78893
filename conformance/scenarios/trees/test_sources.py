"""One tree, read in four ways."""

import json
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import rollouts, triples
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.trees.built import envelopes, family, pages, serving, session
from conformance.systems.rebuild import RebuildUnderTest


def mixed() -> list[Session]:
    """A tree with a broken child, an orphan and a child whose id is no file name."""
    broken = session("broken", "root", turns=3)
    broken.made[1].broken(is_valid=False)
    return [*family(), broken, session("orphan", "nowhere"), session("a/../b ü", "root")]


def shown(answer: dict[str, Any]) -> dict[str, Any]:
    """What of an answer may not depend on where the records came from."""
    answer = rollouts.without_item_ids(answer)
    order_is_free = {key: sorted(map(json.dumps, answer[key])) for key in ("excluded", "notes", "trajectories")}
    return {key: answer[key] for key in ("outcome", "withheld", "reason_code")} | order_is_free


@covers("TRE-034")
async def test_a_tree_in_a_directory_is_the_tree_of_its_envelopes(
    rebuild: RebuildUnderTest, check: Check, tmp_path: Path
) -> None:
    sessions = mixed()
    known = shown(await rebuild.ask(envelopes(sessions)))
    for each in sessions:
        each.write(tmp_path)
    check.equal("TRE-034", expected=known, seen=shown(await rebuild.ask({"log_dir": str(tmp_path)})), where="on disk")
    seen = shown(await rebuild.ask(envelopes(sessions[::-1])))
    check.equal("TRE-034", expected=known, seen=seen, where="in another order")


@covers("TRE-035", "TRE-036", "TRE-038")
async def test_a_tree_behind_a_running_proxy_is_the_tree_of_its_envelopes(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    sessions = mixed()
    known = shown(await rebuild.ask(envelopes(sessions)))
    found = pages(sessions)
    async with serving(found) as url:
        check.equal("TRE-035", expected=known, seen=shown(await rebuild.ask({"url": url})))
    for lost in ("one", "deep", "orphan"):
        less = {path: page for path, page in found.items() if path != f"/v1/sessions/{lost}/completions"}
        async with serving(less) as url:
            check.that("TRE-036", triples.withheld(await rebuild.ask({"url": url})), f"{lost} is not handed out")
    for asked, other in (("one", "two"), ("root", "one")):
        page = found[f"/v1/sessions/{other}/completions"]
        async with serving(found | {f"/v1/sessions/{asked}/completions": page}) as url:
            check.that(
                "TRE-038", triples.withheld(await rebuild.ask({"url": url})), f"{asked} is answered with {other}"
            )
