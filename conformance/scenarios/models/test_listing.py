"""Which models a client is shown, and with which length of context."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.scenarios.models.listing import NOT_LISTED, lengths, lengths_in_the_end
from conformance.scenarios.models.relay import LateEngine
from conformance.systems import routing
from conformance.systems.routing import Route

OF_ONE_MODEL = {
    "policy-model": routing.LONG_LENGTH,
    "policy-twin": routing.LONG_LENGTH,
    "old": routing.LONG_LENGTH,
    "short-context": routing.SHORT_LENGTH,
}


@covers("MOD-001", "MOD-002", "MOD-003", "MOD-004", "MOD-006")
async def test_routes_are_listed_with_the_length_of_their_own_model(scene: Scene, check: Check) -> None:
    listed = await lengths(scene.proxy)
    for name in (route.name for route in scene.proxy.routes):
        check("MOD-001", name in listed, expected=name, seen=sorted(listed))
    for name in filter(lambda name: scene.takes(model=name), OF_ONE_MODEL):
        check.equal("MOD-002", expected=OF_ONE_MODEL[name], seen=listed.get(name, NOT_LISTED), where=name)
    check.equal("MOD-004", expected=None, seen=listed.get("dead", NOT_LISTED), where="dead")
    for requirement, name in (("MOD-003", "crowded"), ("MOD-006", "unlisted")):
        scene.claims(model=name)
        check.equal(requirement, expected=routing.MIDDLE_LENGTH, seen=listed.get(name, NOT_LISTED), where=name)


@covers("MOD-004", "MOD-005")
async def test_lengths_that_nobody_knows_and_one_that_comes_late(
    scene: Scene, own_proxy: OwnProxies, check: Check
) -> None:
    tenant = f"strange-{scene.run}"
    unknown = {"models": ["of-no-length", "somebody-else"], "lengths": {"of-no-length": None}}
    await scene.engine.tenant(tenant, unknown)
    strange = (Route("null", tenant=tenant, target="of-no-length"), Route("absent", tenant=tenant, target="not-served"))
    async with LateEngine(scene.engine.url) as engine:
        proxy = await own_proxy((*strange, Route("late", base_url=f"{engine.url}/t/main/v1")))
        early = await lengths(proxy)
        for name in ("null", "absent", "late"):
            check.equal("MOD-004", expected=None, seen=early.get(name, NOT_LISTED), where=name)
        await engine.come_up()
        later = await lengths_in_the_end(proxy, "late")
        check.equal("MOD-005", expected=routing.LONG_LENGTH, seen=later.get("late", NOT_LISTED), where="late")
