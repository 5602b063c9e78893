"""NeMo Gym's rebuilds behind the rebuild protocol (docs/rebuild-protocol.md), in Gym's own interpreter.

    python gym.py --checkout DIR --rebuild switchyard-trace|token-capture

Imports nothing of Trackgauge. It hands the records to Gym's functions as Gym's own callers do, and tells what they
return: what is withheld is what Gym says must be masked, and nothing is added that Gym does not say. An exception of
Gym's is told under its type, as Gym's callers note it before they mask the sample.
"""

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

JSON = Any
Answer = dict[str, JSON]
Rebuild = Callable[[dict[str, JSON], bool], Answer]

WITH_RECORD = re.compile(r"^record (?P<record>\S+?)(?: of \d+:.*?)? (?P<rule>.*)$", re.DOTALL)
"""How Gym's trace errors begin; the record is named by its uuid, or by its place in the envelope."""


class Refused(Exception):
    """Raised for a source that Gym has no way to read."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of NeMo Gym")
    parser.add_argument("--rebuild", choices=sorted(REBUILDS), required=True)
    asked = parser.parse_args()
    sys.path.insert(0, str(asked.checkout))
    # Gym reads its command line as configuration unless this is set.
    os.environ.setdefault("NEMO_GYM_CONFIG_DICT", "{}")
    del sys.argv[1:]
    with redirect_stdout(sys.stderr):
        rebuild = REBUILDS[asked.rebuild]()
    for line in sys.stdin.buffer:
        if line.strip():
            with redirect_stdout(sys.stderr):
                answer = answer_to(line, rebuild)
            sys.stdout.write(json.dumps(answer, default=str, separators=(",", ":")) + "\n")
            sys.stdout.flush()


def answer_to(line: bytes, rebuild: Rebuild) -> Answer:
    number = ""
    try:
        question = json.loads(line)
        number = question["id"] if isinstance(question["id"], str) else ""
        if question.get("v", 1) != 1 or question.get("op", "rebuild") != "rebuild":
            raise Refused("v must be 1 and op rebuild")
        source = {key: value for key, value in question["source"].items() if value is not None}
        return {"id": number, **rebuild(source, question.get("allow_partial", True))}
    except Refused as error:
        return {"id": number, **failed("request", str(error))}
    except Exception as error:
        return {"id": number, **failed(type(error).__name__, str(error))}


def only_envelope(source: dict[str, JSON]) -> JSON:
    """The one session of a source. Raises :class:`Refused` where it is none, or one of several."""
    if list(source) == ["envelope"]:
        return source["envelope"]
    if list(source) == ["sessions"] and len(source["sessions"]) == 1:
        return source["sessions"][0]
    raise Refused(f"one session is rebuilt at a time; seen {', '.join(source) or 'no source'}")


def failed(rule: str, message: str, record_uuid: str | None = None) -> Answer:
    error = {"rule": rule, "record_uuid": record_uuid, "message": message}
    return {"outcome": "failed", "withheld": True, "reason": message, "error": error}


# nemo_gym/switchyard_trace.py, and the session tree of swe_agents where the checkout has one


def switchyard_trace() -> Rebuild:
    from nemo_gym import switchyard_trace as gym  # type: ignore[import-not-found]
    from responses_api_models.vllm_model.app import VLLMConverter  # type: ignore[import-not-found]

    converter = VLLMConverter(return_token_id_information=True)
    salvages = hasattr(gym.SwitchyardTrace, "partial_reason")

    def one_session(envelope: JSON, allow_partial: bool) -> Answer:
        session_id = envelope.get("session_id") if isinstance(envelope, dict) else None
        mode = {"allow_partial": allow_partial} if salvages else {}
        try:
            trace = gym.reconstruct_switchyard_rollout(envelope, session_id, converter, **mode)
        except gym.SwitchyardTraceError as error:
            return trace_error(error, envelope)
        return told(trace, session_id)

    def rebuild(source: dict[str, JSON], allow_partial: bool) -> Answer:
        if salvages and list(source) in (["sessions"], ["log_dir"]):
            return tree(source, allow_partial)
        return one_session(only_envelope(source), allow_partial)

    def tree(source: dict[str, JSON], allow_partial: bool) -> Answer:
        from responses_api_agents.swe_agents import app  # type: ignore[import-not-found]

        wrapper = app.SWEBenchWrapper
        if "log_dir" in source:
            by_session = wrapper._read_switchyard_records(Path(source["log_dir"]))
        else:
            by_session = {one["session_id"]: one["completions"] for one in source["sessions"]}
        sessions = wrapper._sessions_from_records(by_session)
        try:
            root, root_id, children, degraded = app._reconstruct_switchyard_sessions_from_records(
                by_session, sessions, converter, filter_title_gen=True, allow_partial=allow_partial
            )
        except gym.SwitchyardTraceError as error:
            return trace_error(error, {})
        answer = told(root, root_id)
        answer["trajectories"] += [child_trajectory(child) for child in children]
        return masked(answer, degraded) if degraded else answer

    return rebuild


def told(trace: JSON, session_id: JSON) -> Answer:
    """``partial_reason`` is Gym's word that the sample must be masked."""
    reason = getattr(trace, "partial_reason", None)
    standing = {"outcome": "partial" if reason else "clean", "withheld": bool(reason)}
    items = [item.model_dump() for item in [*trace.input_items, *trace.output_items]]
    trajectory = {
        "session_id": session_id,
        **standing,
        "model": trace.model,
        "tools": [tool.model_dump() for tool in trace.tools],
        "items": items,
        "record_uuids": trace.record_uuids,
    }
    return {**standing, "reason": reason, "trajectories": [trajectory]}


def masked(answer: Answer, reason: str) -> Answer:
    """A sample is masked whole, its subagents too."""
    standing = {"outcome": "partial", "withheld": True}
    return {
        **answer,
        **standing,
        "reason": answer["reason"] or reason,
        "trajectories": [{**one, **standing} for one in answer["trajectories"]],
    }


def child_trajectory(child: dict[str, JSON]) -> dict[str, JSON]:
    """A subagent's entry says nothing of its standing, and nobody masks it."""
    return {
        "session_id": child["session_id"],
        "parent": child["parent_session_id"],
        "outcome": "clean",
        "withheld": False,
        "model": child["model"],
        "items": [*child["input"], *child["output"]],
        "record_uuids": child["record_uuids"],
    }


def trace_error(error: Exception, envelope: JSON) -> Answer:
    """Gym's error is a sentence that begins with the record; the rest of it names the rule."""
    sentence = str(error)
    found = WITH_RECORD.match(sentence)
    if found is None:
        return failed(sentence.partition(":")[0], sentence)
    records = envelope.get("completions", []) if isinstance(envelope, dict) else []
    named: JSON = found["record"]
    if named.isdigit() and int(named) < len(records):
        named = records[int(named)].get("uuid") if isinstance(records[int(named)], dict) else None
    return failed(found["rule"].partition(":")[0], sentence, named if isinstance(named, str) else None)


# nemo_gym/token_id_capture: the builder and its consumer, behind a source in memory


def token_capture() -> Rebuild:
    from nemo_gym.token_id_capture import builder  # type: ignore[import-not-found]
    from nemo_gym.token_id_capture.consumer import trajectories_from_source  # type: ignore[import-not-found]
    from nemo_gym.token_id_capture.protocols import TokenCaptureSnapshot  # type: ignore[import-not-found]
    from nemo_gym.token_id_capture.records import TokenEntry  # type: ignore[import-not-found]
    from responses_api_models.vllm_model.app import VLLMConverter

    converter = VLLMConverter(return_token_id_information=True)

    class InMemory:
        def __init__(self, snapshot: JSON) -> None:
            self.snapshot = snapshot

        async def freeze(self, rollout_id: str) -> JSON:
            return self.snapshot

    def rebuild(source: dict[str, JSON], allow_partial: bool) -> Answer:
        envelope = only_envelope(source)
        if not isinstance(envelope, dict) or not isinstance(envelope.get("completions"), list):
            raise Refused("an envelope with a list of completions is needed")
        rollout_id = str(envelope.get("session_id"))
        entries, left_out = entries_of(envelope["completions"], rollout_id, TokenEntry, converter)
        incomplete = bool(left_out) or envelope.get("incomplete") is True
        snapshot = TokenCaptureSnapshot(rollout_id, tuple(entries), incomplete, "one", 1)
        built = asyncio.run(trajectories_from_source(rollout_id, InMemory(snapshot)))
        masked = bool(built["mask_sample"])
        if built["rebuilt_response"] is None:
            error = str(built.get("error"))
            return {**failed(error.partition(":")[0], error), "excluded": [*left_out, *orphans(entries)]}
        out = builder.run_builder(entries)
        reason = ", ".join(f"{name} {value}" for name, value in built["metrics"].items()) if masked else None
        standing = {"outcome": "partial" if masked else "clean", "withheld": masked}
        if masked and not allow_partial:
            return {**failed("mask_sample", str(reason)), "excluded": [*left_out, *orphans(entries)]}
        main = next(chain for chain in out.chains if chain.chain_id == "main")
        delivered = {link.entry.model_call_id for link in main.links}
        dropped = orphans(one for one in entries if one.model_call_id not in delivered)
        trajectory = {**chain_of(main, rollout_id), **standing, "items": built["rebuilt_response"]["output"]}
        return {**standing, "reason": reason, "trajectories": [trajectory], "excluded": [*left_out, *dropped]}

    return rebuild


def orphans(entries: Iterable[JSON]) -> list[dict[str, JSON]]:
    """Gym counts what it does not deliver, and does not say why each was not."""
    return [{"record_uuid": one.model_call_id, "why": "orphan"} for one in entries]


def entries_of(
    records: list[JSON], rollout_id: str, entry: JSON, converter: JSON
) -> tuple[list[JSON], list[dict[str, JSON]]]:
    """The records as Gym's capture point would have kept them; what it could not keep makes a rollout incomplete."""
    kept: dict[str, JSON] = {}
    left_out: list[dict[str, JSON]] = []
    for record in records:
        name = record.get("uuid") if isinstance(record, dict) else None
        try:
            if record["is_valid"] is not True or not isinstance(name, str) or not name or name in kept:
                raise ValueError("no entry is made of it")
            kept[name] = entry(
                rollout_id=rollout_id,
                model_call_id=name,
                model=record["model"],
                prompt_token_ids=record["prompt_token_ids"],
                generation_token_ids=record["generation_token_ids"],
                generation_log_probs=record["generation_log_probs"],
                output_items=generated_items(record, converter),
                created_at=datetime.fromisoformat(record["captured_at"]).timestamp(),
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            left_out.append({"record_uuid": name if isinstance(name, str) else "", "why": "invalid"})
    return list(kept.values()), left_out


def generated_items(record: dict[str, JSON], converter: JSON) -> list[dict[str, JSON]]:
    """The last message as the Responses items that Gym's model server would have answered with."""
    message = record["messages"][-1]
    if message["role"] != "assistant":
        raise ValueError("the last message is no answer")
    plain = {"role": "assistant", "content": message.get("content") or ""}
    plain |= {"tool_calls": message["tool_calls"]} if message.get("tool_calls") else {}
    return [item.model_dump() for item in converter.chat_completions_messages_to_responses_items([plain])]


def chain_of(chain: JSON, rollout_id: str) -> dict[str, JSON]:
    return {
        "session_id": rollout_id,
        "model": chain.links[0].entry.model,
        "record_uuids": [link.entry.model_call_id for link in chain.links],
    }


REBUILDS: dict[str, Callable[[], Rebuild]] = {"switchyard-trace": switchyard_trace, "token-capture": token_capture}

if __name__ == "__main__":
    main()
