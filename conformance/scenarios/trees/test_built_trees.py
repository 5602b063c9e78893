"""Trees of sessions as a rebuild sees them: who is whose child, what is broken, and what is no part of the tree."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import placing, rollouts, triples
from conformance.oracle.rollouts import Answer, Sampled
from conformance.scenarios.rebuild.sessions import Session, says, system, truth_of, user
from conformance.scenarios.trees.built import envelopes, family, session
from conformance.systems.rebuild import RebuildUnderTest


def calls_of(made: Session) -> list[Sampled]:
    return list(made.truth().values())


def told(answer: Answer) -> list[tuple[str, str | None]]:
    return sorted(((one["session_id"], one["parent"]) for one in answer["trajectories"]), key=str)


def is_trained(answer: Answer, made: Session) -> bool:
    named = [one["record_uuids"] for one in rollouts.trained(answer)]
    return list(made.truth()) in named


def names_trained(answer: Answer) -> list[str]:
    return sorted({one["session_id"] for one in rollouts.trained(answer)})


@covers("TRE-015", "TRE-030")
async def test_each_trajectory_names_its_session_and_parent(rebuild: RebuildUnderTest, check: Check) -> None:
    sessions = family()
    sessions[2].call(sessions[2].begin(system("Titles."), user("Name it."), tools=()), says("A title."))
    truth = truth_of(*sessions)
    for order in (sessions, sessions[::-1], [sessions[i] for i in (3, 0, 2, 1)]):
        answer = await rebuild.ask(envelopes(order))
        check.equal(
            "TRE-015", expected=[("deep", "two"), ("one", "root"), ("root", None), ("two", "root")], seen=told(answer)
        )
        for made in sessions:
            own = [one["record_uuids"] for one in answer["trajectories"] if one["session_id"] == made.session_id]
            strange = [uuid for named in own for uuid in named if uuid not in made.truth()]
            check("TRE-015", not strange, expected="its own records", seen=strange, where=made.session_id)
        check.that("TRE-030", rollouts.conserved(answer, truth))


@covers("TRE-016")
async def test_a_child_that_begins_with_its_parents_history_is_no_part_of_it(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    root, child = session("root", turns=3), Session("child", "root")
    start = root.made[0].then(user("You are a fork: look at the tests."))
    child.call(start, says("They pass."), generation=[900_001, 900_002, 900_003])
    for order in ((root, child), (child, root)):
        answer = await rebuild.ask(envelopes(order))
        check.that("TRE-016", placing.apart(answer, calls_of(child), calls_of(root)))
        views = "trainer-view" in rebuild.capabilities
        lawful = rollouts.never_wrong if views else triples.only_sampled
        check.that("TRE-016", lawful(answer, truth_of(root, child)))


@covers("TRE-037")
async def test_a_generation_in_two_sessions_is_trained_once(rebuild: RebuildUnderTest, check: Check) -> None:
    root = session("root", turns=3)
    for key in ("uuid", "request_id"):
        renamed = {"uuid": "request_id", "request_id": "uuid"}[key]
        copied = [
            made.record | {"session_id": "copy", "parent_session_id": "root", renamed: f"copy-{n}"}
            for n, made in enumerate(root.made)
        ]
        copy = {**root.envelope(session_id="copy"), "completions": copied}
        answer = await rebuild.ask({"sessions": [root.envelope(), copy]})
        trained = [triples.trained_ids(one) for one in rollouts.trained(answer)]
        times = [sum(not ids.isdisjoint(one.generation) for ids in trained) for one in calls_of(root)]
        check("TRE-037", max(times) <= 1, expected="each at most once", seen=times, where=f"one {key}")


@covers("TRE-017", "TRE-018", "TRE-019", "TRE-025", "TRE-028")
async def test_a_broken_child_is_withheld_and_takes_nobody_along(rebuild: RebuildUnderTest, check: Check) -> None:
    for what in ("first record", "second record", "other tokens", "record lost"):
        root, whole, broken = session("root", turns=3), session("whole", "root"), session("broken", "root", turns=3)
        if what == "other tokens":
            broken.made[2].record["prompt_token_ids"][1] += 500_000
        elif what == "record lost":
            del broken.made[1]
        else:
            broken.made[what == "second record"].broken(is_valid=False)
        source = envelopes([root, whole, broken])
        answer = await rebuild.ask(source)
        check.that("TRE-017", triples.not_trained(answer, calls_of(broken)), what)
        ok = is_trained(answer, root) and is_trained(answer, whole)
        check("TRE-018", ok, expected=["root", "whole"], seen=names_trained(answer), where=what)
        refused = await rebuild.ask(source, allow_partial=False)
        ok = refused["error"] is not None and not rollouts.trained(refused)
        check("TRE-025", ok, expected="an error", seen=triples.standing(refused), where=what)
    root, dead = session("root"), session("dead", "root", turns=1)
    dead.made[0].broken(is_valid=False)
    answer = await rebuild.ask(envelopes([root, dead]))
    failed = any(one["session_id"] == "dead" and one["outcome"] == "failed" for one in answer["trajectories"])
    listed = dead.made[0].uuid in {one["record_uuid"] for one in answer["excluded"]}
    check("TRE-019", failed and listed, expected="a failed trajectory, its record excluded", seen=told(answer))
    root, child = session("root"), session("child", "root")
    answer = await rebuild.ask({"sessions": [root.envelope(), child.envelope(incomplete=True)]})
    check.that("TRE-028", triples.not_trained(answer, calls_of(child)))


@covers("TRE-020", "TRE-021", "TRE-022", "TRE-031")
async def test_a_tree_has_one_root(rebuild: RebuildUnderTest, check: Check) -> None:
    small, large, equal = session("b", turns=1), session("c", turns=3), session("a", turns=3)
    for order, first in (((small, large), "c"), ((large, small), "c"), ((small, large, equal), "a")):
        answer = await rebuild.ask(envelopes(order))
        check.that("TRE-020", triples.withheld(answer), f"{len(order)} roots")
        seen = [one["session_id"] for one in answer["trajectories"]]
        check("TRE-021", seen[:1] == [first], expected=first, seen=seen, where=f"{len(order)} roots")
        claims = [one["session_id"] for one in answer["trajectories"] if not one["withheld"]]
        check("TRE-031", not claims, expected="each withheld", seen=claims)
    for orphans in ([session("child", "root")], [session("a", "gone"), session("b", "a")]):
        answer = await rebuild.ask(envelopes(orphans))
        check.that("TRE-022", triples.withheld(answer), f"{len(orphans)} sessions")


@covers("TRE-023", "TRE-024")
async def test_sessions_that_hang_on_nothing_cost_the_root_nothing(rebuild: RebuildUnderTest, check: Check) -> None:
    for ring in ({"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a", "below": "a"}):
        root = session("root", turns=3)
        astray = [session(name, parent) for name, parent in ring.items()]
        answer = await rebuild.ask(envelopes([*astray, root]))
        lost = [call for made in astray for call in calls_of(made)]
        check.that("TRE-023", triples.not_trained(answer, lost), str(ring))
        check("TRE-023", names_trained(answer) in (["root"], []), expected=["root"], seen=names_trained(answer))
        check("TRE-024", is_trained(answer, root), expected=["root"], seen=names_trained(answer), where=str(ring))
    root, orphan = session("root"), session("orphan", "nowhere")
    answer = await rebuild.ask(envelopes([orphan, root]))
    check(
        "TRE-024", is_trained(answer, root), expected="root trained", seen=triples.standing(answer), where="an orphan"
    )
    check.equal("TRE-024", expected=[("orphan", "nowhere"), ("root", None)], seen=told(answer))


@covers("TRE-026", "TRE-027")
async def test_a_title_in_a_session_of_its_own_is_no_second_root(rebuild: RebuildUnderTest, check: Check) -> None:
    for where in ("before", "after"):
        root, title = session("root"), Session("title")
        title.call(title.begin(system("You write titles."), user("Fix it."), tools=()), says("A title"))
        title.records[0]["captured_at"] = f"2026-12-0{1 if where == 'after' else 0}T09:00:00.000000+00:00"
        answer = await rebuild.ask(envelopes([title, root] if where == "before" else [root, title]))
        trained = [uuid for one in rollouts.trained(answer) for uuid in one["record_uuids"]]
        check("TRE-026", title.made[0].uuid not in trained, expected="not trained", seen=trained, where=where)
        check("TRE-027", is_trained(answer, root), expected="root trained", seen=triples.standing(answer), where=where)


@covers("TRE-029")
async def test_what_is_no_envelope_may_have_been_a_session(rebuild: RebuildUnderTest, check: Check) -> None:
    for odd in (7, None, {}, {"schema_version": 2, "session_id": "x", "completions": []}):
        answer = await rebuild.ask({"sessions": [session("root").envelope(), odd]})
        check.that("TRE-029", triples.withheld(answer), str(odd))


@covers("TRE-032", "TRE-033")
async def test_agents_of_one_session_hang_on_it_or_on_one_another(rebuild: RebuildUnderTest, check: Check) -> None:
    made = Session()
    explicit = {"native_session_id": "native-root"}
    made.call(made.begin(system("You are an agent."), user("Go.")), says("Done."), extras=explicit)
    for name, extras in (
        ("claude", {**explicit, "agent_id": "a1"}),
        ("nested", {**explicit, "agent_id": "a2", "parent_agent_id": "a1"}),
        ("opencode", {"native_session_id": "native-child", "native_parent_id": "native-root"}),
    ):
        made.call(made.begin(system(f"You are {name}."), user("Look.")), says("Nothing."), extras=extras)
    answer = await rebuild.ask({"envelope": made.envelope()})
    named = {one["session_id"] for one in answer["trajectories"]} | {one["agent"] for one in answer["trajectories"]}
    loose = [
        one["parent"] for one in answer["trajectories"] if one["parent"] is not None and one["parent"] not in named
    ]
    check("TRE-033", not loose, expected=sorted(map(str, named)), seen=loose)

    made = Session()
    made.call(made.begin(system("You are an agent."), user("Go.")), says("Done."))
    ring = [
        made.call(made.begin(system(f"You are {one}."), user("Look.")), says("Nothing."), extras=extras)
        for one, extras in (
            ("one", {"agent_id": "a1", "parent_agent_id": "a2"}),
            ("other", {"agent_id": "a2", "parent_agent_id": "a1"}),
        )
    ]
    answer = await rebuild.ask({"envelope": made.envelope()})
    check.that("TRE-032", triples.not_trained(answer, [one.truth for one in ring]))
