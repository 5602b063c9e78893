"""The loop of each harness in the form it was recorded in, under its own ids and under an explicit one."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle.chat_answers import json_object
from conformance.scenarios.harnesses.loops import check_loop, check_names, generations, loop, named_in, script
from fakes.harnesses.claude_code_models import HAIKU

CREDENTIALS = {"authorization", "x-api-key", "api-key"}
FINISH = {"name": "finish", "arguments": {"message": "{tag} Done."}}


@covers("HAR-001", "HAR-006")
async def test_the_gym_fork_of_openhands_works_without_a_credential(scene: Scene, check: Check) -> None:
    look = {"name": "execute_bash", "arguments": {"command": "echo größe  # {tag}"}}
    think = {"name": "think", "arguments": {"thought": "{tag} It is the header."}}
    await script(scene, main=loop(look, think, end=FINISH))
    talk = await scene.openhands_nv()
    await check_loop(scene, check, "HAR-001", talk, calls=3)
    named = sorted({key.lower() for one in talk.exchanges for key, _ in one.request.headers} & CREDENTIALS)
    check.equal("HAR-006", expected=[[], 200], seen=[named, talk.exchanges[0].status], where="credentials, status")


@covers("HAR-002", "HAR-007")
async def test_the_openhands_sdk_works_and_its_own_id_does_not_name_the_session(scene: Scene, check: Check) -> None:
    look = {"name": "terminal", "arguments": {"command": "echo one  # {tag}"}}
    await script(scene, main=loop(look, look, end=FINISH))
    talk = await scene.openhands_sdk()
    await check_loop(scene, check, "HAR-002", talk, calls=3)
    await check_names(scene, check, "HAR-007", scene.session(), 3, named_in(talk, "x-litellm-session-id"))


@covers("HAR-003", "HAR-010")
async def test_opencode_works_under_its_own_id_and_under_a_configured_one(scene: Scene, check: Check) -> None:
    look = {"name": "bash", "arguments": {"command": "echo one  # {tag}", "description": "Look"}}
    await script(scene, native=loop(look, look), configured=loop(look))
    await check_loop(scene, check, "HAR-003", await scene.opencode(), calls=3)
    configured = scene.session("configured")
    headers = {"X-Session-Id": configured}
    talk = await scene.opencode(scene.task(scope=1), session=scene.session("affinity"), headers=headers)
    await check_names(scene, check, "HAR-010", configured, 2, named_in(talk, "x-session-affinity"))


@covers("HAR-004", "HAR-008", "HAR-013", "HAR-015", "HAR-017")
async def test_claude_code_works_under_its_own_id_an_explicit_one_and_a_prefix(scene: Scene, check: Check) -> None:
    look = {"name": "Bash", "arguments": {"command": "echo one  # {tag}", "description": "Look"}}
    explore = {"description": "{tag} Look", "prompt": "{tag:small} Look.", "subagent_type": "Explore"}
    scopes = {
        "native": loop(look, look),
        "explicit": loop({"name": "Agent", "arguments": explore}),
        "prefix": loop(look),
    }
    await script(scene, **scopes, small=loop(look))
    native = await scene.claude_code()
    await check_loop(scene, check, "HAR-004", native, calls=3)
    knock = next(exchange for exchange in native.exchanges if exchange.request.method == "HEAD")
    named = sorted({key.lower() for key, _ in knock.request.headers} & CREDENTIALS)
    ok = knock.status is not None and knock.status < 500 and not named
    check("HAR-013", ok, expected="an answer below 500", seen=knock.status, where=knock.request.path)
    explicit = await scene.claude_code(scene.task(scope=1), session=scene.session("explicit"), by=_explicit(scene))
    own = named_in(explicit, "x-claude-code-session-id")
    await check_names(scene, check, "HAR-008", scene.session("explicit"), 2, own)
    child = explicit.children[0].last
    error = json_object("" if child.response is None else child.response.body_text) or {}
    asked = [row["model"] for row in await scene.ledger(everything=True) if row["scope"] == 3]
    kind = (error.get("error") or {}).get("type")
    due = [HAIKU, 404, "error", "not_found_error", []]
    seen = [child.request.json_body().get("model"), child.status, error.get("type"), kind, asked]
    check.equal("HAR-015", expected=due, seen=seen, where="model, status, types, calls to the engine")
    prefixed = await scene.claude_code(
        scene.task(scope=2), session=scene.session("prefix"), by=_explicit(scene), prefix="/rollouts/7"
    )
    statuses = [exchange.status for exchange in generations(prefixed)]
    check.equal("HAR-017", expected=["answered", [200, 200]], seen=[prefixed.ended, statuses])


@covers("HAR-005", "HAR-009")
async def test_codex_works_under_its_own_id_and_under_an_explicit_one(scene: Scene, check: Check) -> None:
    look = {"name": "exec_command", "arguments": {"cmd": "echo one  # {tag}"}}
    await script(scene, native=loop(look, look), explicit=loop(look))
    await check_loop(scene, check, "HAR-005", await scene.codex(), calls=3)
    explicit = scene.session("explicit")
    talk = await scene.codex(scene.task(scope=1), session=explicit, by=_explicit(scene))
    await check_names(scene, check, "HAR-009", explicit, 2, named_in(talk, "session-id", "thread-id"))


def _explicit(scene: Scene) -> str:
    """An explicit id goes in the contract's header, where the system reads it."""
    return "session-header" if "session-header" in scene.proxy.capabilities else scene.proxy.default_carrier()
