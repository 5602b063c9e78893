"""What was sent can be read back, byte for byte, by those who ask for it."""

import base64
from typing import Any

from fakes.vllm.sent import SentAnswers
from tests.fakes.vllm.wire.conftest import Play
from tests.fakes.vllm.wire.raw import both_ways


@both_ways
def test_the_ledger_gives_an_answer_as_it_was_sent(play: Play, stream: bool) -> None:
    script = play({"text": "{tag} Héllo."})
    reply = script.ask(stream=stream)
    where = f"tenant={script.tenant}&run={script.run}"
    [row] = script.served.rows(f"{where}&answers=true")
    assert (row["answer"]["status"], row["answer"]["body_text"]) == (200, reply.text)
    assert "answer" not in script.served.rows(where)[0]


def test_a_refusal_is_kept_too(play: Play) -> None:
    script = play({"text": "{tag} Hello."})
    reply = script.ask(n=-1)
    [row] = script.served.rows(f"tenant={script.tenant}&answers=true")
    assert (row["answer"]["status"], row["answer"]["body_text"]) == (reply.status, reply.text)


def test_the_oldest_answers_make_room_and_the_newest_stay() -> None:
    kept = SentAnswers(largest=10)
    for seq in range(4):
        kept.begin(seq, 200, [(b"a", b"b")])
        kept.more(seq, b"xxxx")
    assert [kept.of(seq) is None for seq in range(4)] == [True, True, False, False]


def test_bytes_that_are_no_text_stand_in_base64_and_a_dropped_row_takes_its_answer_along() -> None:
    kept = SentAnswers()
    kept.begin(1, 200, [])
    kept.more(1, b"\xff")
    found: Any = kept.of(1)
    assert base64.b64decode(found["body_bytes_b64"]) == b"\xff"
    kept.drop(1)
    assert kept.of(1) is None
