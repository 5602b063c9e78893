"""What a failure shows: the playbook, and the calls of a play, as they would be written down for a regression."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from conformance.oracle.judgement import Judgement
from conformance.shapes.play import Asked, Play
from conformance.shapes.tongues import Answer, Results, Step

JSON = Any

KEPT = Path("report", "law-failure.json")


class _Plain(yaml.SafeDumper):
    """Without anchors, which no author of a playbook would write."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def written(playbook: Mapping[str, Any]) -> str:
    return yaml.dump(dict(playbook), Dumper=_Plain, sort_keys=False, allow_unicode=True)


def told(judged: Judgement, play: Play, acts: Sequence[str], asked: tuple[JSON, JSON] | None) -> str:
    """``asked`` is the rebuild's source and its answer, which are kept in a file beside the report."""
    parts = [
        f"expected {judged.expected!r}, seen {judged.seen!r}, {judged.where}",
        f"{play.tongue.name}, tenant {play.tenant}, playbook:\n{written(play.playbook)}",
        "acts:\n" + "\n".join(f"  {act}" for act in acts),
        "calls:\n" + "\n".join(_call(call) for call in play.calls),
    ]
    if asked is not None:
        source, answer = asked
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps({"source": source, "answer": answer}), encoding="utf-8")
        parts.append(f"rebuilt from (whole in {KEPT}):\n{_answer(source, answer)}")
    return "\n\n".join(parts)


def _answer(source: JSON, answer: JSON) -> str:
    """Each record by its place, and where the rebuild put it."""
    places: dict[str, list[str]] = {}
    for number, one in enumerate(answer["trajectories"]):
        state = "withheld" if answer["withheld"] or one["withheld"] else "trained"
        for uuid in one["record_uuids"]:
            places.setdefault(uuid, []).append(f"trajectory {number}, {state}")
    for one in answer["excluded"]:
        places.setdefault(one["record_uuid"], []).append(one["why"])
    lines = [f"  {answer['outcome']}: {answer['reason']}"]
    for envelope in source.get("sessions") or [source["envelope"]]:
        for record in envelope["completions"]:
            where = " and ".join(places.get(record["uuid"], ["nowhere"]))
            valid = "valid" if record["is_valid"] else "invalid"
            lines.append(f"  {record['session_id']}: {len(record['messages'])} messages, {valid}: {where}")
    return "\n".join(lines)


def _call(asked: Asked) -> str:
    said = " · ".join(_short(step) for step in asked.steps)
    end = "broke off" if asked.status is None else str(asked.status)
    return f"  {asked.number}: {asked.session}: {end}, {'taken' if asked.taken else 'not taken'}\n     {said}"


def _short(step: Step) -> str:
    if isinstance(step, Answer):
        return f"[answer {step.text[:40]!r}, {len(step.calls)} calls]"
    if isinstance(step, Results):
        return f"[{len(step.of)} results]"
    return f"{step.role}: {step.text[:60]!r}"
