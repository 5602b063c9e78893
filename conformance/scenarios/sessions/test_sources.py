"""What names a session, what wins where two names disagree, and what names none."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.sessions.filing import BODY_KEY, HEADER, MARKER, OPENCODE, Sent, check_filing, make

HARNESSES = ("session-claude", "session-codex", "session-litellm")
ORDINARY_KEYS = ("sk-proj-4f0c77d1e8", "9b2c4d5e6f708192a3b4c5d6e7f80912", "sk-sycap-session:not-at-the-start")
NO_NAMES = (None, 7, 7.5, True, "", "  \t", {"id": "x"}, ["x"])
BLANKS = ("", "   ")


@covers("SES-001", "SES-002", "SES-003", "SES-005", "SES-007", "SES-008", "SES-009")
async def test_each_source_names_the_session(scene: Scene, check: Check) -> None:
    name = scene.session
    spellings = (HEADER, HEADER.upper(), "Proxy_X_Session_Id")
    calls = [
        Sent("SES-001", name(f"header {spelling}"), [(spelling, name(f"header {spelling}"))]) for spelling in spellings
    ]
    calls.append(Sent("SES-002", name("body"), body={BODY_KEY: name("body")}))
    calls += [
        Sent("SES-005", name(f"opencode {spelling}"), [(spelling, name(f"opencode {spelling}"))])
        for spelling in (OPENCODE, OPENCODE.lower())
    ]
    calls += [
        Sent("SES-007", name(harness), scene.proxy.carry(name(harness), by=harness).headers)
        for harness in HARNESSES
        if harness in scene.proxy.capabilities
    ]
    calls += [
        Sent("SES-008", name(f"{scheme} a:b c"), [("Authorization", f"{scheme} {MARKER}{name(f'{scheme} a:b c')}")])
        for scheme in ("Bearer", "bearer")
    ]
    calls.append(Sent("SES-009", name("x-api-key"), [("x-api-key", MARKER + name("x-api-key"))]))
    await _judge(scene, check, calls)


@covers("SES-003", "SES-004", "SES-006", "SES-010")
async def test_where_two_sources_disagree_one_wins(scene: Scene, check: Check) -> None:
    name = scene.session
    key = ("Authorization", f"Bearer {MARKER}{name('key')}")
    calls = [
        Sent("SES-004", name("a"), [(HEADER, name("a"))], {BODY_KEY: name("body")}),
        Sent("SES-004", name("b"), [(HEADER, name("b")), (OPENCODE, name("native")), key], {BODY_KEY: name("body")}),
        Sent("SES-006", name("c"), [(OPENCODE, name("native"))], {BODY_KEY: name("c")}),
        Sent("SES-006", name("d"), [(OPENCODE, name("native")), key], {BODY_KEY: name("d")}),
        Sent("SES-010", name("e"), [(OPENCODE, name("e")), key]),
    ]
    await _judge(scene, check, calls)


@covers("SES-003", "SES-011", "SES-012", "SES-013")
async def test_what_looks_like_a_session_and_is_none(scene: Scene, check: Check) -> None:
    name = scene.session
    calls = [Sent("SES-011", None, [("Authorization", f"Bearer {key}")]) for key in ORDINARY_KEYS]
    calls.append(Sent("SES-011", None, [("x-api-key", ORDINARY_KEYS[0])]))
    calls += [Sent("SES-012", None, [("Authorization", f"Bearer {MARKER}{blank}")]) for blank in BLANKS]
    calls += [Sent("SES-013", None, [(HEADER, blank)]) for blank in BLANKS]
    calls += [Sent("SES-013", None, body={BODY_KEY: value}) for value in NO_NAMES]
    calls.append(Sent("SES-013", None, body={BODY_KEY: 7, "model": "uncaptured"}))
    for n, blank in enumerate(BLANKS):
        calls.append(Sent("SES-013", name(f"body {n}"), [(HEADER, blank)], {BODY_KEY: name(f"body {n}")}))
    await _judge(scene, check, calls)


async def _judge(scene: Scene, check: Check, calls: list[Sent]) -> None:
    replies = await make(scene, calls)
    await check_filing(scene, check, calls, replies)
    sent = {row["scope"]: row["request"]["body_text"] for row in await scene.ledger()}
    for scope, call in enumerate(calls):
        if BODY_KEY in call.body:
            body = sent.get(scope, "no call at all")
            gone = scope in sent and f'"{BODY_KEY}"' not in body
            check("SES-003", gone, expected=f"no {BODY_KEY} upstream", seen=body[:300], where=str(call))
