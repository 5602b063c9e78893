"""What a harness is told: where its model is, under which id, with what limits; and what stays as it is."""

import json
from pathlib import Path
from typing import Any

import yaml

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.spawn.rollouts import MODEL, rollouts, text_of
from conformance.systems.routing import CLOSED_ADDRESS
from conformance.systems.runner import RunnerUnderTest

JSON = Any

SETTINGS = """\
# Where each server is; it's 'quoted', "doubly", and $HOME stays.
policy_model:
  responses_api_models:
    vllm_model: {host: 'engine.invalid', port: 8000, temperature: 1.0, stop: "\\n\\n"}
judge_model:
  responses_api_models:
    vllm_model: {host: 'engine.invalid', port: 8000}
question: "Größe? `id`; echo \\"$(id)\\" \\\\ 'x'"
flags: [yes, 0x10, 1e3, ~]
"""
SERVER = "policy_model.responses_api_models.vllm_model"
FILES = {
    "opencode.json": {"text": '{"limit": {"context": {context_length}, "output": {output_length}}}', "unlimited": "{}"},
    "plain.json": {"text": '{"model": "{model}", "braces": "{other} {}", "tab": "\\t"}'},
}
LIMITS: tuple[tuple[str, JSON, int | None], ...] = (
    ("known", {"/v1/models": {"data": [{"id": "other"}, {"id": MODEL, "max_model_len": 32768}]}}, 32768),
    ("not listed", {"/v1/models": {"data": [{"id": "other", "max_model_len": 5}]}}, None),
    ("a bool", {"/v1/models": {"data": [{"id": MODEL, "max_model_len": True}]}}, None),
    ("not there", {}, None),
)


def shell(text: str, name: str) -> JSON:
    """A command line that prints ``text`` into a file of the workspace."""
    return {"name": "shell", "command": f"printf %s {text} > {name}"}


def yaml_in(text: str | None) -> JSON:
    """None where it is none."""
    try:
        return yaml.safe_load(text or "")
    except yaml.YAMLError:
        return None


@covers("SPN-030", "SPN-031")
async def test_only_the_agents_settings_name_the_proxy_and_survive_the_shell(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        harness, settings = shell("{settings}", "agent.yaml"), {"yaml": SETTINGS, "server": SERVER}
        evaluation = {"command": "printf %s {settings} > evaluation.yaml; printf %s {base_url} > evaluation.url"}
        going = await asked.begin(harness=harness, settings=settings, evaluation=evaluation)
        proxy = await asked.next("proxy")
        await proxy.do("listen")
        answer = await going.answer()
        place = Path((answer["harness"] or {}).get("log") or "none").parent / "workspace"
        due = yaml.safe_load(SETTINGS)
        due["policy_model"]["responses_api_models"]["vllm_model"] |= {
            "host": "127.0.0.1",
            "port": int(proxy.argument("--port") or 0),
        }
        seen = yaml_in(text_of(str(place / "agent.yaml")))
        difference = tree_difference(due, seen)
        check("SPN-031", difference is None, expected=due, seen=seen, where=str(difference))
        check.equal("SPN-030", expected=SETTINGS, seen=text_of(str(place / "evaluation.yaml")), where="evaluation's")
        seen = text_of(str(place / "evaluation.url"))
        check.equal("SPN-030", expected=CLOSED_ADDRESS, seen=seen, where="the evaluation's address")


@covers("SPN-032", "SPN-033", "SPN-034")
async def test_without_capture_nothing_is_spawned_named_or_changed(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    off: JSON = {"settings": {"yaml": SETTINGS, "server": SERVER}}
    told = "printf %s {settings} > settings; printf %s {session} > session; printf %s {base_url} > url"
    harness = {"name": "shell", "command": told, "files": FILES}
    cases: tuple[tuple[str, str, JSON], ...] = (
        ("SPN-032", "off", {"proxy": {}, "harness": harness}),
        ("SPN-033", "golden", {"golden_patch": True, "harness": harness}),
        ("SPN-034", "never captured", {"harness": {**harness, "session": "none"}}),
    )
    plain = FILES["plain.json"]["text"].replace("{model}", MODEL)
    due = {"settings": SETTINGS, "session": "", "url": CLOSED_ADDRESS, "opencode.json": "{}", "plain.json": plain}
    async with rollouts(runner, tmp_path) as asked:
        for requirement, where, changes in cases:
            before = len(asked.puppets.all)
            answer = await asked.answer_behind_any_proxy(await asked.begin(**off, **changes))
            place = Path((answer["harness"] or {}).get("log") or "none").parent / "workspace"
            seen = {name: text_of(str(place / name)) for name in due}
            check.equal(requirement, expected=due, seen=seen, where=where)
            standing = {key: answer[key] for key in ("captured", "outcome", "withheld", "session_id", "proxy_log")}
            nothing = {"captured": False, "outcome": None, "withheld": False, "session_id": None, "proxy_log": None}
            check.equal(requirement, expected=nothing, seen=standing, where=where)
            check.equal(requirement, expected=0, seen=len(asked.puppets.all) - before, where=f"{where}: proxies")


@covers("SPN-029")
async def test_a_models_limits_are_told_where_they_are_known_and_cost_no_rollout(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        for where, answers, length in LIMITS:
            going = await asked.begin(harness=asked.harness(files=FILES))
            proxy = await asked.next("proxy")
            await proxy.do("listen", answers=answers)
            harness = await asked.next("harness")
            text = text_of(f"{harness.told['cwd']}/opencode.json")
            known = None if length is None else {"limit": {"context": length, "output": length // 4}}
            check.equal("SPN-029", expected=json.dumps(known or {}), seen=text, where=where)
            await harness.do("leave")
            answer = await going.answer()
            seen = [answer["context_length"], bool(answer["warnings"])]
            check.equal("SPN-029", expected=[length, length is None], seen=seen, where=f"{where}: told, warned")


@covers("SPN-028")
async def test_backends_are_dealt_in_turn(runner: RunnerUnderTest, tmp_path: Path, check: Check) -> None:
    async with rollouts(runner, tmp_path) as asked:
        a, b = "http://127.0.0.1:1", "http://127.0.0.1:2"
        for backends, due in (([a, b], [a, b, a, b]), ([a, ""], [a, a]), (b, [b]), ([], [None])):
            harness = shell("{base_url}", "url")
            answers = [await (await asked.begin(backends=backends, proxy={}, harness=harness)).answer() for _ in due]
            seen = [answer["backend"] for answer in answers]
            # Only the order in which they follow each other counts: others may have been dealt before.
            ok = seen in (due, due[1:] + due[:1])
            check("SPN-028", ok, expected=due, seen=seen, where=f"of {backends}")
