"""The published JSON Schemas, each exported from the type that the code itself uses."""

import json
from collections.abc import Callable
from typing import Any

JSONSchema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _playbook() -> JSONSchema:
    from fakes.vllm.playbook import playbook_schema

    return playbook_schema()


def _ledger() -> JSONSchema:
    from fakes.vllm.ledger import ledger_schema

    return ledger_schema()


def _exchanges() -> JSONSchema:
    from fakes.harnesses.exchanges import schema

    return schema()


def _results() -> JSONSchema:
    from conformance.report.schema import exported

    return exported()


def _scoreboard() -> JSONSchema:
    from conformance.report.schema import exported_board

    return exported_board()


def _record() -> JSONSchema:
    from conformance.contract.records import Record

    return Record.model_json_schema()


def _sessions() -> JSONSchema:
    from conformance.contract.records import SessionList

    return SessionList.model_json_schema()


def _envelope() -> JSONSchema:
    from conformance.contract.records import Envelope

    return Envelope.model_json_schema()


def _rebuild_request() -> JSONSchema:
    from conformance.contract.rebuilds import RebuildRequest

    return RebuildRequest.model_json_schema()


def _rebuild_answer() -> JSONSchema:
    from conformance.contract.rebuilds import RebuildAnswer

    return RebuildAnswer.model_json_schema()


def _rollout_request() -> JSONSchema:
    from conformance.contract.rollouts import RolloutRequest

    return RolloutRequest.model_json_schema()


def _rollout_answer() -> JSONSchema:
    from conformance.contract.rollouts import Collected

    return Collected.model_json_schema()


def _verify_request() -> JSONSchema:
    from conformance.contract.verifies import VerifyRequest

    return VerifyRequest.model_json_schema()


def _verify_answer() -> JSONSchema:
    from conformance.contract.verifies import VerifyResponse

    return VerifyResponse.model_json_schema()


def _group_request() -> JSONSchema:
    from conformance.contract.verifies import GroupRequest

    return GroupRequest.model_json_schema()


def _group_answer() -> JSONSchema:
    from conformance.contract.verifies import GroupAnswer

    return GroupAnswer.model_json_schema()


SCHEMAS: dict[str, Callable[[], JSONSchema]] = {
    "playbook": _playbook,
    "ledger": _ledger,
    "exchanges": _exchanges,
    "results": _results,
    "scoreboard": _scoreboard,
    "record": _record,
    "session-list": _sessions,
    "envelope": _envelope,
    "rebuild-request": _rebuild_request,
    "rebuild-answer": _rebuild_answer,
    "rollout-request": _rollout_request,
    "rollout-answer": _rollout_answer,
    "verify-request": _verify_request,
    "verify-answer": _verify_answer,
    "group-request": _group_request,
    "group-answer": _group_answer,
}


def text(name: str) -> str:
    """The schema as it is published. Raises KeyError for an unknown name."""
    return json.dumps({"$schema": DIALECT, **SCHEMAS[name]()}, indent=2, ensure_ascii=False) + "\n"
