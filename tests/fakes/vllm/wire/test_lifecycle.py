"""Gates, clients that leave, and what the ledger says meanwhile."""

import http.client
import json
import socket
import struct
from typing import Any

import pytest

from tests.fakes.vllm.wire.conftest import Play
from tests.fakes.vllm.wire.raw import both_ways, request_bytes
from tests.fakes.vllm.wire.serving_here import Served

TEXT = "{tag} It is done."


def _leave(sock: socket.socket, *, reset: bool) -> None:
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@both_ways
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_client_that_leaves_while_the_answer_waits_ends_the_generation(play: Play, stream: bool, reset: bool) -> None:
    script = play({"text": TEXT, "gate": "g"})
    sock = script.served.connect()
    sock.sendall(request_bytes(script, stream=stream))
    script.wait("held")
    _leave(sock, reset=reset)
    assert script.wait("aborted")["streamed"] is stream


def test_a_client_that_leaves_in_the_middle_of_a_stream_ends_the_generation(play: Play) -> None:
    script = play({"text": TEXT, "fault": {"name": "stall", "at_token": 2}})
    with script.served.connect() as sock:
        sock.sendall(request_bytes(script, stream=True))
        script.wait("held")
        assert b'"token_ids":[' in sock.recv(65536)
    script.wait("aborted")


@both_ways
def test_a_gated_turn_waits_until_its_gate_is_opened(play: Play, stream: bool) -> None:
    script = play({"text": TEXT, "gate": "g-{run}"})
    with script.served.connect() as sock:
        sock.sendall(request_bytes(script, stream=stream))
        held = script.wait("held")
        script.served.call("POST", f"/_fake/gates/{script.tenant}/g-{script.run:06d}/open")
        script.wait("finished")
    assert held["generation_token_ids"] == script.row()["generation_token_ids"]


def test_a_stream_sends_its_headers_before_it_waits(play: Play) -> None:
    script = play({"text": TEXT, "gate": "g"})
    with script.served.connect() as sock:
        sock.sendall(request_bytes(script, stream=True))
        script.wait("held")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_opened_gate_stays_open(play: Play) -> None:
    script = play({"text": TEXT, "gate": "g"})
    script.served.call("POST", f"/_fake/gates/{script.tenant}/g/open")
    assert [script.ask().status for _ in range(2)] == [200, 200]


@both_ways
def test_the_row_of_an_answer_is_finished_before_its_last_byte_arrives(play: Play, stream: bool) -> None:
    script = play({"text": TEXT})
    for number in range(1, 20):
        script.ask(stream=stream)
        rows = script.served.rows(f"run={script.run}")
        assert [row["state"] for row in rows] == ["finished"] * number


@both_ways
def test_the_row_holds_what_the_answer_showed(play: Play, stream: bool) -> None:
    call = {"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}
    tools = [{"type": "function", "function": {"name": "execute_bash"}}]
    script = play({"calls": [call]})
    reply = script.ask(stream=stream, tools=tools)
    row = script.row()
    choices = [c for chunk in reply.chunks() for c in chunk["choices"]] if stream else reply.json()["choices"]
    ids = [token for choice in choices for token in choice.get("token_ids", ())]
    probs = [e["logprob"] for choice in choices for e in (choice["logprobs"] or {"content": []})["content"]]
    first = reply.chunks()[0] if stream else reply.json()
    assert row["generation_token_ids"] == ids
    assert row["generation_log_probs"] == probs
    assert row["prompt_token_ids"] == first["prompt_token_ids"]
    assert row["request_id"] == first["id"]
    places = [choice["delta" if stream else "message"] for choice in choices]
    shown = [call["id"] for place in places for call in place.get("tool_calls", ()) if "id" in call]
    assert [call["id"] for call in row["message"]["tool_calls"]] == shown
    assert row["status"] == 200


def test_a_row_keeps_the_request_as_it_came(play: Play) -> None:
    script = play({"text": TEXT})
    body = json.dumps(script.request()).replace("Go.", "Gö\\ud83d.").encode()
    head = f"POST {script.path}?x=1 HTTP/1.1\r\nHost: x\r\nX-sTrAnge: Yes\r\nContent-Type: application/json\r\n"
    with script.served.connect() as sock:
        sock.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        sock.recv(65536)
    request: dict[str, Any] = script.row()["request"]
    assert request["path"] == f"{script.path}?x=1"
    assert ["X-sTrAnge", "Yes"] in request["headers"]
    assert [name for name, _ in request["headers"]] == ["Host", "X-sTrAnge", "Content-Type", "Content-Length"]
    assert request["body_text"] == body.decode()


def test_the_attempt_is_not_counted_for_a_refused_request(play: Play) -> None:
    script = play({"attempts": [{"text": "{tag} one"}, {"text": "{tag} two"}]})
    assert script.ask(max_tokens=0).status == 400
    assert script.ask(model="nope").status == 404
    assert script.ask().json()["choices"][0]["message"]["content"].endswith("one")


def test_idle_connections_are_closed_on_request_and_rows_tell_what_came_before_on_theirs(play: Play) -> None:
    script = play({"text": TEXT})
    idle = http.client.HTTPConnection(*script.served.address, timeout=20)
    body = json.dumps(script.request())
    for _ in range(2):
        idle.request("POST", script.path, body, {"Content-Type": "application/json"})
        assert idle.getresponse().read()
    rows = script.served.rows(f"run={script.run}")
    assert [row["earlier_on_connection"] for row in rows] == [0, 1]
    assert script.served.call("DELETE", "/_fake/connections/idle").json()["closed"] >= 1
    assert idle.sock.recv(1) == b""
    idle.close()


def test_the_administration_refuses_in_one_line(fake: Served) -> None:
    refusals = [
        fake.call("PUT", "/_fake/tenants/bad", {"modles": []}),
        fake.call("PUT", "/_fake/tenants/bad", {"profile": "9.9"}),
        fake.call("PUT", "/_fake/tenants/bad", b"{"),
        fake.call("PUT", "/_fake/tenants/none/runs/1", {}),
        fake.call("PUT", "/_fake/tenants/default/runs/1", {"about": "x"}),
        fake.call("DELETE", "/_fake/ledger"),
        fake.call("GET", "/_fake/wait?state=done"),
        fake.call("GET", "/_fake/wait?state=finished&timeout=nan"),
        fake.call("GET", "/_fake/ledger?run=x"),
    ]
    for reply in refusals:
        assert reply.status == 400
        error = reply.json()["error"]
        assert error
        assert "\n" not in error


def test_a_wait_that_is_in_vain_ends_with_408(fake: Served) -> None:
    reply = fake.wait("tenant=nobody&state=finished&count=1&timeout=0.05")
    assert reply.status == 408
    assert "there are: none" in reply.json()["error"]


def test_a_tenant_that_was_never_put_is_not_served(fake: Served) -> None:
    assert fake.call("GET", "/t/nobody/v1/models").status == 404


def test_two_tenants_share_nothing(play: Play) -> None:
    one, other = play({"text": TEXT}), play({"text": TEXT}, tenant={"models": ["large"], "max_model_len": 77})
    assert one.ask().status == 200
    card = other.served.call("GET", f"/t/{other.tenant}/v1/models").json()["data"][0]
    assert (card["id"], card["max_model_len"]) == ("large", 77)
    assert other.served.rows(f"tenant={other.tenant}&run={one.run}") == []


def test_a_model_may_be_listed_with_a_length_of_its_own_or_none(play: Play) -> None:
    lengths = {"short": 512, "unknown": None}
    served = play({"text": TEXT}, tenant={"models": ["tiny", "short", "unknown"], "lengths": lengths})
    listed = served.served.call("GET", f"/t/{served.tenant}/v1/models").json()["data"]
    assert {card["id"]: card["max_model_len"] for card in listed} == {"tiny": 4096, **lengths}


def test_an_engine_without_a_list_of_models_tells_its_length_when_it_tokenizes(play: Play) -> None:
    silent = play({"text": TEXT}, tenant={"lists_models": False})
    assert silent.served.call("GET", f"/t/{silent.tenant}/v1/models").status == 404
    body = {"model": "tiny", "prompt": ""}
    assert silent.served.call("POST", f"/t/{silent.tenant}/tokenize", body).json()["max_model_len"] == 4096


def test_the_administration_says_what_can_be_asked_of_it(fake: Served) -> None:
    reply = fake.call("GET", "/_fake/")
    told = {(one["method"], one["path"]): one["about"] for one in reply.json()["administration"]}
    assert ("PUT", "/_fake/tenants/{tenant}") in told
    assert ("DELETE", "/_fake/ledger") in told
    assert all(about.endswith(".") for about in told.values())
