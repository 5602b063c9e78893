"""What a captured call leaves behind."""

import hashlib
import json
import signal
import stat
import threading
import uuid
from pathlib import Path

import pytest

from conformance.contract.records import Envelope, Record
from conformance.reference.store import Store
from tests.reference.capture.running import JSON, Proxy, route
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_choice, with_message

pytestmark = pytest.mark.unit


def test_a_record_holds_what_the_engine_reported(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    tool = {"type": "function", "function": {"name": "run", "parameters": {"z": 1, "a": 2}}}
    reply = proxy.chat(session, tools=[tool], tool_choice={"type": "function", "function": {"name": "run"}})
    assert reply.status == 200
    record = proxy.records(session)[0]
    assert record["prompt_token_ids"] == [2001, 1998]
    assert record["generation_token_ids"] == [56, 274, 2000]
    assert record["generation_log_probs"] == [-0.6457429528236389, 0.0, -0.25]
    assert record["messages"] == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Yes."}]
    assert json.dumps(record["tools"]) == json.dumps(
        [{"id": "run", "description": "", "inputSchema": {"jsonSchema": {"z": 1, "a": 2}}}]
    )
    assert (record["request_id"], record["model"], record["tool_choice"]) == ("chatcmpl-1", "served", "function")
    assert record["token_count"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert record["is_valid"] is True
    assert record["x_trackgauge"]["invalid_reason"] is None


def test_a_record_has_the_contracts_shape_and_place(proxy: Proxy, session: str) -> None:
    proxy.chat(session)
    envelope = Envelope.model_validate(proxy.envelope(session))
    record = envelope.completions[0]
    place = proxy.log_dir / "sessions" / hashlib.sha256(session.encode()).hexdigest()
    assert [path.name for path in place.iterdir()] == [f"{uuid.UUID(record.uuid)}.json"]
    path = place / f"{record.uuid}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Record.model_validate_json(path.read_bytes()) == record
    known = set(Record.model_fields) | {"x_trackgauge"}
    assert set(json.loads(path.read_bytes())) == known


def test_records_survive_a_kill_of_the_proxy(engine: ScriptedEngine, folder: Path) -> None:
    profile = {"routes": {"policy": route(engine.base_url)}}
    first = Proxy(folder, profile)
    first.chat("kept")
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    with Proxy(folder / "again", profile, log_dir=first.log_dir) as second:
        assert len(second.records("kept")) == 1
        second.chat("kept")
        times = [record["captured_at"] for record in second.records("kept")]
    assert times == sorted(times)
    assert len(set(times)) == 2


def test_a_call_sorts_after_the_one_it_depends_on_even_under_a_clock_that_went_back(
    engine: ScriptedEngine, folder: Path
) -> None:
    profile = {"routes": {"policy": route(engine.base_url)}}
    with Proxy(folder, profile) as proxy:
        proxy.chat("s")
        kept = next((proxy.log_dir / "sessions").glob("*/*.json"))
        record = json.loads(kept.read_bytes()) | {"captured_at": "2999-01-01T00:00:00.000000+00:00"}
        kept.write_text(json.dumps(record))
        future = record["uuid"]
    with Proxy(folder / "again", profile, log_dir=proxy.log_dir) as second:
        second.chat("s")
        assert [each["uuid"] == future for each in second.records("s")] == [True, False]


def test_records_are_told_apart_while_many_are_written_at_once(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    threads = [threading.Thread(target=proxy.chat, args=(session,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    records = proxy.records(session)
    assert len({record["uuid"] for record in records}) == 20
    assert len({record["captured_at"] for record in records}) == 20


def test_a_stream_leaves_the_record_that_a_buffered_call_leaves(proxy: Proxy, session: str) -> None:
    proxy.chat(session)
    proxy.chat(session, stream=True)
    own = ("uuid", "captured_at", "x_trackgauge")
    first, second = ({k: v for k, v in record.items() if k not in own} for record in proxy.records(session))
    assert first == second


BROKEN: dict[str, tuple[JSON, str]] = {
    "no_choice": (completion(choices=[]), "not_one_choice"),
    "two_choices": (completion(choices=completion()["choices"] * 2), "not_one_choice"),
    "no_id": (completion(id=None), "request_id_missing"),
    "empty_model": (completion(model=""), "model_missing"),
    "no_prompt_ids": (completion(prompt_token_ids=None), "prompt_token_ids_unusable"),
    "bool_prompt_id": (completion(prompt_token_ids=[1, True]), "prompt_token_ids_unusable"),
    "float_prompt_id": (completion(prompt_token_ids=[1, 2.0]), "prompt_token_ids_unusable"),
    "negative_id": (with_choice(token_ids=[1, -2, 3]), "generation_token_ids_unusable"),
    "no_ids": (with_choice(token_ids=None), "generation_token_ids_unusable"),
    "empty_ids": (with_choice(token_ids=[]), "generation_token_ids_unusable"),
    "no_log_probs": (with_choice(logprobs=None), "log_probs_missing"),
    "completions_log_probs": (with_choice(logprobs={"token_logprobs": [0.0] * 3}), "log_probs_missing"),
    "null_log_prob": (
        with_choice(logprobs={"content": [{"logprob": -1.0}, {"logprob": None}, {"logprob": -1.0}]}),
        "log_prob_not_a_number",
    ),
    "bool_log_prob": (with_choice(logprobs={"content": [{"logprob": False}] * 3}), "log_prob_not_a_number"),
    "nan_log_prob": (with_choice(logprobs={"content": [{"logprob": float("nan")}] * 3}), "log_prob_not_finite"),
    "beyond_every_float": (with_choice(logprobs={"content": [{"logprob": -(10**400)}] * 3}), "log_prob_not_finite"),
    "no_entry": (with_choice(logprobs={"content": [{"logprob": -9999.0}] * 3}), "log_prob_without_entry"),
    "above_zero": (with_choice(logprobs={"content": [{"logprob": 0.0011}] * 3}), "log_prob_above_zero"),
    "too_few": (with_choice(logprobs={"content": [{"logprob": -1.0}] * 2}), "lengths_differ"),
    "other_ids": (
        with_choice(logprobs={"content": [{"token": f"token_id:{n}", "logprob": -1.0} for n in (56, 275, 2000)]}),
        "entry_ids_disagree",
    ),
    "other_id_fields": (
        with_choice(logprobs={"content": [{"token_id": n, "logprob": -1.0} for n in (56, 274, 1)]}),
        "entry_ids_disagree",
    ),
    "unreadable_id": (
        with_choice(logprobs={"content": [{"token": f"token_id:{'9' * 5000}", "logprob": -1.0}] * 3}),
        "entry_ids_disagree",
    ),
    "lost_ids_counted_in_floats": (completion(usage={"completion_tokens": 4.0}), "fewer_ids_than_usage"),
    "lost_ids": (completion(usage={"prompt_tokens": 2, "completion_tokens": 4}), "fewer_ids_than_usage"),
    "aborted": (with_choice(finish_reason="abort"), "generation_broken_off"),
    "unfinished": (with_choice(finish_reason=None), "generation_broken_off"),
    "ended_by_nothing": (with_choice(finish_reason=""), "generation_broken_off"),
    "ended_by_a_number": (with_choice(finish_reason=5), "generation_broken_off"),
    "ended_by_a_list": (with_choice(finish_reason=[]), "generation_broken_off"),
    "error_beside_the_choice": (completion(error={"message": "out of memory"}), "generation_broken_off"),
    "two_accounts": (with_choice(prompt_token_ids=[1]), "sources_disagree"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_an_unusable_account_is_kept_marked_and_served(
    name: str, stream: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    answer, reason = BROKEN[name]
    engine.plan(answer)
    assert proxy.chat(session, stream=stream).status == 200
    (record,) = proxy.records(session)
    assert record["is_valid"] is False
    assert record["x_trackgauge"]["invalid_reason"] == reason


HEALTHY: dict[str, JSON] = {
    "integer_zero": with_choice(logprobs={"content": [{"logprob": 0}] * 3}),
    "float_noise": with_choice(logprobs={"content": [{"logprob": 0.001}] * 3}),
    "named_ids": with_choice(
        logprobs={"content": [{"token": f"token_id:{n}", "logprob": -1.0} for n in (56, 274, 2000)]}
    ),
    "more_ids_than_usage": completion(usage={"prompt_tokens": 9, "completion_tokens": 2}),
    "no_usage": completion(usage=None),
    "length": with_choice(finish_reason="length"),
    "ids_in_the_choice": completion(prompt_token_ids=None)
    | with_choice(prompt_token_ids=[2001, 1998])
    | {"prompt_token_ids": None},
    "huge_ids": completion(prompt_token_ids=[2**40]),
    "ids_in_the_message": with_message(prompt_token_ids=[2001, 1998], generation_token_ids=[56, 274, 2000]),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_account_is_valid(name: str, proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(HEALTHY[name])
    proxy.chat(session)
    (record,) = proxy.records(session)
    assert (record["is_valid"], record["x_trackgauge"]["invalid_reason"]) == (True, None)


def test_a_nan_from_the_engine_is_stored_as_null_and_served(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(with_choice(logprobs={"content": [{"token": "x", "logprob": float("nan")}] * 3}))
    reply = proxy.chat(session, logprobs=True)
    assert reply.json["choices"][0]["logprobs"]["content"][0]["logprob"] is None
    assert proxy.records(session)[0]["generation_log_probs"] == [None] * 3


def test_what_was_sampled_with_is_kept(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(with_message(reasoning="Hm.", content=None, tool_calls=[]))
    proxy.chat(session, model="pinned", temperature=0.2, max_tokens=5)
    (record,) = proxy.records(session)
    extras = record["x_trackgauge"]
    assert extras["sampling"] == {
        "temperature": 1.0,
        "top_k": -1,
        "seed": 7,
        "max_tokens": 5,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert extras["reasoning"] == "Hm."
    assert extras["started_at"] < record["captured_at"]
    assert record["messages"][-1] == {"role": "assistant"}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, b"oops"),
        Answer(200, b"{not json"),
        Answer(200, b"[]"),
        Answer(200, b'{"error":{"message":"no"}}'),
        Answer(200, json.dumps(completion()).encode(), send=200),
        Answer(hang_up=True),
    ],
    ids=["status", "not_json", "list", "error_object", "cut", "hung_up"],
)
def test_a_failed_call_leaves_no_record(answer: Answer, proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(answer)
    assert proxy.chat(session).status >= 500
    assert proxy.call("GET", f"/v1/sessions/{session}/completions").status == 404
    assert len(engine.chats()) == 1
    assert proxy.chat(session).status == 200


def test_a_lost_record_is_told_and_the_client_is_served(engine: ScriptedEngine, folder: Path) -> None:
    profile = {"routes": {"policy": route(engine.base_url)}}
    with Proxy(folder, profile, limits="trap '' XFSZ; ulimit -f 0") as proxy:
        assert proxy.chat("lost").status == 200
        assert proxy.envelope("lost") | {"undelivered": []} == {
            "schema_version": 1,
            "session_id": "lost",
            "incomplete": True,
            "undelivered": [],
            "completions": [],
        }
        assert proxy.sessions() == [{"session_id": "lost", "parent_session_id": None, "incomplete": True}]
        place = proxy.log_dir / "sessions" / hashlib.sha256(b"lost").hexdigest()
        assert [(path.name, path.stat().st_size) for path in place.iterdir()] == [("incomplete", 0)]


def test_a_call_fails_if_not_even_its_loss_can_be_told(engine: ScriptedEngine, folder: Path) -> None:
    with Proxy(folder, {"routes": {"policy": route(engine.base_url)}}) as proxy:
        place = proxy.log_dir / "sessions" / hashlib.sha256(b"lost").hexdigest()
        place.write_text("in the way")
        reply = proxy.chat("lost")
        assert (reply.status, reply.json["error"]["code"]) == (500, "record_lost")
        assert proxy.chat("other").status == 200
        assert len(proxy.records("other")) == 1


@pytest.mark.parametrize("year", [9998, 9999])
def test_a_record_from_the_end_of_time_stops_nobody_from_recording(tmp_path: Path, year: int) -> None:
    store = Store(tmp_path)
    folder = store.folder("s")
    folder.mkdir(parents=True)
    strange = {"schema_version": 1, "uuid": "u", "session_id": "s", "parent_session_id": None}
    (folder / "u.json").write_text(json.dumps(strange | {"captured_at": f"{year}-12-31T23:59:59.999999+00:00"}))
    for session_id in ("s", "another"):
        store.keep({"schema_version": 1, "session_id": session_id, "parent_session_id": None})
    assert [len(store.records(store.folder(one))) for one in ("s", "another")] == [2, 1]


def test_a_session_that_is_read_again_keeps_no_other_from_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    store.prepare()
    first = other.keep({"schema_version": 1, "session_id": "slow", "parent_session_id": "p"})
    reading, gate = threading.Event(), threading.Event()
    read = Store.records

    def records(self: Store, folder: Path) -> JSON:
        if folder == store.folder("slow"):
            reading.set()
            assert gate.wait(20)
        return read(self, folder)

    monkeypatch.setattr(Store, "records", records)
    kept: list[str] = []
    record: JSON = {"session_id": "slow", "parent_session_id": None}
    slow = threading.Thread(target=lambda: kept.append(store.keep(record)))
    slow.start()
    assert reading.wait(20)
    assert store.keep({"session_id": "quick", "parent_session_id": None})
    gate.set()
    slow.join(20)
    assert kept == [record["uuid"]] != [first]
    assert record["parent_session_id"] == "p"
